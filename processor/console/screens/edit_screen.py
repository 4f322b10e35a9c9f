"""One edit of an operator: first its plan, then its confirmation with a reason."""

from collections.abc import Iterator
from typing import Any

from processor.console.console_parts import ConsoleParts
from processor.console.operator_edits import EDITS, OperatorEdit, free_slots
from processor.console.planned_edit import as_planned, planned_operation
from processor.console.screen import Content, EditDone, Screen
from processor.console.visit import Visit
from processor.serve.problem import LookUpProblem
from registry.model import Snapshot


def show_edit(parts: ConsoleParts, visit: Visit) -> Content:
    """The plan of the edit that the address names. A move without a target asks for it first."""
    kind, edit = _edit(visit)
    given = {name: visit.asked(name) for name in edit.needs}
    content: dict[str, Any] = {
        "edit": kind,
        "title": edit.titled(visit),
        "given": given,
        "back": edit.to,
        "destroys": edit.destroys,
        "must_type": given.get(edit.types, ""),
    }
    stored = parts.registry.snapshot()
    if "target" in given:
        content["targets"] = free_slots(stored, given["entity"])
        if not given["target"]:
            return content | {"plan": None}
    plan = planned_operation(parts, visit, edit.operation(visit))
    plan["effects"] += list(_messages(parts, stored, given.get("product", ""))) if edit.publishes else []
    return content | {"plan": plan}


def make_edit(parts: ConsoleParts, visit: Visit) -> EditDone:
    """Makes the edit, if its plan is still that of the page."""
    by, (kind, edit) = visit.signature(), _edit(visit)
    if edit.types and visit.asked("typed") != visit.asked(edit.types):
        raise LookUpProblem(400, f"type `{visit.asked(edit.types)}` to confirm")
    operation = as_planned(edit.operation(visit), visit.asked("plan"))
    if kind == "add-slots":
        operation(parts.registry.snapshot())
        parts.widening.start(parts.registry, by, visit.number("number"))
        return EditDone(to=edit.to, said="The table gets the new indexes; then the registry gets the slots")
    applied = parts.registry.operate(by, operation)
    changes = "; ".join(applied.changes) or "nothing changed"
    return EditDone(to=edit.to, said=f"Registry version {applied.version}: {changes}")


def _edit(visit: Visit) -> tuple[str, OperatorEdit]:
    kind = visit.asked("edit")
    if kind not in EDITS:
        raise LookUpProblem(404, f"there is no edit `{kind}`; there are {', '.join(EDITS)}")
    return kind, EDITS[kind]


def _messages(parts: ConsoleParts, stored: Snapshot, product: str) -> Iterator[str]:
    """How many messages the job sends, by the statistics of the root's rows."""
    roots = [one.root for one in (*stored.products, *stored.waiting) if one.name == product]
    statistics = parts.registry.statistics.last()
    counted = [one.rows for one in statistics.entities if one.entity in roots] if statistics else []
    about = (
        f"about {counted[0]:,} messages" if counted else "a message for each root: `statestore statistics` counts them"
    )
    yield f"the job sends {about} to the topic of {product}, in turn with its batches"


EDIT = Screen(path="/edit", menu="Slots", template="edit.html", show=show_edit, act=make_edit)
