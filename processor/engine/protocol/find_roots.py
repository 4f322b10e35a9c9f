"""Finds the documents that a change may alter: from the row's old and new keys, up the tree of each root entity to the root.

At each place of the tree the step goes up once for all products that read one of the changed columns there (rule 8). Where a
join's parent columns are the parent's primary key, the way up is a key read, or no read at all when that parent is the root.
Elsewhere the way up is one page of an index query, or of the edges of one key. A fan-out of each product finds the roots beyond
that page later (`resume`). The step asks all requests of one level together. A recursive join leads up from several places by the
same rows: a step reads each row once.

The last answers on the way up show the roots. The publish tasks of the round take them from `ShownRows`, in place of another
read. Behind the first level the step asks for the root together with the rows below it, where one query shows both.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from itertools import product as pairs
from typing import Any, NamedTuple

from processor.engine.plan.plan import JoinPlan, Plan, RootTree
from processor.engine.plan.step import Lookup, Root, Step, Touch
from processor.engine.protocol.pending import FanOut, FoundRoots, ResumedFanOut
from registry.model import KeyPath, SlotPath
from statestore import keys
from statestore.items import entity_of_item, key_of_item, read_columns, slot_name
from statestore.keys import Key
from statestore.store import PAGE, Item, Page, Query

ParentRow = tuple[str, Mapping[str, Any]]
"""A row on the way up: its sort key and its columns."""


ROOM = 50_000
"""The most rows that a task hands to the publish tasks with answers that also show rows below roots."""
ROWS_EXPECTED = 25
"""Rows of such an answer, before it is there."""


class ShownRoot(NamedTuple):
    """A root row as an index answer has shown it. `query`: the answer that also shows rows below it, None without one."""

    item: Item
    query: Query | None


@dataclass(slots=True)
class ShownRows:
    """What index answers on the way up have shown, for the publish tasks of the same round: root rows by key, and whole answers.
    `room`: how many more rows of such answers a task keeps.

    An answer of this round is as good as one that a publish task would get now. The overlay of the round lies over both, and no
    change closes within a round. A publisher of a later round has fenced those of this one. A store without an overlay hands over
    nothing: another write task of the round may have written the row since."""

    room: int = ROOM
    rows: dict[Key, ShownRoot] = field(default_factory=dict)
    pages: dict[Query, Page] = field(default_factory=dict)

    def part(self, keys: Collection[Key]) -> "ShownRows":
        """What concerns the roots with these keys."""
        rows = {key: self.rows[key] for key in keys if key in self.rows}
        return ShownRows(
            0, rows, {one.query: self.pages[one.query] for one in rows.values() if one.query in self.pages}
        )

    def take(self, other: "ShownRows") -> None:
        """Takes what another task has seen."""
        self.rows |= other.rows
        self.pages |= other.pages

    def forget(self, key: Key) -> None:
        """Forgets a root, whose publication begins again with reads of its own."""
        if (shown := self.rows.pop(key, None)) is not None and shown.query is not None:
            self.pages.pop(shown.query, None)


@dataclass(frozen=True, slots=True)
class _Climb:
    """The way up of one step. `fan_outs`: what is left of it; `known`: the rows that it has read by key; `shown`: where it keeps
    roots and answers for the publish tasks, None for nowhere."""

    plan: Plan
    shown: ShownRows | None
    fan_outs: list[FanOut] = field(default_factory=list)
    known: dict[Key, Item | None] = field(default_factory=dict)


def find_roots(touch: Touch, plan: Plan, shown: ShownRows | None = None) -> Step[FoundRoots]:
    """The roots of all products that the touched row may alter. Adds to `shown` what the answers showed of them."""
    roots: set[Root] = set()
    climb = _Climb(plan, shown)
    for root, node in plan.places.get(touch.entity, ()):
        tree = plan.trees[root]
        reading = tree.reading(node, touch.changed)
        if not reading:
            continue
        if node is None:
            found = {touch.row.key.sk}
        else:
            wanted = _keys(tree.nodes[node].join, touch)
            found = yield from _ascend(climb, tree, node, wanted, reading)
        roots.update(pairs(reading, found))
    return FoundRoots(frozenset(roots), tuple(climb.fan_outs))


def resume(fan_outs: Sequence[FanOut], plan: Plan, shown: ShownRows | None = None) -> Step[list[ResumedFanOut]]:
    """The roots above the next page of fan-outs, which ask for the same one. `shown`: as for `find_roots`."""
    first = fan_outs[0]
    (page,) = yield (_page_above(plan, plan.products[first.product].nodes[first.node], first.key, first.after),)
    climb = _Climb(plan, shown)
    reading: dict[tuple[str, int], list[FanOut]] = {}
    for fan_out in fan_outs:
        tree = plan.products[fan_out.product].product.tree
        number = plan.trees[tree].node_of(fan_out.product, fan_out.node).number
        reading.setdefault((tree, number), []).append(fan_out)
    roots: dict[str, set[Root]] = {}
    for (name, number), some in reading.items():
        tree_, products = plan.trees[name], [one.product for one in some]
        join = tree_.nodes[number].join
        rows = list(_holding(climb, tree_, join, first.key, page.items, products))
        found = yield from _above(climb, tree_, join.parent, rows, products)
        roots |= {product: {(product, sk) for sk in found} for product in products}
    return [
        ResumedFanOut(
            one,
            page.after,
            FoundRoots(
                frozenset(roots[one.product]),
                tuple([begun for begun in climb.fan_outs if begun.product == one.product]),
            ),
        )
        for one in fan_outs
    ]


def _keys(join: JoinPlan, touch: Touch) -> set[str]:
    if join.own_slot is None:
        return {touch.row.key.sk}
    now_and_before = chain(touch.row.slots.items(), touch.row.edges, touch.former_keys)
    return {key for where, key in now_and_before if where == join.own_slot and not keys.is_no_key(key)}


def _ascend(
    climb: _Climb, tree: RootTree, node: int, wanted: set[str], reading: list[str], *, touched: bool = True
) -> Step[set[str]]:
    """The sort keys of the roots above the rows of a node that hold one of `wanted`. Keys with more than one page of rows leave
    fan-outs, for each product of `reading`. `touched`: these rows are the touched one."""
    plan = climb.plan
    join = tree.nodes[node].join
    if join.parent is None and isinstance(join.up, KeyPath):
        return wanted
    if not wanted:
        return set()
    order = sorted(wanted)
    rows: list[ParentRow] = []
    if isinstance(join.up, KeyPath):
        above = plan.entities[join.above]
        asked = [above.key(sk) for sk in order]
        if new := tuple([key for key in asked if key not in climb.known]):
            climb.known.update(zip(new, (yield new), strict=True))
        items = [climb.known[key] for key in asked]
        rows += [
            (key_of_item(item).sk, columns) for item in items if item and (columns := read_columns(item)) is not None
        ]
    else:
        if not touched:  # an index may not show the touched row yet, so its answer would be asked again
            order = yield from _with_rows_below(climb, tree, join, order, reading, rows)
        pages = yield tuple([_page_above(plan, join, key) for key in order])
        for key, page in zip(order, pages, strict=True):
            rows += _holding(climb, tree, join, key, page.items, reading)
            if page.after is not None:
                users = tree.nodes[node].users
                climb.fan_outs.extend(FanOut(product, users[product][0], key, page.after) for product in reading)
    return (yield from _above(climb, tree, join.parent, rows, reading))


def _with_rows_below(
    climb: _Climb, tree: RootTree, join: JoinPlan, wanted: list[str], reading: list[str], rows: list[ParentRow]
) -> Step[list[str]]:
    """Asks for the roots above a join with the query that the publish tasks ask next, if it shows both the roots and rows below
    them. Adds the roots to `rows`; returns the keys that are still to be asked."""
    shown, left, slot = climb.shown, wanted, _common_slot(climb.plan, tree, join, reading)
    paged: list[str] = []
    while left and shown is not None and shown.room > 0 and slot is not None:
        some, left = left[: shown.room // ROWS_EXPECTED + 1], left[shown.room // ROWS_EXPECTED + 1 :]
        shown.room -= ROWS_EXPECTED * len(some)
        queries = [Query(slot_name(slot), key) for key in some]
        pages = yield tuple(map(Lookup, queries))
        for key, query, page in zip(some, queries, pages, strict=True):
            shown.room += ROWS_EXPECTED - len(page.items)
            if sum(entity_of_item(item) == join.above for item in page.items) > PAGE:
                paged.append(key)
                continue
            shown.pages[query] = page
            rows += _holding(climb, tree, join, key, page.items, reading, query)
    return [*left, *paged]


def _common_slot(plan: Plan, tree: RootTree, join: JoinPlan, reading: Iterable[str]) -> int | None:
    """The slot that a document asks, without a pin, for the rows that hold the key of its root at this join."""
    if join.parent is not None or tree.group is not None or not isinstance(join.up, SlotPath):
        return None
    tops = (plan.products[name].nodes[n] for name in reading for n in plan.products[name].top)
    asked = SlotPath(slot=join.up.slot, pinned=False)
    shared = any(one.down == asked and one.parent_columns == join.parent_columns for one in tops)
    return asked.slot if shared else None


def _page_above(plan: Plan, join: JoinPlan, key: str, after: Key | None = None) -> Lookup:
    """The request for a page of the rows above a join that hold `key`, which is not their primary key."""
    assert not isinstance(join.up, KeyPath)
    return Lookup(plan.source(join.above, join.up, key), paged=True, after=after)


def _above(
    climb: _Climb, tree: RootTree, parent: int | None, rows: list[ParentRow], reading: list[str]
) -> Step[set[str]]:
    """The sort keys of the roots above rows of the node `parent`, None for the root itself."""
    if parent is None:
        return {sk for sk, _ in rows}
    join = tree.nodes[parent].join
    wanted = {key for row in rows for key in _own_keys(join, row) if key is not None}
    return (yield from _ascend(climb, tree, parent, wanted, reading, touched=False))


def _holding(
    climb: _Climb,
    tree: RootTree,
    join: JoinPlan,
    key: str,
    items: Iterable[Item],
    reading: Iterable[str],
    query: Query | None = None,
) -> Iterable[ParentRow]:
    """The rows whose real columns hold the key: an index answer is only a hint. Above the first joins of a group, its groups.
    Keeps the roots among them for the publish tasks. `query`: that of the answer, if these take it too."""
    group = tree.group if join.parent is None else None
    kept = climb.shown.rows if climb.shown and join.parent is None and isinstance(join.up, SlotPath) else None
    if query is None and kept is not None and not climb.plan.shows_root(tree.root, reading):
        kept = None
    for item in items:
        if entity_of_item(item) != join.above:
            continue
        columns = read_columns(item)
        if columns is None or key not in join.stored_keys(columns):
            continue
        if group is None:
            if kept is not None:
                kept[key_of_item(item)] = ShownRoot(item, query)
            yield key_of_item(item).sk, columns
        elif (sk := group.key_of_row(columns)) is not None:
            yield sk, columns


def _own_keys(join: JoinPlan, row: ParentRow) -> list[str | None]:
    """The join keys of a row, to its parents."""
    sk, columns = row
    return [sk] if join.own_slot is None else join.child_keys(columns)
