"""Assigns slots: a pure, deterministic function of the stored assignments and the needs of joins.

An assignment keeps its slot, since rows are stored under it. The needs of a group get one slot number where possible, so that one
index query without a sort key answers all of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from registry.errors import NoSlot
from registry.model import Assignment, AssignmentState, Need

_Index = tuple[str, tuple[str, ...]]
T = TypeVar("T")


def assign(stored: Sequence[Assignment], groups: Sequence[Sequence[Need]], slots: int) -> tuple[Assignment, ...]:
    """Finds a slot for every need, group by group, first to last.

    A need whose entity and columns, in their order, have an assignment keeps that, best an assignment that serves. (Both sides
    of a join encode its value in the order of the columns.) The other needs of its group take a slot of a member (the slot of
    most members, then the lowest), else the lowest slot that is free for all of them, else each its own lowest.

    Args:
        stored: the assignments so far; those in state FREE count as absent.
        groups: needs of different entities that should share a slot number.
        slots: n, of GSI_1..GSI_n.

    Returns:
        All assignments, by entity and slot; new ones are PLANNED.

    Raises:
        NoSlot: an entity has n assignments and needs one more.
    """
    board = _Board(slots=slots)
    for one in sorted(stored, key=_preference):
        if one.state is not AssignmentState.FREE:
            board.put(one)
    for group in groups:
        _place(board, group)
        if unserved := next(board.missing(group), None):
            raise _no_slot(board, unserved, groups)
    return tuple(board.taken[place] for place in sorted(board.taken))


def equal_groups(pairs: Iterable[tuple[T, T]]) -> dict[T, T]:
    """Groups the members that pairs set equal, directly or through other members. Slots with columns of one group hold the same
    kind of value.

    Returns:
        Each member -> the member that names its group: of two groups that a pair joins, the first one's.
    """
    named: dict[T, T] = {}
    for first, second in pairs:
        kept, dropped = named.get(first, first), named.get(second, second)
        named |= {first: kept, second: kept} | {member: kept for member, name in named.items() if name == dropped}
    return named


@dataclass(slots=True, kw_only=True)
class _Board:
    """`taken`: all assignments so far by (entity, slot); `assigned`: the assignment of each index."""

    slots: int
    assigned: dict[_Index, Assignment] = field(default_factory=dict)
    taken: dict[tuple[str, int], Assignment] = field(default_factory=dict)

    def put(self, one: Assignment) -> None:
        self.assigned[one.entity, one.columns] = one
        self.taken[one.entity, one.slot] = one

    def missing(self, group: Iterable[Need]) -> Iterator[Need]:
        """The needs of a group without a slot. Each step of the iteration looks at the board of its moment."""
        return (need for need in group if _index(need) not in self.assigned)

    def free(self, entities: Iterable[str]) -> int | None:
        """The lowest slot that is free for all the entities."""
        names = set(entities)
        every = range(1, self.slots + 1)
        return next((slot for slot in every if not any((name, slot) in self.taken for name in names)), None)

    def take(self, need: Need, slot: int) -> None:
        """Gives the slot to the need, unless its entity uses the slot for other columns."""
        if (need.entity, slot) not in self.taken:
            self.put(Assignment(entity=need.entity, slot=slot, columns=need.columns, state=AssignmentState.PLANNED))


def _place(board: _Board, group: Sequence[Need]) -> None:
    """Gives slots to the members of one group that have none. A member for which no slot is free gets none."""
    members = Counter(
        board.assigned[_index(need)].slot for need in dict.fromkeys(group) if _index(need) in board.assigned
    )
    for slot in sorted(members, key=lambda slot: (-members[slot], slot)):
        for need in board.missing(group):
            board.take(need, slot)
    if common := board.free(need.entity for need in board.missing(group)):
        for need in board.missing(group):
            board.take(need, common)
    for need in board.missing(group):
        if own := board.free([need.entity]):
            board.take(need, own)


def _no_slot(board: _Board, need: Need, groups: Sequence[Sequence[Need]]) -> NoSlot:
    needed = {_index(one) for group in groups for one in group}
    taken = sorted((one for one in board.taken.values() if one.entity == need.entity), key=lambda one: one.slot)
    unused = [one for one in taken if (one.entity, one.columns) not in needed]
    return NoSlot(need.entity, need.columns, taken, unused)


def _preference(one: Assignment) -> tuple[bool, bool]:
    """Of several assignments of one index, the last of this order answers: one that serves, then one that does not retire."""
    return one.state is AssignmentState.SERVING, one.state is not AssignmentState.RETIRING


def _index(need: Need) -> _Index:
    return need.entity, need.columns
