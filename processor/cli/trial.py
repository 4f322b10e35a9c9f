"""`statestore try` and `test`: run recorded topics, or the tests of products, in this process and in memory."""

import argparse
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter, time

from processor.cli.options import load_definitions, name_secrets, print_progress
from processor.cli.printing.output import (
    COUNTS,
    check_outputs,
    coloured,
    dead_letters_path,
    report_stopped_products,
    row_lines,
    summary,
    to_records,
    warn,
    write_dead_letters,
    write_published,
)
from processor.cli.verb import AUTHORS, DEAD_LETTER_FILE, DEFINITIONS, WITH_TESTS, flag, positive, seconds, verb
from processor.counts import Count
from processor.engine.plan.plan import secrets_of
from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.epochs import topic_readers
from processor.engine.protocol.gates import followed_topics
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.trial import Failure, Trial, batches, run_case
from processor.environment.settings.resolve import resolve_schema_registry, secret_readers
from processor.environment.settings.settings import read_settings
from processor.errors import StatestoreError
from processor.job.kafka.schemas import open_schemas
from processor.job.metrics.status import nulled_lines
from processor.language.definitions.load import files_below, load_directory, read_tests
from processor.language.definitions.product_tests import Case, read_cases
from processor.language.product.expressions.functions import offer_secrets, take_names
from processor.language.product.product import Definitions
from processor.text import nearest_topic
from processor.values.dead_letters import rejected_record
from processor.values.reasons import OF_DOCUMENTS
from processor.values.record import Record, Rejected
from processor.values.recorded_topics import read_records, to_line, to_reject_line
from processor.values.values import to_seconds


def _moment(text: str) -> int:
    try:
        return to_seconds(text)
    except ValueError:
        raise argparse.ArgumentTypeError("must be a moment such as 2026-11-20T08:00:00Z") from None


SHOWN = 5
"""Dead letters that `try` prints with their reasons."""


@verb(
    "try",
    AUTHORS,
    DEFINITIONS,
    flag("--from", "recorded topics; - for standard input", "FILE", dest="source", required=True),
    flag("--to", "file for published messages (default: standard output)", "FILE"),
    DEAD_LETTER_FILE,
    flag("--batch", "records in a batch (default: all in one)", "N", type=positive),
    flag("--lag", "delay of every index, in seconds (default 0)", "K", type=seconds, default=0.0),
    flag("--clock", "moment for products with `clock` (default: now)", "TIME", type=_moment),
    flag("--settings", "settings file: [schema_registry] and [secrets]", "FILE"),
    flag("--show-rows", "print how each record reads, in a line"),
    flag("--strict", "exit with 1 at a dead letter or an unknown topic"),
    flag("--json", "print one JSON object: messages (unless --to), dead letters, unknown topics, counts"),
    epilog=COUNTS,
)
def try_topics(options: argparse.Namespace) -> int:
    """Run recorded topics through the steps, in this process and in memory."""
    tune_garbage_collector()
    check_outputs(options.to, options.dead_letters)
    settings = read_settings({"log_values": True}, file=options.settings)
    offer_secrets(secret_readers(settings))
    definitions = load_definitions(options)
    plan = plan_alone(definitions, settings.slots)
    name_secrets(plan)
    trial = Trial(
        plan=plan,
        settings=settings,
        lag=options.lag,
        consistent=not options.lag,
        clock=VirtualClock(start=_start(definitions, options)),
        schemas=open_schemas(resolve_schema_registry(settings.schema_registry)),
    )
    unknown: Counter[str] = Counter()
    known = topic_readers({name: entity.topic for name, entity in definitions.entities.items()})
    ends = followed_topics(trial.plan)
    expected = {*known, *ends, *(entity.transactions for entity in definitions.entities.values())}
    seen: set[str] = set()
    letters: list[Rejected] = []
    try:
        for chunk in batches(_counted(read_records(options.source), expected, unknown, seen), options.batch):
            if options.show_rows:
                warn(*row_lines(chunk, definitions.entities, trial.schemas))
            trial.batch(chunk)
            trial.background_work()
        trial.finish()
    finally:  # too many dead letters end the run, and the file says why
        letters += map(rejected_record, trial.rejects.messages)
        write_dead_letters(letters, dead_letters_path(options.dead_letters, options.to))
        unseen = {topic: name for topic, name in known.items() if topic not in seen}
        warn(*_complaints(letters, unknown, unseen), *nulled_lines(trial.tally), *_part_lines(trial.tally, ends - seen))
    published = list(to_records(trial.published.messages))
    if options.to or not options.json:
        write_published(published, options.to or "-")
    if options.json:
        found = {
            "published": [] if options.to else [json.loads(to_line(record)) for record in published],
            "dead_letters": [json.loads(to_reject_line(rejected)) for rejected in letters],
            "unknown_topics": unknown,
            "stopped": dict(trial.stopped),
            "counts": trial.tally,
        }
        print(json.dumps(found, ensure_ascii=False))
    else:
        print_progress(summary(trial.tally))
    return report_stopped_products(trial.stopped) or int(options.strict and bool(letters or unknown))


