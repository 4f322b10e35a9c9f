"""`statestore plan` and `statistics`: show what `apply` would do and cost, with --diff also what differs in the documents of the
stored rows or of recorded topics; and measure what the estimates of `plan` need."""

import argparse
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from processor.cli.choices import PRICES, chosen_prices, chosen_seed, empty_registry, stored_state
from processor.cli.options import (
    REGISTRY,
    TABLE,
    load_definitions,
    load_settings,
    name_secrets,
    print_progress,
    reachable_settings,
)
from processor.cli.printing.output import warn
from processor.cli.printing.plan import diff_json, diff_lines, markdown_lines, plan_json, plan_lines
from processor.cli.verb import AUTHORS, DEFINITIONS, JSON, SEED, flag, positive, verb
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, plan_of, requirements_of
from processor.engine.protocol.epochs import move_lines
from processor.engine.rounds.step_runner import StepRunner, tune_garbage_collector
from processor.engine.rounds.trial import Trial
from processor.environment.settings.resolve import open_registry, resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.errors import SettingError, StatestoreError
from processor.job.kafka.schemas import open_schemas
from processor.language.definitions.load import load, read_directory
from processor.language.product.product import Definitions
from processor.text import table_lines, visible
from processor.tools.inspect.diff import DefinitionDiff, DiffReport, DiffSide, filled_accesses, scan_unfilled
from processor.tools.inspect.estimate import take_statistics
from processor.tools.inspect.preview import PlannedState, Preview, planned_state, preview
from processor.tools.inspect.verification import with_open_changes
from processor.values import canonical_json
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.errors import RegistryError, RegistryMissing
from registry.model import Snapshot, Statistics

if TYPE_CHECKING:
    from registry.repository import Registry


@verb(
    "plan",
    AUTHORS,
    DEFINITIONS,
    flag("--offline", "compare with an empty registry, and connect to none"),
    flag("--against", "with --offline: compare with these definitions", "DIR", type=Path),
    flag("--diff", "compare the documents of stored rows, before and after"),
    flag("--from", "with --diff --offline: topics, as of `try`", "FILE", dest="source"),
    flag("--sample", "compare N documents of each product, not all", "N", type=positive),
    SEED,
    *PRICES,
    flag("--verbose", "show slots, joins and the price of each event too"),
    flag("--markdown", "print Markdown, for a pull request"),
    JSON,
    settings=REGISTRY,
)
def plan(options: argparse.Namespace) -> int:
    """Show what `apply` would do: changes, documents, warnings, and prices."""
    try:
        _check_flags(options)
        prices = chosen_prices(options)
        found, diff = _offline(options) if options.offline else _online(options)
    except (StatestoreError, RegistryError) as error:
        if not options.json:
            raise
        print(json.dumps({"errors": str(error).splitlines()}, indent=2))
        return 1
    if options.json:
        shown = plan_json(found, prices) | ({"diff": diff_json(diff, prices)} if diff else {})
        print(canonical_json.dumps_indented(shown))
        return 0
    lines = list(plan_lines(found, prices, verbose=options.verbose))
    if options.markdown:
        print("\n".join(markdown_lines(lines, diff, prices)))
    else:
        print("\n".join([*lines, *(diff_lines(diff, prices) if diff else ())]))
    return 0


def _check_flags(options: argparse.Namespace) -> None:
    """Raises SettingError for flags that do not go together."""
    if options.diff and options.offline and not options.source:
        raise SettingError(
            "--diff --offline has no rows to compare: add --from FILE, or leave --offline out to read the state"
        )
    if options.source and not (options.diff and options.offline):
        raise SettingError("--from belongs to --diff --offline; without --offline the rows are those of the state")
    if options.against and not options.offline:
        raise SettingError("--against belongs to --offline; without it plan compares with the registry")
    if (options.sample or options.seed is not None) and not options.diff:
        raise SettingError("--sample and --seed belong to --diff")
    if options.markdown and options.json:
        raise SettingError("--markdown and --json are two forms of one output: give one of them")


