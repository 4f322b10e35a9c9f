"""One edit of an operator: first its plan, then its confirmation with a reason. The edits are those of the verbs `move`,
`retire`, `add-slots`, `pause`, `resume`, `republish` and `remove --tombstones`.

A plan shows the changes, the rows that the edit lets the job write with their price, and the work that it leaves. A person
confirms exactly this plan: where the registry changed meanwhile, the console refuses the edit, and overwrites nothing.

The history of the registry: who changed what, when and why; each version with its differences, and its undo with a plan.

The slot board: entities by slots, each cell with its columns, its state, the joins and products that it serves, its fill and
its size; the walks, and the last edits.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final

from processor.engine.plan.planning import plan_of
from processor.tools.inspect.board import OF_DATABASE, board_json, entry_line, history_lines, pending_lines, versions_of
from processor.tools.inspect.estimate import index_statistics
from processor.tools.inspect.preview import backfill_text, row_effects
from processor.tools.operate.registry import UndoPlan, plan_undo, undo
from processor.tools.web.answers import LookUpProblem
from processor.tools.web.console.screen import (
    ConsoleParts,
    Content,
    EditDone,
    Screen,
    Visit,
    diff_rows,
    matches,
    time_of,
)
from registry.edits import operations
from registry.edits.edit import Edit, Signature, edited, plan_id
from registry.edits.history import NoUndo
from registry.edits.operations import completed
from registry.errors import RegistryError
from registry.model import MAX_SLOTS, AssignedPath, EntityStatistics, Snapshot, Statistics

Operation = Callable[[Snapshot], Edit]


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorEdit:
    """An edit."""

    title: str
    """With places for the fields of the visit."""
    edit: Callable[..., Edit]
    """The function of the registry."""
    fields: Mapping[str, str]
    """The fields of the visit -> the arguments of the function."""
    more: Mapping[str, bool] = field(default_factory=dict)
    """Its further arguments."""
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
        return self.title.format(**{name: visit.asked(name) for name in self.fields})

    def operation(self, visit: Visit) -> Operation:
        """The function with the fields of the visit."""
        given = {to: visit.number(at) if at in NUMBERS else visit.asked(at) for at, to in self.fields.items()}
        return partial(self.edit, **given, **self.more)


NUMBERS: Final = ("slot", "target", "number")
_SLOT: Final = {"entity": "entity", "slot": "slot"}
_PRODUCT: Final = {"product": "name"}
EDITS: Final[Mapping[str, OperatorEdit]] = {
    "move": OperatorEdit(
        title="Move GSI_{slot} of {entity}", edit=operations.move, fields=_SLOT | {"target": "target"}, to="/slots"
    ),
    "retire": OperatorEdit(title="Retire GSI_{slot} of {entity}", edit=operations.retire, fields=_SLOT, to="/slots"),
    "add-slots": OperatorEdit(
        title="Add slots up to GSI_{number}", edit=operations.add_slots, fields={"number": "slots"}, to="/slots"
    ),
    "pause": OperatorEdit(
        title="Pause {product}", edit=operations.pause, fields=_PRODUCT, more={"paused": True}, to="/products"
    ),
    "resume": OperatorEdit(
        title="Resume {product}", edit=operations.pause, fields=_PRODUCT, more={"paused": False}, to="/products"
    ),
    "republish": OperatorEdit(
        title="Publish all documents of {product} again",
        edit=operations.republish,
        fields=_PRODUCT,
        to="/products",
        publishes=True,
    ),
    "remove": OperatorEdit(
        title="Retire {product}",
        edit=operations.remove,
        fields=_PRODUCT,
        more={"tombstones": True},
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
        "counted_at": time_of(statistics),
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
    given = {name: visit.asked(name) for name in edit.fields}
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

FIRST: Final = 20
"""Versions on a page. Each "Show more" doubles them."""
MOST: Final = 2_000
"""Entries that a page looks at."""


def show_history(parts: ConsoleParts, visit: Visit) -> Content:
    """The last versions, the newest first; those that have the words of a search."""
    limit, search = visit.number("limit") if visit.asked("limit") else FIRST, visit.asked("q")
    versions = list(versions_of(parts.registry.history(MOST)))
    found = [
        one for one in versions if matches(search, one["version"], one["who"], one["why"], one["at"], *one["lines"])
    ]
    return {
        "versions": found[:limit],
        "q": search,
        "of": len(versions),
        "more": limit * 2 if len(found) > limit else None,
    }


def show_version(parts: ConsoleParts, visit: Visit) -> Content:
    """One version: what it changed, its entries with their differences, and what an undo of it does."""
    version, history = visit.number("of"), parts.registry.history()
    changed = [entry for entry in history if entry.version == version]
    if not changed:
        raise LookUpProblem(404, f"the history has no version {version}")
    head = next(one for one in versions_of(history) if one["version"] == version)
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
    applied = undo(parts.registry, plan, parts.settings.dead_letter_topic, reason)
    return EditDone(
        to="/history", message=f"Registry version {applied.version} undoes {version}: {'; '.join(applied.changes)}"
    )


def _check_typed(visit: Visit, plan: UndoPlan) -> None:
    if plan.removed and visit.asked("typed") != " ".join(plan.removed):
        raise LookUpProblem(400, f"type `{' '.join(plan.removed)}`, since the undo deletes its documents")


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

ENTRIES: Final = 60
LAST: Final = 5
"""The versions below the board, and the entries of the history that hold them."""


def show_slots(parts: ConsoleParts, visit: Visit) -> Content:
    """The board, by `slots --json`, with a cell for each slot; of the entities that have the words of a search."""
    registry = parts.registry
    snapshot, statistics = registry.snapshot(), registry.statistics.last()
    counted = {one.entity: one for one in statistics.entities} if statistics else {}
    board = board_json(snapshot, registry.jobs(), registry.progress())
    walks = {walk["walk"]: walk for walk in board["walks"] if not walk["done"]}
    last = max((one.slot for one in snapshot.assignments), default=0)
    board["shown"] = min(last + 1, snapshot.slots)
    board["q"], board["of"] = visit.asked("q"), len(board["entities"])
    board["entities"] = [
        one
        for one in board["entities"]
        if matches(board["q"], one["entity"], *(column for held in one["assignments"] for column in held["columns"]))
    ]
    for entity in board["entities"]:
        name = entity["entity"]
        entity["rows"] = counted[name].rows if name in counted else None
        size = _size(counted.get(name))
        cells = {one["slot"]: _cell(snapshot, name, one, statistics, walks) | size for one in entity["assignments"]}
        entity["cells"] = [cells.get(slot) for slot in range(1, board["shown"] + 1)]
        entity["free"] = free_slots(snapshot, name)
    return board | {
        "pending": list(pending_lines(snapshot)),
        "widening": parts.widening.message,
        "more": list(range(snapshot.slots + 1, MAX_SLOTS + 1)),
        "last": list(versions_of(registry.history(ENTRIES)))[:LAST],
        "counted_at": time_of(statistics),
    }


def _cell(
    snapshot: Snapshot,
    name: str,
    one: Mapping[str, Any],
    statistics: Statistics | None,
    walks: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    state = one["state"]
    fill = walks.get(f"fill {name}") if state in ("writing", "backfilling") else None
    return {
        **one,
        "products": _products(snapshot, name, one["slot"]),
        "fill": {"rows": min(fill["rows"], fill["of"]), "of": fill["of"]} if fill and fill["of"] else None,
        "most": _most(snapshot, statistics, name, one["slot"]),
        "may_move": state == "serving",
        "may_retire": not one["serves"] and state != "retiring",
    }


def _products(snapshot: Snapshot, entity: str, slot: int) -> list[str]:
    """The products whose joins read the slot."""
    joins = {access.join for access in snapshot.joins if any(_is(p, entity, slot) for p in (access.down, access.up))}
    return sorted({one.name for one in (*snapshot.products, *snapshot.waiting) if joins.intersection(one.joins)})


def _is(path: AssignedPath, entity: str, slot: int) -> bool:
    return (getattr(path, "entity", None), getattr(path, "slot", None)) == (entity, slot)


def _size(counted: EntityStatistics | None) -> dict[str, int | None]:
    """The bytes of all entries of an index for this entity."""
    return {"size": round(counted.rows * counted.entry_bytes) if counted and counted.entry_bytes else None}


def _most(snapshot: Snapshot, statistics: Statistics | None, entity: str, slot: int) -> int | None:
    """The most rows that one value of the slot finds: the heat of its hottest key."""
    joins = {
        (access.join, direction)
        for access in snapshot.joins
        for direction, path in (("down", access.down), ("up", access.up))
        if _is(path, entity, slot)
    }
    found = [one.most for one in statistics.joins if (one.join, one.direction) in joins] if statistics else []
    return max(found, default=None)


SLOTS = Screen(path="/slots", menu="Slots", template="slots.html", show=show_slots)
