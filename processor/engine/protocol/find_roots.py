"""Finds the documents that a change may alter: from the row's old and new keys, up the tree of each root entity to the root.

At each place of the tree the step goes up once for all products that read one of the changed columns there (rule 8). Where a
join's parent columns are the parent's primary key, the way up is a key read, or no read at all when that parent is the root.
Elsewhere the way up is one page of an index query, or of the edges of one key. A fan-out of each product finds the roots beyond
that page later (`resume`). The step asks all requests of one level together. A recursive join leads up from several places by the
same rows: a step reads each row once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from itertools import product as pairs
from typing import Any

from processor.engine.plan.plan import JoinPlan, Plan, RootTree
from processor.engine.plan.step import Lookup, Root, Step, Touch
from processor.engine.protocol.pending import FanOut, FoundRoots, ResumedFanOut
from registry.model import KeyPath
from statestore import keys
from statestore.items import entity_of_item, key_of_item, read_columns
from statestore.keys import Key
from statestore.store import Item

ParentRow = tuple[str, Mapping[str, Any]]
"""A row on the way up: its sort key and its columns."""


@dataclass(frozen=True, slots=True)
class _Climb:
    """The way up of one step. `fan_outs`: what is left of it; `known`: the rows that it has read by key."""

    plan: Plan
    fan_outs: list[FanOut] = field(default_factory=list)
    known: dict[Key, Item | None] = field(default_factory=dict)


def find_roots(touch: Touch, plan: Plan) -> Step[FoundRoots]:
    """The roots of all products that the touched row may alter."""
    roots: set[Root] = set()
    climb = _Climb(plan)
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


def resume(fan_out: FanOut, plan: Plan) -> Step[ResumedFanOut]:
    """The roots above the next page of a fan-out."""
    product = plan.products[fan_out.product]
    tree = plan.trees[product.product.tree]
    join = product.nodes[fan_out.node]
    (page,) = yield (_page_above(plan, join, fan_out.key, fan_out.after),)
    climb = _Climb(plan)
    rows = list(_holding(tree, join, fan_out.key, page.items))
    parent = tree.node_of(fan_out.product, fan_out.node).join.parent
    found = yield from _above(climb, tree, parent, rows, [fan_out.product])
    roots = frozenset((fan_out.product, sk) for sk in found)
    return ResumedFanOut(fan_out, page.after, FoundRoots(roots, tuple(climb.fan_outs)))


def _keys(join: JoinPlan, touch: Touch) -> set[str]:
    if join.own_slot is None:
        return {touch.row.key.sk}
    now_and_before = chain(touch.row.slots.items(), touch.row.edges, touch.former_keys)
    return {key for where, key in now_and_before if where == join.own_slot and not keys.is_no_key(key)}


def _ascend(climb: _Climb, tree: RootTree, node: int, wanted: set[str], reading: list[str]) -> Step[set[str]]:
    """The sort keys of the roots above the rows of a node that hold one of `wanted`. Keys with more than one page of rows leave
    fan-outs, for each product of `reading`."""
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
        pages = yield tuple([_page_above(plan, join, key) for key in order])
        for key, page in zip(order, pages, strict=True):
            rows += _holding(tree, join, key, page.items)
            if page.after is not None:
                users = tree.nodes[node].users
                climb.fan_outs.extend(FanOut(product, users[product][0], key, page.after) for product in reading)
    return (yield from _above(climb, tree, join.parent, rows, reading))


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
    return (yield from _ascend(climb, tree, parent, wanted, reading))


def _holding(tree: RootTree, join: JoinPlan, key: str, items: Iterable[Item]) -> Iterable[ParentRow]:
    """The rows whose real columns hold the key: an index answer is only a hint. Above the first joins of a group, its groups."""
    group = tree.group if join.parent is None else None
    for item in items:
        if entity_of_item(item) != join.above:
            continue
        columns = read_columns(item)
        if columns is None or key not in join.stored_keys(columns):
            continue
        if group is None:
            yield key_of_item(item).sk, columns
        elif (sk := group.key_of_row(columns)) is not None:
            yield sk, columns


def _own_keys(join: JoinPlan, row: ParentRow) -> list[str | None]:
    """The join keys of a row, to its parents."""
    sk, columns = row
    return [sk] if join.own_slot is None else join.child_keys(columns)