def _offline(options: argparse.Namespace) -> tuple[Preview, DiffReport | None]:
    """The plan against an empty registry, or against one with the definitions of `--against`."""
    definitions, settings = load_definitions(options), load_settings(options)
    against = load(read_directory(options.against)) if options.against else Definitions(entities={}, products={})
    empty = empty_registry(settings)
    stored = edited(empty, apply(empty, requirements_of(against), frozenset()))
    has_run = frozenset(against.entities)
    found = preview(definitions, stored, has_run, None if options.no_price else settings)
    return found, recorded_diff(options, definitions, stored) if options.diff else None


def _online(options: argparse.Namespace) -> tuple[Preview, DiffReport | None]:
    """The plan against the registry."""
    from processor.job.metrics.status import list_lines
    from processor.job.run.binding import refuse_lost_registry

    definitions = load_definitions(options)
    with reachable_settings(options) as settings, open_registry(settings) as registry:
        statistics, moves, lists = None, tuple[str, ...](), tuple[str, ...]()
        try:
            stored, has_run = registry.snapshot_for_apply()
            moves = _moves(definitions, stored, registry)
            lists = tuple(chain.from_iterable(map(list_lines, registry.jobs())))
        except RegistryMissing:
            refuse_lost_registry(settings, registry)
            warn("there is no registry yet: `apply` creates it")
            stored, has_run = empty_registry(settings), frozenset[str]()
        else:
            with suppress(RegistryMissing):  # a registry of an older release has no statistics
                statistics = registry.statistics.last()
        found = preview(definitions, stored, has_run, None if options.no_price else settings, statistics)
        diff = stored_diff(options, definitions, settings, registry, (stored, has_run)) if options.diff else None
    return replace(found, warnings=(*moves, *lists, *found.warnings)), diff


def _moves(definitions: Definitions, stored: Snapshot, registry: "Registry") -> tuple[str, ...]:
    """The moves of entities to other topics that the apply asks for, or that a job has yet to make."""
    topics = {entity.name: entity.topic for entity in stored.entities}
    topics |= {name: entity.topic for name, entity in definitions.entities.items()}
    return tuple(move_lines(topics, registry.epochs(sorted(topics.values()), sorted(topics))))


NO_STATE = "there are no stored rows yet, so nothing can differ: add --offline --from FILE, which compares over recorded topics"


def stored_diff(
    options: argparse.Namespace,
    definitions: Definitions,
    settings: Settings,
    registry: "Registry",
    before: tuple[Snapshot, frozenset[str]],
) -> DiffReport:
    """The diff over the stored rows of the registry's table. `before`: as of `snapshot_for_apply`. Raises OwnedByAnother when the
    table is not that of the registry."""
    from processor.job.run.binding import readable_store

    stored, has_run = before
    if not has_run:
        raise StatestoreError(NO_STATE)
    state = planned_state(definitions, stored, has_run)
    live = plan_of(stored)
    names = _compared(state, stored)
    with readable_store(settings, registry) as store:
        runner = with_open_changes(StepRunner(store=store))
        products = [state.plan.products[name] for name in names]
        print_progress("reading the rows of entities whose slots the apply fills")
        unfilled = scan_unfilled(state.plan, products, filled_accesses(stored, live), store)
        planned = DiffSide(plan=state.plan.without_orders(), runner=runner, unfilled=unfilled)
        report = _report(options, DiffSide(plan=live, runner=runner), planned, names)
    unread = (entity.name for entity in state.after.entities if entity.name not in has_run)
    notes = (f"entity {name}: no job has read its topic, so joins find no rows of it yet" for name in unread)
    return replace(report, notes=tuple(notes))


