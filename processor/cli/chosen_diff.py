"""The diff of `plan --diff`: over the stored rows, or over recorded topics, which two trials read, one by each definition."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from random import Random, randrange
from typing import TYPE_CHECKING

from processor.cli.options import load_settings, print_progress
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, plan_of
from processor.engine.rounds.step_runner import StepRunner, tune_garbage_collector
from processor.engine.rounds.trial import Trial
from processor.environment.settings.resolve_secrets import resolve_schema_registry
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.job.kafka.schemas import open_schemas
from processor.language.product.product import Definitions
from processor.tools.inspect.diff import DefinitionDiff, DiffReport, DiffSide, filled_accesses, scan_unfilled
from processor.tools.inspect.preview import PlannedState, planned_state
from processor.tools.inspect.verification import with_open_changes
from processor.values.record import Record
from processor.values.recorded_topics import read_records
from registry.model import Snapshot

if TYPE_CHECKING:
    from registry.repository import Registry

NO_STATE = "there are no stored rows yet, so nothing can differ: add --offline --from FILE, which compares over recorded topics"


def stored_diff(
    options: argparse.Namespace,
    definitions: Definitions,
    settings: Settings,
    registry: "Registry",
    before: tuple[Snapshot, frozenset[str]],
) -> DiffReport:
    """The diff over the stored rows of the registry's table. `before`: as of `snapshot_for_apply`. Raises ForeignPart when the
    table is not that of the registry."""
    from processor.job.run.binding import readable_store

    stored, has_run = before
    if not has_run:
        raise StatestoreError(NO_STATE)
    state = planned_state(definitions, stored, has_run)
    live = plan_of(stored)
    names = _names(state, stored)
    with readable_store(settings, registry) as store:
        runner = with_open_changes(StepRunner(store=store))
        products = [state.plan.products[name] for name in names]
        print_progress("reading the rows of entities whose slots the apply fills")
        unfilled = scan_unfilled(state.plan, products, filled_accesses(stored, live), store)
        planned = DiffSide(plan=state.plan, runner=runner, unfilled=unfilled)
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
    report = _report(options, _side(live), _side(planned), _names(state, stored))
    letters = [len(trial.rejects.messages) for trial in (live, planned)]
    note = f"dead letters of the records: {letters[0]:,} by the live definitions, {letters[1]:,} by the new ones"
    return replace(report, notes=(note,) if any(letters) else ())


def _names(state: PlannedState, stored: Snapshot) -> dict[str, bool]:
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
    seed = randrange(2**32) if options.seed is None else options.seed
    diff = DefinitionDiff(
        live=live, planned=planned, random=Random(seed), sample=options.sample, progress=print_progress
    )
    products = tuple(diff.product(name, publishes=published) for name, published in names.items())
    return DiffReport(products=products, seed=seed if any(one.share < 1 for one in products) else None)
