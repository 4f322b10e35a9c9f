"""`statestore try`: reads recorded topics and writes the messages that a job would publish, in this process."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping

from processor.cli.arguments import positive, seconds
from processor.cli.options import add_definitions, load_definitions
from processor.cli.printing.output import (
    COUNTS,
    check_outputs,
    rejects_path,
    report_stopped_products,
    summary,
    to_records,
    write_published,
    write_rejects,
)
from processor.counts import Count
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.seen_transactions import followed_topics
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import Trial, batches
from processor.environment.settings.resolve_secrets import resolve_schema_registry
from processor.environment.settings.settings import read_settings
from processor.job.kafka.schemas import open_schemas
from processor.text import nearest_topic, visible_line
from processor.values.dead_letters import rejected_record
from processor.values.record import Record, Rejected
from processor.values.recorded_line import to_line, to_reject_line
from processor.values.recorded_topics import read_records
from processor.values.reject_reasons import OF_DOCUMENTS

SHOWN = 5
"""Dead letters that `try` prints with their reasons."""


def add_parser(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    text = "run recorded topics through the steps, in this process and in memory"
    parser = verbs.add_parser("try", help=text, epilog=COUNTS)
    add_definitions(parser)
    parser.add_argument(
        "--from", dest="source", metavar="FILE", required=True, help="recorded topics; - for standard input"
    )
    parser.add_argument("--to", metavar="FILE", help="file for published messages (default: standard output)")
    parser.add_argument("--rejects", metavar="FILE", help="file for dead letters (default: --to with .rejects.jsonl)")
    parser.add_argument("--batch", metavar="N", type=positive, help="records in a batch (default: all in one)")
    parser.add_argument(
        "--lag", metavar="K", type=seconds, default=0.0, help="delay of every index, in seconds (default 0)"
    )
    parser.add_argument("--settings", metavar="FILE", help="settings file, for its table [schema_registry]")
    parser.add_argument("--strict", action="store_true", help="exit with 1 at a dead letter or an unknown topic")
    text = "print one JSON object: messages (unless --to), dead letters, unknown topics, counts"
    parser.add_argument("--json", action="store_true", help=text)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    tune_garbage_collector()
    check_outputs(options.to, options.rejects)
    settings = read_settings({"log_values": True}, file=options.settings)
    definitions = load_definitions(options)
    trial = Trial(
        plan=plan_alone(definitions, settings.slots),
        settings=settings,
        lag=options.lag,
        consistent=not options.lag,
        schemas=open_schemas(resolve_schema_registry(settings.schema_registry)),
    )
    unknown: Counter[str] = Counter()
    known = {entity.topic: name for name, entity in definitions.entities.items()}
    ends = followed_topics(trial.plan)
    expected = {*known, *ends, *(entity.transactions for entity in definitions.entities.values())}
    seen: set[str] = set()
    rejects: list[Rejected] = []
    try:
        for chunk in batches(_counted(read_records(options.source), expected, unknown, seen), options.batch):
            trial.batch(chunk)
            trial.background_work()
        trial.finish()
    finally:  # too many dead letters end the run, and the file says why
        rejects += map(rejected_record, trial.rejects.messages)
        write_rejects(rejects, rejects_path(options.rejects, options.to))
        unseen = {topic: name for topic, name in known.items() if topic not in seen}
        complaints = [*_complaints(rejects, unknown, unseen), *_part_lines(trial.tally, ends - seen)]
        print("".join(f"{visible_line(line)}\n" for line in complaints), end="", file=sys.stderr)
    published = list(to_records(trial.published.messages))
    if options.to or not options.json:
        write_published(published, options.to or "-")
    if options.json:
        found = {
            "published": [] if options.to else [json.loads(to_line(record)) for record in published],
            "dead_letters": [json.loads(to_reject_line(rejected)) for rejected in rejects],
            "unknown_topics": unknown,
            "stopped": dict(trial.stopped),
            "counts": trial.tally,
        }
        print(json.dumps(found, ensure_ascii=False))
    else:
        print(summary(trial.tally), file=sys.stderr)
    return report_stopped_products(trial.stopped) or int(options.strict and bool(rejects or unknown))


def _counted(
    records: Iterable[Record], known: Collection[str], unknown: Counter[str], seen: set[str]
) -> Iterator[Record]:
    """The records. Counts those of topics that no entity names, and notes the topics."""
    for record in records:
        seen.add(record.topic)
        if record.topic not in known:
            unknown[record.topic] += 1
        yield record


def _complaints(rejects: Collection[Rejected], unknown: Mapping[str, int], unseen: Mapping[str, str]) -> Iterator[str]:
    """The first dead letters with their reasons, and the topics that no entity names, each with the nearest topic in `unseen`:
    the topics of entities that have no record, and the entity of each."""
    for rejected in list(rejects)[:SHOWN]:
        record = rejected.record
        place = f"{record.topic}/{record.partition} offset {record.offset}"
        if rejected.code in OF_DOCUMENTS:
            place = f"{record.topic} {(record.key or b'').decode()}"
        yield f"dead letter: {place}: {rejected.reason}"
    if len(rejects) > SHOWN:
        yield f"and {len(rejects) - SHOWN} more dead letters; --rejects FILE keeps them all"
    for topic, count in sorted(unknown.items()):
        near = nearest_topic(topic, unseen)
        hint = f"; did you mean topic {near} of entity {unseen[near]}?" if near else ""
        yield f"topic {topic}: no entity names it, so its {count} records are ignored{hint}"


def _part_lines(tally: Mapping[str, int], missing: Collection[str]) -> Iterator[str]:
    """What an author must know of documents that may show a part of a transaction. `missing`: topics of ends without a record."""
    for topic in sorted(missing):
        yield f"topic {topic}: no record of it, so no transaction is complete; add the topic to the records"
    if count := tally[Count.RELEASED_INCOMPLETE]:
        yield f"{count} documents went out at `at_most`, and may show a part of a transaction"
