"""The slots board: for each entity, the columns of its slots and the joins that they serve. Pure; prints nothing."""

from collections.abc import Iterator
from typing import Any

from registry.lifecycle import reads
from registry.model import KEY, AssignedPath, Direction, EntityEntry, Snapshot

_DIRECTIONS: tuple[Direction, ...] = ("down", "up")


def board_rows(snapshot: Snapshot) -> list[list[str]]:
    """The rows of the board, the header first: entity, key, and GSI_1 up to the last slot in use.

    A cell has several lines: the columns joined by `#`, the state when it is not serving, and the joins. `down from user`
    answers the way from a user to its rows here, `up from star` the way from a star to its rows here. The key's cell holds
    its key reads, and below them each edge with its joins.
    """
    last = max((one.slot for one in snapshot.assignments), default=0)
    slots = range(1, last + 1)
    header = [["entity"], ["key"], *([f"GSI_{slot}"] for slot in slots)]
    rows = [
        [[entity.name], _key_cell(snapshot, entity), *(_slot_cell(snapshot, entity.name, slot) for slot in slots)]
        for entity in snapshot.entities
    ]
    return [["\n".join(cell) for cell in row] for row in [header, *rows]]


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
                    for one in snapshot.edge_paths()
                    if one.entity == entity.name
                ],
                "assignments": [
                    {
                        "slot": one.slot,
                        "columns": list(one.columns),
                        "state": str(one.state),
                        "serves": _serves(snapshot, entity.name, one),
                    }
                    for one in snapshot.assignments_of(entity.name)
                ],
            }
            for entity in snapshot.entities
        ],
    }


def _key_cell(snapshot: Snapshot, entity: EntityEntry) -> list[str]:
    lines = ["#".join(entity.key), *_serves(snapshot, entity.name, KEY)]
    for one in snapshot.edge_paths():
        if one.entity == entity.name:
            lines += [f"edges {'#'.join(one.fields)}", *_serves(snapshot, entity.name, one)]
    return lines


def _slot_cell(snapshot: Snapshot, entity: str, slot: int) -> list[str]:
    assignment = next((one for one in snapshot.assignments_of(entity) if one.slot == slot), None)
    if assignment is None:
        return []
    state = [] if reads(assignment.state) else [f"({assignment.state})"]
    return ["#".join(assignment.columns), *state, *_serves(snapshot, entity, assignment)]


def _serves(snapshot: Snapshot, entity: str, path: AssignedPath) -> list[str]:
    """The joins that read this entity through one assignment, its edges or its key: `up from pull_request, star`."""
    readers = {
        direction: sorted({reader for reader, used in _readers(snapshot, entity, direction) if used == path})
        for direction in _DIRECTIONS
    }
    return [f"{direction} from {', '.join(names)}" for direction, names in readers.items() if names]


def _readers(snapshot: Snapshot, entity: str, direction: Direction) -> Iterator[tuple[str, AssignedPath]]:
    """The entities whose joins read `entity` in this direction, and the path of each."""
    for access in snapshot.joins:
        if access.join.side(direction)[0] != entity:
            continue
        asker = access.join.parent if direction == "down" else access.join.child
        yield asker, access.down if direction == "down" else access.up
