"""The slot board: entities by slots, each cell with its columns, its state, the joins and products that it serves, its fill and
its size; the walks, and the last edits."""

from collections.abc import Mapping
from typing import Any, Final

from processor.tools.inspect.board import board_json, pending_lines
from processor.tools.web.console.edits import free_slots
from processor.tools.web.console.history import versions_of
from processor.tools.web.console.screen import ConsoleParts, Content, Screen, Visit
from registry.model import MAX_SLOTS, AssignedPath, Snapshot, Statistics

ENTRIES: Final = 60
LAST: Final = 5
"""The versions below the board, and the entries of the history that hold them."""


def show_slots(parts: ConsoleParts, _: Visit) -> Content:
    """The board, as `slots --json` has it, with a cell for each slot."""
    registry = parts.registry
    snapshot, statistics = registry.snapshot(), registry.statistics.last()
    board = board_json(snapshot, registry.jobs(), registry.progress())
    walks = {walk["walk"]: walk for walk in board["walks"] if not walk["done"]}
    last = max((one.slot for one in snapshot.assignments), default=0)
    board["shown"] = min(last + 1, snapshot.slots)
    for entity in board["entities"]:
        entity["rows"] = _rows(statistics, entity["entity"])
        cells = {one["slot"]: _cell(snapshot, entity, one, statistics, walks) for one in entity["assignments"]}
        entity["cells"] = [cells.get(slot) for slot in range(1, board["shown"] + 1)]
        entity["free"] = free_slots(snapshot, entity["entity"])
    return board | {
        "pending": list(pending_lines(snapshot)),
        "widening": parts.widening.message,
        "more": list(range(snapshot.slots + 1, MAX_SLOTS + 1)),
        "last": list(versions_of(registry.history(ENTRIES)))[:LAST],
        "counted_at": statistics.taken_at.isoformat(timespec="seconds") if statistics else None,
    }


def _cell(
    snapshot: Snapshot,
    entity: Mapping[str, Any],
    one: Mapping[str, Any],
    statistics: Statistics | None,
    walks: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    name, state = entity["entity"], one["state"]
    fill = walks.get(f"fill {name}") if state in ("writing", "backfilling") else None
    return {
        **one,
        "products": _products(snapshot, name, one["slot"]),
        "fill": {"rows": min(fill["rows"], fill["of"]), "of": fill["of"]} if fill and fill["of"] else None,
        "size": _size(statistics, name),
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


def _rows(statistics: Statistics | None, entity: str) -> int | None:
    return next((one.rows for one in statistics.entities if one.entity == entity), None) if statistics else None


def _size(statistics: Statistics | None, entity: str) -> int | None:
    """The bytes of all entries of an index for this entity."""
    found = [one for one in statistics.entities if one.entity == entity and one.entry_bytes] if statistics else []
    return round(found[0].rows * (found[0].entry_bytes or 0)) if found else None


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
