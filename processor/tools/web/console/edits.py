"""One edit of an operator: first its plan, then its confirmation with a reason. The edits are those of the verbs `move`,
`retire`, `add-slots`, `pause`, `resume`, `republish` and `remove --tombstones`.

A plan shows the changes, the rows that the edit lets the job write with their price, and the work that it leaves. A person
confirms exactly this plan: where the registry changed meanwhile, the console refuses the edit, and overwrites nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from processor.engine.plan.planning import plan_of
from processor.tools.inspect.board import pending_lines
from processor.tools.inspect.estimate import index_statistics
from processor.tools.inspect.history_lines import history_lines
from processor.tools.inspect.preview import backfill_text, row_effects
from processor.tools.web.console.screen import ConsoleParts, Content, EditDone, Screen, Visit
from processor.tools.web.problem import LookUpProblem
from registry.edits import operations
from registry.edits.edit import Edit, edited, plan_id
from registry.edits.operations import completed
from registry.errors import RegistryError
from registry.model import Snapshot

Operation = Callable[[Snapshot], Edit]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorEdit:
    """An edit."""

    title: str
    """With places for the fields of the visit."""
    needs: tuple[str, ...]
    """The fields of the visit."""
    operation: Callable[[Visit], Operation]
    """The function of the registry with these fields."""
    to: str
    """The page that shows its effect."""
    types: str = ""
    """The field whose value a person types, since the edit destroys it."""
    destroys: str = ""
    """The warning of an edit that destroys."""
    publishes: bool = False
    """Whether the job sends a message for each root of the product."""

    def titled(self, visit: Visit) -> str:
        """The title of the page."""
        return self.title.format(**{name: visit.asked(name) for name in self.needs})


def _move(visit: Visit) -> Operation:
    return partial(
        operations.move, entity=visit.asked("entity"), slot=visit.number("slot"), target=visit.number("target")
    )


def _retire(visit: Visit) -> Operation:
    return partial(operations.retire, entity=visit.asked("entity"), slot=visit.number("slot"))


def _paused(*, paused: bool) -> Callable[[Visit], Operation]:
    return lambda visit: partial(operations.pause, name=visit.asked("product"), paused=paused)


EDITS: Final[Mapping[str, OperatorEdit]] = {
    "move": OperatorEdit(
        title="Move GSI_{slot} of {entity}", needs=("entity", "slot", "target"), operation=_move, to="/slots"
    ),
    "retire": OperatorEdit(
        title="Retire GSI_{slot} of {entity}", needs=("entity", "slot"), operation=_retire, to="/slots"
    ),
    "add-slots": OperatorEdit(
        title="Add slots up to GSI_{number}",
        needs=("number",),
        operation=lambda visit: partial(operations.add_slots, slots=visit.number("number")),
        to="/slots",
    ),
    "pause": OperatorEdit(title="Pause {product}", needs=("product",), operation=_paused(paused=True), to="/products"),
    "resume": OperatorEdit(
        title="Resume {product}", needs=("product",), operation=_paused(paused=False), to="/products"
    ),
    "republish": OperatorEdit(
        title="Publish all documents of {product} again",
        needs=("product",),
        operation=lambda visit: partial(operations.republish, name=visit.asked("product")),
        to="/products",
        publishes=True,
    ),
    "remove": OperatorEdit(
        title="Retire {product}",
        needs=("product",),
        operation=lambda visit: partial(operations.remove, name=visit.asked("product"), tombstones=True),
        to="/products",
        types="product",
        destroys="The job replaces every document of this product by a tombstone, then removes the product.",
        publishes=True,
    ),
}


def free_slots(stored: Snapshot, entity: str) -> list[int]:
    """The slots that hold nothing of an entity."""
    held = {one.slot for one in stored.assignments_of(entity)}
    return [slot for slot in range(1, stored.slots + 1) if slot not in held]


MOST_MEANWHILE = 200
"""Entries of the history that a page looks at for the edits of others."""


class PlanOutOfDate(RegistryError):
    """Another edit came between the plan and its confirmation."""

    def __init__(self) -> None:
        super().__init__(
            "the registry moved on after you saw this plan; below is the plan as it is now: look at it, and confirm again"
        )


def as_planned(operation: Operation, planned: str) -> Operation:
    """The operation, which raises PlanOutOfDate unless it does exactly what the plan of this id showed."""

    def checked(stored: Snapshot) -> Edit:
        change = operation(stored)
        if plan_id(edited(stored, change)) != planned:
            raise PlanOutOfDate
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
        return EditDone(to=edit.to, message="The table gets the new indexes; then the registry gets the slots")
    applied = parts.registry.operate(by, operation)
    changes = "; ".join(applied.changes) or "nothing changed"
    return EditDone(to=edit.to, message=f"Registry version {applied.version}: {changes}")


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
