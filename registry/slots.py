"""Assigns slots: a pure, deterministic function of the stored assignments and the needs of joins.

An assignment keeps its slot, since rows are stored under it. The needs of a group get one slot number where possible, so that one
index query without a sort key answers all of them. Columns whose rows such a query would read for nothing get another slot where
one is free. Where none is, the queries of the group stay apart (`processor.engine.plan.compile_plan`).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from registry.errors import NoSlot
from registry.fields import type_text
from registry.model import (
    FIRST_ORDERED,
    Assignment,
    AssignmentState,
    EntityEntry,
    Index,
    JoinAccess,
    JoinSpec,
    ProductEntry,
    RequiredPath,
)

T = TypeVar("T")
Apart = Callable[[Index, Index], bool]
"""Whether two indexes should have different slots."""
_NUMBERS = ("int", "float", "decimal")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedQuery:
    """A query without a pin, which answers several joins of one product: it reads each row whose slot holds the value.

    `kin`: the indexes that the product's joins set equal to the value, directly or through others. `entities`: those of the
    product. `types`: of the value, as `value_types` gives them."""

    kin: frozenset[Index]
    entities: frozenset[str]
    types: tuple[str, ...]

    def strange(self, index: Index, types: tuple[str, ...]) -> bool:
        """Whether the query may read rows of this index for nothing. Serial ids of unrelated tables are equal all the time. A
        text may be a number, too, but in a table that the product reads anyway such rows are few."""
        meets = len(types) == len(self.types) and all(
            one == other or "string" in (one, other) for one, other in zip(types, self.types, strict=True)
        )
        return index not in self.kin and meets and (index[0] not in self.entities or types == self.types)


def value_types(columns: Iterable[str], declared: Mapping[str, str]) -> tuple[str, ...]:
    """The types of the values that an index holds; all numbers have one. `declared`: column -> its type, as text."""
    names = (type_text(column, declared).partition("(")[0] for column in columns)
    return tuple("number" if name in _NUMBERS else name for name in names)


def apart(
    products: Iterable[ProductEntry], paths: Iterable[JoinAccess[RequiredPath]], entities: Iterable[EntityEntry]
) -> Apart:
    """Keeps a shared query away from an index that is strange to each product with that query. `paths`: those of all joins of the
    products."""
    by_join = {access.join: access for access in paths}
    declared = {entity.name: entity.columns for entity in entities}
    shared: dict[Index, list[SharedQuery]] = {}
    for product in products:
        for members, query in _shared_queries(product, by_join, declared):
            for member in members:
                shared.setdefault(member, []).append(query)

    def strange(asked: Index, other: Index) -> bool:
        types = value_types(other[1], declared.get(other[0], {}))
        queries = shared.get(asked, ())
        return bool(queries) and all(query.strange(other, types) for query in queries)

    return lambda one, other: strange(one, other) or strange(other, one)


def _shared_queries(
    product: ProductEntry,
    by_join: Mapping[JoinSpec, JoinAccess[RequiredPath]],
    declared: Mapping[str, Mapping[str, str]],
) -> Iterator[tuple[set[Index], SharedQuery]]:
    """The queries that joins of a product may share, each with the indexes that it asks."""
    sides = list[tuple[Index, Index]]()
    asked: dict[Index, set[Index]] = {}
    for join in product.joins:
        access = by_join[join]
        down = access.down if isinstance(access.down, Index) else join.side("down")
        up = access.up if isinstance(access.up, Index) else join.side("up")
        sides.append((down, up))
        if isinstance(access.down, Index):
            asked.setdefault(up, set()).add(down)
    kinds = equal_groups(sides)
    for asker, members in asked.items():
        if len({name for name, _ in members}) > 1:
            kin = frozenset(index for index, kind in kinds.items() if kind == kinds[asker])
            types = value_types(asker.columns, declared[asker.entity])
            yield members, SharedQuery(kin=kin, entities=product.entities(), types=types)


def assign(
    stored: Sequence[Assignment],
    groups: Sequence[Sequence[Index]],
    slots: int,
    apart: Apart = lambda one, other: False,
) -> tuple[Assignment, ...]:
    """Finds a slot for every need, group by group, first to last.

    A need whose entity and columns, in their order, have an assignment keeps that, best an assignment that serves. (Both sides
    of a join encode its value in the order of the columns.) The other needs of its group take a slot of a member (the slot of
    most members, then the lowest), else the lowest slot that is free for all of them, else each its own lowest. A slot without an
    index to keep apart from comes before all lower ones. An index with an order takes one of the last slots, or none: the joins
    then read all rows by their other index.

    Args:
        stored: the assignments so far; those in state FREE count as absent.
        groups: needs of different entities that should share a slot number.
        slots: n, of GSI_1..GSI_n.
        apart: the indexes that should not share one.

    Returns:
        All assignments, by entity and slot; new ones are PLANNED.

    Raises:
        NoSlot: an entity has n assignments and needs one more.
    """
    board = _Board(slots=slots, apart=apart)
    for one in sorted(stored, key=_preference):
        if one.state is not AssignmentState.FREE:
            board.put(one)
    for group in groups:
        _place(board, group)
        if unserved := next((need for need in board.missing(group) if not need.ordered), None):
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
    apart: Apart
    assigned: dict[Index, Assignment] = field(default_factory=dict)
    taken: dict[tuple[str, int], Assignment] = field(default_factory=dict)

    def put(self, one: Assignment) -> None:
        self.assigned[one.index] = one
        self.taken[one.entity, one.slot] = one

    def missing(self, group: Iterable[Index]) -> Iterator[Index]:
        """The needs of a group without a slot. Each step of the iteration looks at the board of its moment."""
        return (need for need in group if need not in self.assigned)

    def free(self, needs: Iterable[Index]) -> int | None:
        """The lowest slot that is free for all the needs, best one without an index to keep apart from."""
        wanted = {*needs}
        every = range(FIRST_ORDERED if any(need.ordered for need in wanted) else 1, self.slots + 1)
        free = [slot for slot in every if not any((entity, slot) in self.taken for entity, _ in wanted)]
        crowded = {
            one.slot
            for index, one in self.assigned.items()
            if one.slot in free and any(self.apart(need, index) for need in wanted)
        }
        return next((slot for slot in free if slot not in crowded), free[0] if free else None)

    def take(self, need: Index, slot: int) -> None:
        """Gives the slot to the need, unless its entity uses the slot for other columns."""
        if (need.entity, slot) not in self.taken:
            self.put(Assignment(entity=need.entity, slot=slot, columns=need.columns, state=AssignmentState.PLANNED))


def _place(board: _Board, group: Sequence[Index]) -> None:
    """Gives slots to the members of one group that have none. A member for which no slot is free gets none."""
    members = Counter(board.assigned[need].slot for need in dict.fromkeys(group) if need in board.assigned)
    for slot in sorted(members, key=lambda slot: (-members[slot], slot)):
        for need in board.missing(group):
            board.take(need, slot)
    if common := board.free(board.missing(group)):
        for need in board.missing(group):
            board.take(need, common)
    for need in board.missing(group):
        if own := board.free([need]):
            board.take(need, own)


def _no_slot(board: _Board, need: Index, groups: Sequence[Sequence[Index]]) -> NoSlot:
    needed = {one for group in groups for one in group}
    taken = sorted((one for one in board.taken.values() if one.entity == need.entity), key=lambda one: one.slot)
    unused = [one for one in taken if one.index not in needed]
    return NoSlot(need.entity, need.columns, taken, unused)


def _preference(one: Assignment) -> tuple[bool, bool]:
    """Of several assignments of one index, the last of this order answers: one that serves, then one that does not retire."""
    return one.state is AssignmentState.SERVING, one.state is not AssignmentState.RETIRING
