"""`statestore demo`: the main job on real parts and real data, compared with what Postgres says."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

from processor.cli.options import embedded_credentials, say, with_addresses
from processor.cli.output import summary
from processor.definitions.load import load, read_directory
from processor.errors import StatestoreError
from processor.settings import Settings, read_settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "github"
EVENTS = 200
"""So many of the example's events: moto copies its whole table for each query, so twice as many take four times as long."""
BATCH = 200


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser("demo", help="the main job on embedded parts and real data, compared with Postgres")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from processor.cli.job import prepare, run_to_end
    from processor.demo.github import history, load_events
    from processor.demo.show import different, followable, followed
    from processor.feed import feed, read_back
    from processor.model import canonical_json
    from processor.oracle import oracle
    from processor.recorded import read_records
    from processor.worker import open_store

    if not EXAMPLE.is_dir():
        raise StatestoreError(f"the demo's data is not at {EXAMPLE}; run it in a checkout of the repository")
    began = monotonic()
    definitions = load(read_directory(EXAMPLE))
    told = history(load_events(EXAMPLE / "events.ndjson.gz")[:EVENTS])
    with scene() as (settings, directory):
        file = directory / "topics.jsonl"
        file.write_text("".join(canonical_json.dumps(line) + "\n" for line in told.records), encoding="utf-8")
        plan = prepare(settings, definitions)
        say(f"producing {len(told.records)} records, made of public GitHub events of 2015-01-01")
        others = feed(settings, plan, str(file))
        job = run_to_end(settings, plan, once=True, take_over=False, embedded=True)
        job.rounds.tally.update({"read": others, "ignored": others})
        published, _ = read_back(settings, plan)
        say("asking Postgres for the same documents")
        with oracle(settings.registry, "demo", definitions.entities) as tables:
            tables.load({name: rows.values() for name, rows in told.tables.items()})
            truth = tables.documents(definitions.products["user_profile"])
        wrong = different(published, truth)
        record = followable(read_records(str(file)), told.tables)
        for line in followed(record, plan, open_store(settings)):
            print(line)
    print("\n" + summary(job.rounds.tally))
    print(f"{len(truth) - len(wrong)} documents equal the SQL answer ({monotonic() - began:.0f} s)")
    for key in wrong[:10]:
        print(f"the document {key} differs", file=sys.stderr)
    return 1 if wrong else 0


@contextmanager
def scene() -> Iterator[tuple[Settings, Path]]:
    """Embedded parts of our own, and a directory; both go at the end."""
    from processor.local import parts

    embedded_credentials()
    with (
        tempfile.TemporaryDirectory(prefix="statestore-demo-", ignore_cleanup_errors=True) as directory,
        parts.embedded(progress=say) as addresses,
    ):
        settings = with_addresses(read_settings({"batch_size": BATCH}), addresses)
        yield replace(settings, checkpoint=f"{directory}/checkpoint"), Path(directory)
