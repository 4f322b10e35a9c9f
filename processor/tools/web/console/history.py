"""The history of the registry: who changed what, when and why; each version with its differences, and its undo with a plan."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from processor.tools.inspect.history_lines import OF_DATABASE, entry_line
from processor.tools.operate.undo_version import UndoPlan, plan_undo, undo
from processor.tools.web.console.edits import PlanOutOfDate, plan_content
from processor.tools.web.console.screen import ConsoleParts, Content, EditDone, Screen, Visit, diff_rows
from processor.tools.web.problem import LookUpProblem
from registry.edits.edit import Signature, plan_id
from registry.edits.history import NoUndo
from registry.edits.operations import WHY
from registry.errors import RegistryError
from registry.model import HistoryEntry

FIRST: Final = 60
MOST: Final = 2_000
"""Entries on a page, first and at most."""


def show_history(parts: ConsoleParts, visit: Visit) -> Content:
    """The last versions, the newest first."""
    limit = min(visit.number("limit") if visit.asked("limit") else FIRST, MOST)
    entries = parts.registry.history(limit)
    more = len(entries) == limit < MOST
    return {"versions": list(versions_of(entries)), "more": min(limit * 4, MOST) if more else None}


def show_version(parts: ConsoleParts, visit: Visit) -> Content:
    """One version: its entries with their differences, and what an undo of it does."""
    version = visit.number("of")
    changed = [entry for entry in parts.registry.history() if entry.version == version]
    if not changed:
        raise LookUpProblem(404, f"the history has no version {version}")
    (head,) = versions_of(changed)
    entries = [
        {"line": entry_line(e), "open": e.operation == "update", "diff": diff_rows(_row(e.old), _row(e.new))}
        for e in changed
    ]
    return head | {"entries": entries} | _undo(parts, visit, version)


def undo_version(parts: ConsoleParts, visit: Visit) -> EditDone:
    """Makes the undo that the page showed."""
    by, version = visit.signature(), visit.number("of")
    plan = plan_undo(parts.registry, version)
    if plan_id(plan.after) != visit.asked("plan"):
        raise PlanOutOfDate
    _check_typed(visit, plan)
    reason = Signature(by.who, f"undo of version {version}: {by.why}")
    applied = undo(parts.registry, plan, parts.settings.rejects_topic, reason)
    return EditDone(
        to="/history", message=f"Registry version {applied.version} undoes {version}: {'; '.join(applied.changes)}"
    )


def _check_typed(visit: Visit, plan: UndoPlan) -> None:
    if plan.removed and visit.asked("typed") != " ".join(plan.removed):
        raise LookUpProblem(400, f"type `{' '.join(plan.removed)}`, since the undo deletes its documents")


def versions_of(entries: Iterable[HistoryEntry]) -> Iterator[dict[str, Any]]:
    """The versions of these entries as JSON values: when, who, why, and a line for each entry."""
    for version, changed in groupby(entries, key=lambda entry: entry.version):
        first, *others = changed
        yield {
            "version": version,
            "at": f"{first.at:%Y-%m-%d %H:%M:%S %Z}",
            "who": first.who,
            "why": first.why or "",
            "of_job": first.why == WHY,
            "lines": [entry_line(entry) for entry in (first, *others)],
        }


def _row(row: Any) -> Any:
    return None if row is None else {name: value for name, value in row.items() if name not in OF_DATABASE}


def _undo(parts: ConsoleParts, visit: Visit, version: int) -> dict[str, Any]:
    """The plan of the undo, or why there is none."""
    try:
        plan = plan_undo(parts.registry, version)
    except (NoUndo, RegistryError) as error:
        return {"undo": None, "no_undo": str(error)}
    has_run = parts.registry.snapshot_for_apply()[1]
    content = plan_content(parts, visit, (plan.stored, has_run), plan.after, plan.changes)
    kept = [f"entity {name} stays as it is: other products and stored rows may need it" for name in plan.kept]
    content["effects"] += kept
    return {"undo": content | {"must_type": " ".join(plan.removed)}, "no_undo": ""}


HISTORY = (
    Screen(path="/history", menu="History", template="history.html", show=show_history),
    Screen(path="/history/version", menu="History", template="version.html", show=show_version, act=undo_version),
)