def _start(definitions: Definitions, options: argparse.Namespace) -> float:
    """When the trial begins, in seconds since 1970; 0 where no product has a clock."""
    if not any(product.clock for product in definitions.products.values()):
        return 0.0
    return time() if options.clock is None else float(options.clock)


def _counted(
    records: Iterable[Record], known: Collection[str], unknown: Counter[str], seen: set[str]
) -> Iterator[Record]:
    """The records. Counts those of topics that no entity names, and notes the topics."""
    for record in records:
        seen.add(record.topic)
        if record.topic not in known:
            unknown[record.topic] += 1
        yield record


def _complaints(letters: Collection[Rejected], unknown: Mapping[str, int], unseen: Mapping[str, str]) -> Iterator[str]:
    """The first dead letters with their reasons, and the topics that no entity names, each with the nearest topic in `unseen`:
    the topics of entities that have no record, and the entity of each."""
    for rejected in list(letters)[:SHOWN]:
        record = rejected.record
        place = f"{record.topic}/{record.partition} offset {record.offset}"
        if rejected.code in OF_DOCUMENTS:
            place = f"{record.topic} {(record.key or b'').decode()}"
        yield f"dead letter: {place}: {rejected.reason}"
    if len(letters) > SHOWN:
        yield f"and {len(letters) - SHOWN} more dead letters; --dead-letters FILE keeps them all"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of a test case. `failures`: empty if it passed; `milliseconds`: how long it took."""

    case: Case
    failures: tuple[Failure, ...]
    milliseconds: float


@verb("test", AUTHORS, WITH_TESTS, flag("--json", "print one JSON array"))
def test_products(options: argparse.Namespace) -> int:
    """Run the tests of products: DIR/tests/*.yaml."""
    tune_garbage_collector()
    results = list(_results(options.definitions))
    failed = sum(bool(result.failures) for result in results)
    if options.json:
        print(json.dumps([_case_json(result) for result in results], indent=2))
    else:
        for result in results:
            print("\n".join(_case_lines(result, options.definitions)))
        print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _results(directory: Path) -> Iterator[CaseResult]:
    definitions = load_directory(directory)
    tests = directory / "tests"
    with files_below(directory):
        cases = read_cases(read_tests(directory), definitions)
    if not cases:
        raise StatestoreError(f"there are no tests in {tests}; write {tests / 'PRODUCT.yaml'} (docs/definitions.md)")
    settings = read_settings({"log_values": True})
    plan = plan_alone(definitions, settings.slots)
    offer_secrets({})
    take_names(secrets_of(plan))
    for case in cases:
        began = perf_counter()
        failures = run_case(case, plan, settings)
        yield CaseResult(case=case, failures=failures, milliseconds=(perf_counter() - began) * 1000)


def _case_lines(result: CaseResult, directory: Path) -> Iterator[str]:
    case, file, word = result.case, directory / result.case.file, "FAILED" if result.failures else "passed"
    word = coloured(word, "red" if result.failures else "green")
    yield f"{word} {file}:{case.line} {case.name} ({result.milliseconds:.1f} ms)"
    for failure in result.failures:
        yield f"  {file}:{failure.line}: {failure.what}"
        for line in failure.diff[2:]:
            mark = line[:1]
            yield "    " + coloured(line, {"-": "red", "+": "green"}.get(mark, ""))


def _case_json(result: CaseResult) -> dict[str, object]:
    case = result.case
    return {
        "test": case.name,
        "product": case.product,
        "file": case.file,
        "line": case.line,
        "milliseconds": round(result.milliseconds, 1),
        "failures": [asdict(failure) for failure in result.failures],
    }
