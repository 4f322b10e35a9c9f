"""`statestore verify --source`: compares the stored rows with those of the source database, and repairs them with --repair."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from processor.cli.arguments import add_source, positive, reason, seconds, source_address
from processor.cli.chosen_plan import stored_state
from processor.cli.chosen_row import chosen_entity
from processor.cli.operators.ask_for_replay import living_job
from processor.cli.operators.repair_source import repair_from_source
from processor.cli.options import print_progress, reachable_settings, require_settings
from processor.cli.printing.progress_bar import ProgressBar
from processor.cli.printing.source_text import is_equal, source_json, source_lines
from processor.engine.plan.plan import EntityPlan
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.errors import SettingError, StatestoreError
from processor.text import visible_line
from processor.values import canonical_json
from statestore.store import HALF_UNITS, Store

if TYPE_CHECKING:
    from processor.tools.source.compared_table import ComparedTable
    from processor.tools.source.comparison import ComparedEntity
    from processor.tools.source.session import SourceSession


RARE: Mapping[str, tuple[str, Callable[[str], Any], Any, str]] = {
    "--rate": ("N", positive, 0, "with --source: at most N rows a second of the source"),
    "--resume": ("FILE", Path, None, "with --source: keep the progress in FILE, and go on with it"),
    "--show": ("N", positive, 10, "with --source: print N keys of each kind (10)"),
    "--slot": ("NAME", str, "", "with --source: the connector's replication slot (all active ones)"),
    "--lag": ("S", seconds, 10.0, "with --source: seconds that the connector needs to produce what it has read (10)"),
}
"""Flags that only `--help-all` explains: metavar, type, default and help of each."""


def add_flags(parser: argparse.ArgumentParser) -> dict[argparse.Action, str]:
    """Adds the flags of a comparison with the source. Returns those that only `--help-all` explains."""
    add_source(parser, "compare rows with this database (--help-all)")
    parser.add_argument("--why", metavar="REASON", default="", help="of --repair with --source")
    rare = {}
    for flag, (metavar, kind, default, text) in RARE.items():
        action = parser.add_argument(flag, metavar=metavar, type=kind, default=default, help=argparse.SUPPRESS)
        rare[action] = text
    return rare


def run_source(options: argparse.Namespace) -> int:
    """Compares, and repairs."""
    if options.sql or options.sample:
        raise SettingError("--source compares rows, --sql and --sample documents: give two commands")
    why = reason(options) if options.repair else ""
    with reachable_settings(options) as settings:
        require_settings(settings, "bootstrap_servers")
        with stored_state(settings) as (plan, store):
            entities = [chosen_entity(plan, name) for name in options.products] or list(plan.entities.values())
            began = monotonic()
            with _session(options) as session:
                found = _compare(options, settings, session, store, entities)
            _print(options, found, _cost(session.bytes_read, store, monotonic() - began))
            if is_equal(found):
                return 0
            return repair_from_source(settings, plan, store, found, why) if options.repair else 1


@contextmanager
def _session(options: argparse.Namespace) -> "Iterator[SourceSession]":
    from processor.tools.source.session import source_session

    with source_session(source_address(options)) as session:
        yield session


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
    from processor.tools.source.facts import read_source_tables, table_of

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
    print(f"{text}, {cost['seconds']} s", file=sys.stderr)
