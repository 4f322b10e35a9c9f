"""The work of `statestore verify --source`: compares the stored rows with those of the source database. With --repair it sends a
dead letter for each row that differs, and asks the job to replay them."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from decimal import Decimal
from itertools import islice
from pathlib import Path
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any, Final

from processor.cli.choices import chosen_entity, stored_state
from processor.cli.options import (
    print_progress,
    reachable_settings,
    reason,
    require_settings,
    source_address,
    user_name,
)
from processor.cli.printing.output import ProgressBar, warn
from processor.cli.stored_letters import follow, living_job, read_stored_letters
from processor.cli.verb import flag, positive, seconds, source_flags
from processor.engine.plan.plan import EntityPlan, Plan
from processor.engine.plan.row_image import declared_columns
from processor.engine.protocol.decode import TopicEntities
from processor.engine.protocol.replays import kept_letter, letter_position
from processor.engine.rounds.decoding import shown_keys
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.errors import SettingError, StatestoreError
from processor.text import visible_line
from processor.tools.source.comparison import ComparedEntity, RowDifference, SourceDifference
from processor.values import canonical_json
from processor.values.dead_letters import DeadLetter, message_bytes, reject_message
from processor.values.record import Rejected
from statestore import keys
from statestore.store import HALF_UNITS, Store

if TYPE_CHECKING:
    from processor.tools.source.compared_table import ComparedTable
    from processor.tools.source.comparison import ComparedEntity
    from processor.tools.source.session import SourceSession

"""Flags that only `--help-all` explains: metavar, type, default and help of each."""


SOURCE_FLAGS = (
    *source_flags("compare rows with this database (--help-all)"),
    flag("--why", "of --repair with --source", "REASON", default=""),
    flag("--rate", "with --source: at most N rows a second of the source", "N", rare=True, type=positive, default=0),
    flag("--resume", "with --source: keep the progress in FILE, and go on with it", "FILE", rare=True, type=Path),
    flag("--show", "with --source: print N keys of each kind (10)", "N", rare=True, type=positive, default=10),
    flag("--slot", "with --source: the connector's replication slot (all active ones)", "NAME", rare=True, default=""),
    flag(
        "--lag",
        "with --source: seconds that the connector needs to produce what it has read (10)",
        "S",
        rare=True,
        type=seconds,
        default=10.0,
    ),
)
"""The flags of a comparison with the source."""


def run_source(options: argparse.Namespace) -> int:
    """Compares, and repairs."""
    from processor.tools.source.session import source_session

    if options.sql or options.sample:
        raise SettingError("--source compares rows, --sql and --sample documents: give two commands")
    why = reason(options) if options.repair else ""
    with reachable_settings(options) as settings:
        require_settings(settings, "bootstrap_servers")
        with stored_state(settings) as (plan, store):
            entities = [chosen_entity(plan, name) for name in options.products] or list(plan.entities.values())
            began = monotonic()
            with source_session(source_address(options)) as session:
                found = _compare(options, settings, session, store, entities)
            _print(options, found, _cost(session.bytes_read, store, monotonic() - began))
            if all(one.equal for one in found):
                return 0
            return repair_from_source(settings, plan, store, found, why) if options.repair else 1


def _compare(
    options: argparse.Namespace,
    settings: Settings,
    session: "SourceSession",
    store: Store,
    entities: Sequence[EntityPlan],
) -> "list[ComparedEntity]":
    """First scans all tables in one snapshot, then looks at the suspects."""
    from processor.tools.source.comparison import DigestFile, SourceComparison
    from processor.tools.source.session import PipelineMarker

    tables = _tables(session, entities)
    with ExitStack() as stack:
        registry = stack.enter_context(open_registry(settings))
        digests = DigestFile(options.resume)
        stack.callback(digests.close)
        bar = ProgressBar(sys.stderr)
        marker = PipelineMarker(
            session=session,
            ends=_ends(settings, entities),
            read=lambda: _positions(registry, settings.job),
            warn=print_progress,
            slot=options.slot,
            lag=options.lag,
        )
        comparison = SourceComparison(
            session=session,
            store=store,
            digests=digests,
            passed=marker.wait,
            report=lambda phase, done: bar.show(phase, done, None),
            rate=options.rate,
        )
        stack.callback(bar.close)
        for table in tables:
            comparison.scan(table)
        return [comparison.result(table) for table in tables]


def _tables(session: "SourceSession", entities: Sequence[EntityPlan]) -> "list[ComparedTable]":
    """Raises StatestoreError for an entity that the source has no table for, or whose keys do not compare."""
    from processor.tools.source.compared_table import compare_with
    from processor.tools.source.session import read_source_tables, table_of

    tables, made = read_source_tables(session), []
    for entity in entities:
        table = table_of(entity.entity, tables)
        if table is None:
            cure = "give `source: schema.table` in entities.yaml, or name other entities in the command"
            raise StatestoreError(
                f"entity {entity.name}: the source shows no table of topic {entity.entity.topic}; {cure}"
            )
        compared = compare_with(entity, table, mysql=session.mysql)
        if isinstance(compared, str):
            raise StatestoreError(f"entity {entity.name}: {table} cannot be compared: {compared}; name other entities")
        made.append(compared)
    return made


def _ends(settings: Settings, entities: Sequence[EntityPlan]) -> Callable[[], Mapping[str, int]]:
    from processor.job.kafka.admin import Admin

    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    topics = [entity.entity.topic for entity in entities]

    def ends() -> Mapping[str, int]:
        found = admin.topics(topics)
        return {f"{name}/{p}": end for name in found for p, end in admin.stable_ends(name).items()}

    return ends


def _positions(registry: Any, job: str) -> Mapping[str, int] | None:
    """Where the running job reads on; None where none runs."""
    living = living_job(registry, job)
    return None if living is None else (living.report or {}).get("positions", {})


def _cost(bytes_read: int, store: Store, took: float) -> dict[str, Decimal | int]:
    spent = store.spent
    half = sum(count for name, count in spent.items() if name.startswith(HALF_UNITS))
    return {
        "seconds": Decimal(f"{took:.1f}"),
        "bytes": bytes_read,
        "requests": store.requests.total(),
        "read_units": Decimal(half) / 2,
    }


def _print(options: argparse.Namespace, found: "Sequence[ComparedEntity]", cost: Mapping[str, Decimal | int]) -> None:
    if options.json:
        shown = {one.table.name: source_json(one, options.show) for one in found}
        print(visible_line(canonical_json.dumps({"entities": shown, "cost": dict(cost)})))
        return
    for one in found:
        for line in source_lines(one, options.show):
            print(line)
    units = f", {cost['read_units']:,.0f} read units" if cost["read_units"] else ""
    text = f"{cost['bytes']:,} bytes of values from the source, {cost['requests']:,} requests to the table{units}"
    warn(f"{text}, {cost['seconds']} s")


SAMPLED = 100
"""Stored rows that show whether the connector sends a JSON column as text."""


def repair_from_source(
    settings: Settings, plan: Plan, store: Store, found: "Sequence[ComparedEntity]", why: str
) -> int:
    """Repairs the differences. Returns the exit status: 1 where a row is not repaired yet."""
    letters, left = _letters(settings, plan, store, found, why)
    warn(*(f"not repaired: {text}" for text in left))
    if not letters:
        return 1
    with open_registry(settings) as registry:
        _send(settings, letters)
        kept = [DeadLetter(rejected=one, kept_since=one.record.timestamp / 1000) for one in letters]
        places = [letter_position(one.record) for one in letters]
        registry.letters.keep([kept_letter(one, one.record.timestamp / 1000) for one in letters])
        number = registry.replays.repair(places, who=user_name(), why=why)
        job = living_job(registry, settings.job)
        if job is None:
            warn(f"request {number}: no job runs, and its next run repairs {len(letters)} rows")
            return 1
        reports = follow(registry, job, kept, number)
    for report in reports:
        if report.outcome == "refused":
            key = (report.record.key or b"").decode()
            warn(f"not repaired: {report.record.topic} {key}: {report.reason}")
    applied, newer = (sum(report.outcome == one for report in reports) for one in ("applied", "superseded"))
    failed = len(letters) - applied - newer + len(left)
    print(f"{applied} rows repaired, {newer} have a newer change or were erased, {failed} not repaired")
    return 1 if newer or failed else 0


def _send(settings: Settings, letters: Sequence[Rejected]) -> None:
    """Produces the letters to the topic of dead letters, and waits for the broker."""
    from processor.job.kafka.outbox import KafkaOutbox

    outbox = KafkaOutbox(settings.bootstrap_servers, dict(settings.kafka))
    for letter in letters:
        outbox.send(reject_message(letter, settings.dead_letter_topic))
    outbox.flush()


def _letters(
    settings: Settings, plan: Plan, store: Store, found: "Sequence[ComparedEntity]", why: str
) -> tuple[list[Rejected], list[str]]:
    """The letters, and why other rows get none."""
    from processor.job.kafka.admin import Admin
    from processor.job.run.dead_letters import letter_bytes
    from processor.tools.source.comparison import repair_letter

    limit = letter_bytes(Admin(settings.bootstrap_servers, dict(settings.kafka)), settings)
    waiting = _waiting(settings, plan)
    number, letters, left = time_ns() // 1000, list[Rejected](), list[str]()
    for entity in found:
        json_text = _json_text(store, entity.table)
        for one in (one for one in entity.differences if one.kind != "erased"):
            letter = repair_letter(one, entity.table, why, number + len(letters), json_text)
            at = waiting.get((one.entity, one.sk))
            if at is not None:
                letter = f"its dead letter {at} waits, and would undo the repair: replay or drop it first"
            elif (
                isinstance(letter, Rejected)
                and message_bytes(reject_message(letter, settings.dead_letter_topic)) > limit
            ):
                letter = (
                    f"topic {settings.dead_letter_topic} takes no message of that size: raise its max.message.bytes"
                )
            if isinstance(letter, Rejected):
                letters.append(letter)
            else:
                left.append(f"{one.entity} {canonical_json.dumps(dict(one.key))}: {letter}")
    return letters, left


def _waiting(settings: Settings, plan: Plan) -> dict[tuple[str, str], str]:
    """(entity, encoded key) of the dead letters that wait -> the position of the record."""
    entities = TopicEntities(entity.entity for entity in plan.entities.values())
    found: dict[tuple[str, str], str] = {}
    for letter, outcome in read_stored_letters(settings):
        record = letter.rejected.record
        entity = entities.of_letter(letter.rejected)
        if entity is not None and not outcome:
            at = f"{record.topic}/{record.partition}/{record.offset}"
            found |= {(entity.name, keys.encode(key) or ""): at for key in shown_keys(record, entity)}
    return found


def _json_text(store: Store, table: "ComparedTable") -> dict[str, bool]:
    """JSON columns -> whether stored rows hold them as text, for those that a sample shows."""
    names = [name for name, form in table.forms.items() if form.json]
    shown: dict[str, bool] = {}
    for partition in table.entity.partitions() if names else ():
        for item in store.page(partition, None, SAMPLED).items:
            columns = declared_columns(item, table.entity) or {}
            shown |= {name: isinstance(columns[name], str) for name in names if columns.get(name) is not None}
    return shown


WORDS: Final[dict[RowDifference, str]] = {
    "missing": "missing here",
    "orphaned": "orphaned here (gone there)",
    "different": "different",
    "erased": "erased here, and still there",
}


def source_lines(found: ComparedEntity, shown: int) -> Iterator[str]:
    """The result of an entity. `shown`: the most keys of each kind."""
    counts = ", ".join(f"{len(found.of(kind)):,} {words}" for kind, words in WORDS.items() if found.of(kind))
    table = found.table
    yield visible_line(
        f"{table.name} ({table.table}): {found.rows:,} rows there, {found.stored:,} here: {counts or 'no difference'}"
    )
    for kind, words in WORDS.items():
        for one in islice(found.of(kind), shown):
            columns = f": {', '.join(one.columns)}" if one.columns else ""
            yield visible_line(f"  {words} {canonical_json.dumps(dict(one.key))}{columns}")
    if found.moving:
        yield visible_line(
            f"  {len(found.moving):,} rows changed at every look: compare again; the first {found.moving[0]}"
        )
    for name in table.gone:
        text = (
            f"  the table has no column {name}, so documents show null or an old value: correct `columns` of the entity"
        )
        yield visible_line(text)
    if table.nulled:
        yield visible_line(f"  a value that its type cannot hold compares as null: {', '.join(table.nulled)}")
    if table.left_out:
        reasons = ", ".join(f"{name} ({why})" for name, why in table.left_out.items())
        yield visible_line(f"  not compared: {reasons}")


def source_json(found: ComparedEntity, shown: int) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "table": str(found.table.table),
        "rows": found.rows,
        "stored": found.stored,
        "counts": {kind: len(found.of(kind)) for kind in WORDS},
        "sample": [_shown(one) for kind in WORDS for one in islice(found.of(kind), shown)],
        "moving": len(found.moving),
        "missing_columns": list(found.table.gone),
        "not_compared": dict(found.table.left_out),
        "compared_as_null": list(found.table.nulled),
    }


def _shown(one: SourceDifference) -> dict[str, Any]:
    return {"kind": one.kind, "key": dict(one.key), "columns": list(one.columns)}
