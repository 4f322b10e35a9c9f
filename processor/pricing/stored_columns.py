"""The effects of an apply on stored rows: its backfills, and the values that rows lose, lack, or show in no index. Pure.

The job changes a value of a stored row when it writes the row again. Only a backfill rewrites rows for this.
"""

from collections.abc import Iterator
from typing import NamedTuple

from processor.definitions.problems import DefinitionError
from processor.errors import PlanError
from processor.plan.plan import Plan
from processor.plan.planning import plan_of
from processor.pricing.backfill_estimate import Backfill, needed_backfills
from processor.pricing.estimate import StatisticsIndex
from registry.model import EntityEntry, Snapshot


class RowEffects(NamedTuple):
    """The effects of an apply on stored rows. `lines`: for people."""

    backfills: tuple[Backfill, ...]
    lines: tuple[str, ...]


def row_effects(
    before: Snapshot, after: Snapshot, plan: Plan, has_run: frozenset[str], index: StatisticsIndex | None
) -> RowEffects:
    """The effects on the rows of `has_run`, the entities that a job has run with. `plan`: after the apply, once no product waits;
    `index`: None without statistics."""
    try:
        plans = plan_of(before), plan
    except (DefinitionError, PlanError):  # there is no plan yet, or an edit by hand broke it, which the apply repairs
        plans = None
    old = {entity.name: entity for entity in before.entities}
    lines: list[str] = []
    for entity in (one for one in after.entities if one.name in has_run and one.name in old):
        lines += _kept(old[entity.name], entity)
        lines += _shown_no_more(entity.name, *plans) if plans else ()
    return RowEffects(tuple(needed_backfills(before, after, has_run, index, plans)), tuple(lines))


def _kept(old: EntityEntry, new: EntityEntry) -> Iterator[str]:
    was, now = (one.definition.get("keep") == "declared" for one in (old, new))
    cure = f"only a new snapshot of topic {new.topic} brings them back"
    if now and not was:
        yield f"entity {new.name}: a row loses its undeclared columns when the job writes it again; {cure}"
    elif was and not now:
        yield f"entity {new.name}: rows that `keep: declared` stored have no undeclared columns; {cure}"
    if was and (columns := [name for name in new.columns if name not in old.columns]):
        yield f"entity {new.name}: `keep: declared` did not store {', '.join(columns)} of the present rows; {cure}"


def _shown_no_more(name: str, before: Plan, after: Plan) -> Iterator[str]:
    old, new = before.entities[name].indexed, after.entities[name].indexed
    if new and (old is None or not old <= new):
        columns = "whole rows" if old is None else ", ".join(sorted(old - new))
        shrinks = "index entries shrink as the job writes their rows again"
        yield f"entity {name}: no product reads {columns} through an index any more; {shrinks}"
