"""`statestore demo`: runs the main job on embedded parts and real data, and compares its documents with Postgres."""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic

from processor.cli.colour import coloured
from processor.cli.options import print_progress, set_embedded_credentials, with_addresses
from processor.cli.output import summary
from processor.definitions.load import load, read_directory
from processor.errors import StatestoreError
from processor.settings.settings import Settings, read_settings

EXAMPLE = Path(__file__).parents[2] / "examples" / "github"
EVENTS = 200
"""How many of the example's events the demo uses: moto copies its whole table for each query, so twice as many events take four
times as long."""
BATCH = 200
STEPS = 6
NEXT = "next: docs/first-product.md makes a product of your own; `.venv/bin/statestore --help` lists the verbs"


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "demo", help="run the main job on embedded parts and real data, and compare its documents with Postgres"
    )
    help = "let an application write to Postgres, and Debezium send the changes (`make demo-live` installs what this needs)"
    parser.add_argument("--live", action="store_true", help=help)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    return _run_live() if options.live else _run_recorded()


def _run_live() -> int:
    from processor.demo.live.live_demo import run_live_demo

    set_embedded_credentials()
    began = monotonic()
    count, wrong, dead = run_live_demo(print_progress)
    equal = f"{count - len(wrong)} documents equal the SELECT, {dead} dead letters ({monotonic() - began:.0f} s)"
    print(f"\n{coloured(equal, 'red' if wrong or dead else 'green')}\n")
    for key in wrong[:10]:
        print(f"the document {key} differs", file=sys.stderr)
    return 1 if wrong or dead else 0


def _run_recorded() -> int:
    from processor.cli.job_log import JobLog
    from processor.cli.run_command import prepare_plan, run_to_end
    from processor.cli.stop_signals import StopSignals
    from processor.demo.github import build_history, load_events
    from processor.demo.report import choose_star, describe_event, differing_keys
    from processor.inspect.oracle import oracle
    from processor.job.feed import feed, read_back
    from processor.job.worker import open_store
    from processor.records import canonical_json
    from processor.records.recorded_topics import read_records

    if not EXAMPLE.is_dir():
        raise StatestoreError(f"the demo's data is not at {EXAMPLE}; run it in a checkout of the repository")
    began = monotonic()
    definitions = load(read_directory(EXAMPLE))
    recorded = build_history(load_events(EXAMPLE / "events.ndjson.gz")[:EVENTS])
    print_step(1, "starting Kafka, Postgres and the DynamoDB API of moto on this machine")
    with demo_parts() as (settings, directory):
        file = directory / "topics.jsonl"
        file.write_text("".join(canonical_json.dumps(line) + "\n" for line in recorded.records), encoding="utf-8")
        print_step(2, "storing the definitions of examples/github in the registry")
        plan = prepare_plan(settings, definitions)
        print_step(3, f"producing {len(recorded.records)} records, made of public GitHub events of 2015-01-01")
        others = feed(settings, plan, str(file))
        print_step(4, "running the job until no record is left (Spark starts first)")
        with StopSignals(JobLog()).handled() as signals:
            job = run_to_end(settings, plan, signals, once=True, take_over=False, embedded=True)
        job.driver.tally.update({"read": others, "ignored": others})
        published, _ = read_back(settings, plan)
        print_step(5, "asking Postgres for the same documents")
        with oracle(settings.registry, "demo", definitions.entities) as tables:
            tables.load({name: rows.values() for name, rows in recorded.tables.items()})
            truth = tables.documents(definitions.products["user_profile"])
        wrong = differing_keys(published, truth)
        print_step(6, "following one event from its change to its document")
        record = choose_star(read_records(str(file)), recorded.tables)
        for line in describe_event(record, plan, open_store(settings)):
            print(line)
    print("\n" + summary(job.driver.tally))
    dead = job.driver.tally["dead letters"]
    print(f"{dead} dead letters: these records are wrong on purpose, to show what the job does with them")
    equal = f"{len(truth) - len(wrong)} documents equal the SQL answer ({monotonic() - began:.0f} s)"
    print(f"\n{coloured(equal, 'red' if wrong else 'green')}\n")
    for key in wrong[:10]:
        print(f"the document {key} differs", file=sys.stderr)
    print(NEXT)
    return 1 if wrong else 0


def print_step(number: int, text: str) -> None:
    """Prints which step of the demo begins."""
    print_progress(f"step {number} of {STEPS}: {text}")


@contextmanager
def demo_parts() -> Iterator[tuple[Settings, Path]]:
    """Settings for embedded parts of the demo's own, and a directory for its files. Both are removed at the end of the block."""
    from processor.local import parts

    set_embedded_credentials()
    with (
        tempfile.TemporaryDirectory(prefix="statestore-demo-", ignore_cleanup_errors=True) as directory,
        parts.embedded_parts(progress=print_progress) as addresses,
    ):
        settings = with_addresses(read_settings({"batch_size": BATCH}), addresses)
        yield replace(settings, checkpoint=f"{directory}/checkpoint"), Path(directory)
