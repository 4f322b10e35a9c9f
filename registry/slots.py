"""Which slot holds what: a pure, deterministic function of what is assigned and what is asked for.

Nothing that is assigned ever moves, since rows are stored under it. Needs of one group get one slot number where they
can, so that one index query without a sort key answers them all.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from registry.errors import NoSlot
from registry.model import Assignment, Need, State

_Index = tuple[str, tuple[str, ...]]


def assign(kept: Sequence[Assignment], groups: Sequence[Sequence[Need]], slots: int) -> tuple[Assignment, ...]:
    """Finds a slot for every need, group by group, first to last.

    A need whose entity and columns, in their order, are assigned keeps that (the order is how both sides of a join spell
    its value). The others of its group take a slot that a member
    sits on (the one of most members, then the lowest), else the lowest that is free for all of them, else each its own
    lowest.

    Args:
        kept: the assignments so far; those in state FREE count as absent.
        groups: needs of different entities that should share a slot number.
        slots: n, of GSI_1..GSI_n.

    Returns:
        All assignments, by entity and slot; new ones are PLANNED.

    Raises:
        NoSlot: an entity has n assignments and needs one more.
    """
    board = _Board(slots=slots)
    for one in kept:
        if one.state is not State.FREE:
            board.put(one)
    for group in groups:
        _place(board, group)
        if left := next(board.missing(group), None):
            raise _no_slot(board, left, groups)
    return tuple(sorted(board.held.values(), key=lambda one: (one.entity, one.slot)))


@dataclass(slots=True, kw_only=True)
class _Board:
    """The slots taken so far, by entity, and the assignment of each index."""

    slots: int
    held: dict[_Index, Assignment] = field(default_factory=dict)
    taken: set[tuple[str, int]] = field(default_factory=set)

    def put(self, one: Assignment) -> None:
        self.held[one.entity, one.columns] = one
        self.taken.add((one.entity, one.slot))

    def missing(self, group: Iterable[Need]) -> Iterator[Need]:
        """The needs of a group that have no slot, looked up one by one."""
        return (need for need in group if _index(need) not in self.held)

    def free(self, entities: Iterable[str]) -> int | None:
        """The lowest slot that is free for all the entities."""
        names = set(entities)
        every = range(1, self.slots + 1)
        return next((slot for slot in every if not any((name, slot) in self.taken for name in names)), None)

    def take(self, need: Need, slot: int) -> None:
        """Gives the slot to the need, unless its entity holds something else there."""
        if (need.entity, slot) not in self.taken:
            self.put(Assignment(entity=need.entity, slot=slot, columns=need.columns, state=State.PLANNED))


def _place(board: _Board, group: Sequence[Need]) -> None:
    """Gives slots to the members of one group that have none; leaves those out for which there is none."""
    sat_on = Counter(board.held[_index(need)].slot for need in dict.fromkeys(group) if _index(need) in board.held)
    for slot in sorted(sat_on, key=lambda slot: (-sat_on[slot], slot)):
        for need in board.missing(group):
            board.take(need, slot)
    if common := board.free(need.entity for need in board.missing(group)):
        for need in board.missing(group):
            board.take(need, common)
    for need in board.missing(group):
        if own := board.free([need.entity]):
            board.take(need, own)


def _no_slot(board: _Board, need: Need, groups: Sequence[Sequence[Need]]) -> NoSlot:
    asked = {_index(one) for group in groups for one in group}
    held = sorted((one for one in board.held.values() if one.entity == need.entity), key=lambda one: one.slot)
    unused = [one for one in held if (one.entity, one.columns) not in asked]
    return NoSlot(need.entity, need.columns, held, unused)


def _index(need: Need) -> _Index:
    return need.entity, need.columns