def recorded_diff(options: argparse.Namespace, definitions: Definitions, stored: Snapshot) -> DiffReport:
    """The diff over the recorded topics of `--from`. `stored`: the registry with the live definitions."""
    tune_garbage_collector()
    settings = replace(load_settings(options), max_reject_share=1.0)
    state = planned_state(definitions, stored, frozenset(entity.name for entity in stored.entities))
    before = plan_of(stored) if stored.entities else plan_alone(Definitions(entities={}, products={}), settings.slots)
    records = list(read_records(options.source))
    live, planned = (_trial(plan, settings, records) for plan in (before, state.plan))
    report = _report(options, _side(live), _side(planned), _compared(state, stored))
    letters = [len(trial.rejects.messages) for trial in (live, planned)]
    note = f"dead letters of the records: {letters[0]:,} by the live definitions, {letters[1]:,} by the new ones"
    return replace(report, notes=(note,) if any(letters) else ())


def _compared(state: PlannedState, stored: Snapshot) -> dict[str, bool]:
    """The products to compare, and whether the apply publishes them: those that get another version, and those over an entity
    that it changes."""
    known = {(one.name, one.version) for one in (*stored.products, *stored.waiting)}
    put = (*state.change.products, *state.change.waiting)
    published = {one.name for one in put if (one.name, one.version) not in known}
    changed = {one.name for one in state.change.entities}
    reads = {one.name: one.entities() for one in (*state.after.products, *state.after.waiting)}
    return {name: name in published for name in state.plan.products if name in published or reads[name] & changed}


def _trial(plan: Plan, settings: Settings, records: Sequence[Record]) -> Trial:
    """A finished trial of the records."""
    name_secrets(plan)
    trial = Trial(
        plan=plan,
        settings=settings,
        consistent=True,
        schemas=open_schemas(resolve_schema_registry(settings.schema_registry)),
    )
    trial.batch(records)
    trial.finish()
    return trial


def _side(trial: Trial) -> DiffSide:
    return DiffSide(plan=trial.plan, runner=StepRunner(store=trial.store))


def _report(options: argparse.Namespace, live: DiffSide, planned: DiffSide, names: dict[str, bool]) -> DiffReport:
    seed = chosen_seed(options)
    diff = DefinitionDiff(
        live=live, planned=planned, random=Random(seed), sample=options.sample, progress=print_progress
    )
    products = tuple(diff.product(name, publishes=published) for name, published in names.items())
    return DiffReport(products=products, seed=seed if any(one.share < 1 for one in products) else None)


SAMPLE = 200


@verb(
    "statistics",
    AUTHORS,
    flag(
        "--sample",
        f"rows of each entity whose size and joins are measured (default: {SAMPLE}); all rows are counted",
        "N",
        type=positive,
        default=SAMPLE,
    ),
    SEED,
    JSON,
    settings=(*REGISTRY, *TABLE),
)
def statistics(options: argparse.Namespace) -> int:
    """Count rows, and the rows that joins find, for the estimates of `plan`."""
    random = Random(chosen_seed(options))
    with (
        reachable_settings(options) as settings,
        stored_state(settings) as (plan, store),
        ThreadPoolExecutor(settings.threads) as pool,
    ):
        taken = take_statistics(
            plan, store, sample=options.sample, random=random, at=datetime.now(UTC), map_counts=pool.map
        )
        with open_registry(settings) as registry:
            registry.statistics.keep(taken)
    print(
        json.dumps(asdict(taken), indent=2, default=datetime.isoformat)
        if options.json
        else visible("\n".join(statistics_lines(taken)))
    )
    return 0


def statistics_lines(taken: Statistics) -> Iterator[str]:
    """The statistics as two tables."""
    entities = [[e.entity, f"{e.rows:,}", f"{e.mean_bytes:,.0f}", f"{e.most_bytes:,}"] for e in taken.entities]
    entities.insert(0, ["entity", "rows", "mean bytes", "most bytes"])
    joins = [[str(j.join), j.direction, f"{j.mean:,.2f}", f"{j.most:,}", j.value or ""] for j in taken.joins]
    joins.insert(0, ["join", "direction", "mean rows", "most rows", "of the value"])
    tables = (table_lines(entities, right=(1, 2, 3)), table_lines(joins, right=(2, 3)))
    yield from (f"  {line}" for table in tables for line in table)
