"""The slots board: which slot of which entity holds what, and which joins it serves. Pure; prints nothing."""

from collections.abc import Iterator
from typing import Any

from registry.lifecycle import reads
from registry.model import KEY, Answer, Direction, EntityEntry, Snapshot

_DIRECTIONS: tuple[Direction, ...] = ("down", "up")


def board(snapshot: Snapshot) -> str:
    """A text table of entity x slot, slots that nobody uses left out, no line end after the last row.

    A cell holds the columns joined by `#`, the state when it is not serving, and the joins: `down from user` answers
    the way from a user to its rows here, `up from star` the way from a star to its rows here. Key reads stand under
    the key, and edges with theirs below them.
    """
    last = max((one.slot for one in snapshot.assignments), default=0)
    slots = range(1, last + 1)
    header = [["entity"], ["key"], *([f"GSI_{slot}"] for slot in slots)]
    rows = [
        [[entity.name], _key_cell(snapshot, entity), *(_slot_cell(snapshot, entity.name, slot) for slot in slots)]
        for entity in snapshot.entities
    ]
    return "\n".join(_lines([header, *rows]))


def board_json(snapshot: Snapshot) -> dict[str, Any]:
    """The board as JSON values: `{version, slots, entities: [{entity, key, key_serves, assignments: [...]}]}`."""
    return {
        "version": snapshot.version,
        "slots": snapshot.slots,
        "entities": [
            {
                "entity": entity.name,
                "key": list(entity.key),
                "key_serves": _serves(snapshot, entity.name, KEY),
                "edges": [
                    {"fields": list(one.fields), "serves": _serves(snapshot, entity.name, one)}
                    for one in snapshot.edges()
                    if one.entity == entity.name
                ],
                "assignments": [
                    {
                        "slot": one.slot,
                        "columns": list(one.columns),
                        "state": str(one.state),
                        "serves": _serves(snapshot, entity.name, one),
                    }
                    for one in snapshot.of(entity.name)
                ],
            }
            for entity in snapshot.entities
        ],
    }


def _key_cell(snapshot: Snapshot, entity: EntityEntry) -> list[str]:
    lines = ["#".join(entity.key), *_serves(snapshot, entity.name, KEY)]
    for one in snapshot.edges():
        if one.entity == entity.name:
            lines += [f"edges {'#'.join(one.fields)}", *_serves(snapshot, entity.name, one)]
    return lines


def _slot_cell(snapshot: Snapshot, entity: str, slot: int) -> list[str]:
    held = next((one for one in snapshot.of(entity) if one.slot == slot), None)
    if held is None:
        return []
    state = [] if reads(held.state) else [f"({held.state})"]
    return ["#".join(held.columns), *state, *_serves(snapshot, entity, held)]


def _serves(snapshot: Snapshot, entity: str, at: Answer) -> list[str]:
    """The joins that ask this entity through one assignment, its edges or its key: `up from pull_request, star`."""
    askers = {
        direction: sorted({asker for asker, place in _asked(snapshot, entity, direction) if place == at})
        for direction in _DIRECTIONS
    }
    return [f"{direction} from {', '.join(names)}" for direction, names in askers.items() if names]


def _asked(snapshot: Snapshot, entity: str, direction: Direction) -> Iterator[tuple[str, Answer]]:
    """Who asks the entity in this direction, and where."""
    for access in snapshot.joins:
        if access.join.side(direction)[0] != entity:
            continue
        asker = access.join.parent if direction == "down" else access.join.child
        yield asker, access.down if direction == "down" else access.up


def _lines(rows: list[list[list[str]]]) -> Iterator[str]:
    """Rows of cells of lines as aligned text, with a rule below the first row."""
    widths = [max(len(line) for row in rows for line in [*row[column], ""]) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        height = max(len(cell) for cell in row)
        for line in range(height):
            cells = (cell[line] if line < len(cell) else "" for cell in row)
            yield "  ".join(text.ljust(width) for text, width in zip(cells, widths, strict=True)).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)
