"""An edit before it is made: its changes, the rows that it lets the job write with their price, and the work that it leaves. A
person confirms exactly this plan: where the registry moved on meanwhile, the edit is refused, and nothing is overwritten."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from processor.console.console_parts import ConsoleParts
from processor.console.visit import Visit
from processor.inspect.history_lines import history_lines
from processor.plan.planning import plan_of
from processor.pricing.estimate import index_statistics
from processor.pricing.preview import backfill_text, row_effects
from registry.edits.advance import completed
from registry.edits.edit import Edit, edited, plan_id
from registry.edits.pending import pending_lines
from registry.errors import RegistryError
from registry.model import Snapshot

Operation = Callable[[Snapshot], Edit]
MOST_MEANWHILE = 200
"""Entries of the history that a page looks at for the edits of others."""


class MovedOn(RegistryError):
    """Another edit came between the plan and its confirmation."""

    def __init__(self) -> None:
        super().__init__(
            "the registry moved on after you saw this plan; below is the plan as it is now: look at it, and confirm again"
        )


def as_planned(operation: Operation, planned: str) -> Operation:
    """The operation, which raises MovedOn unless it does exactly what the plan of this id showed."""

    def checked(stored: Snapshot) -> Edit:
        change = operation(stored)
        if plan_id(edited(stored, change)) != planned:
            raise MovedOn
        return change

    return checked


def planned_operation(parts: ConsoleParts, visit: Visit, operation: Operation) -> dict[str, Any]:
    """The plan of an operation on the registry as it is now. Errors as of the operation."""
    stored, has_run = parts.registry.snapshot_for_apply()
    change = operation(stored)
    return plan_content(parts, visit, (stored, has_run), edited(stored, change), change.changes)


def plan_content(
    parts: ConsoleParts,
    visit: Visit,
    before: tuple[Snapshot, frozenset[str]],
    after: Snapshot,
    changes: tuple[str, ...],
) -> dict[str, Any]:
    """A plan as JSON values. `before`: the registry, and the entities that a job has run with; `changes`: the edit in words."""
    stored, has_run = before
    plan, statistics = plan_of(completed(after)), parts.registry.statistics.last()
    index = index_statistics(statistics, plan) if statistics else None
    backfills, lines = row_effects(stored, after, plan, has_run, index)
    known = set(pending_lines(stored))
    return {
        "plan": plan_id(after),
        "version": stored.version,
        "changes": list(changes),
        "backfills": [{**asdict(one), "text": f"{one.holds}; {backfill_text(one, parts.prices)}"} for one in backfills],
        "effects": list(lines),
        "counted_at": statistics.taken_at.isoformat(timespec="seconds") if statistics else None,
        "waits": [line for line in pending_lines(after) if line not in known],
        "meanwhile": _meanwhile(parts, visit, stored.version),
    }


def _meanwhile(parts: ConsoleParts, visit: Visit, version: int) -> list[str]:
    """What others changed between the plan that a person confirmed and now."""
    seen = visit.number("version") if visit.form else version
    entries = parts.registry.history(MOST_MEANWHILE) if seen < version else ()
    return list(history_lines([entry for entry in entries if entry.version > seen]))
