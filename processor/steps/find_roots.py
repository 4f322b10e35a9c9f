"""Finds the documents that a change may alter: from the row's old and new keys, up each product's tree to the root.

The step skips a product that reads none of the changed columns at that place (rule 8). Where a join's parent columns
are the parent's primary key, the way up is a key read, or no read at all when that parent is the root. Elsewhere the
way up is one page of an index query, or of the edges of one key. A fan-out finds the roots beyond that page later
(`resume`). The step asks all requests of one level together.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from processor.plan.access import KeyRead
from processor.plan.plan import JoinPlan, Plan, ProductPlan
from processor.plan.step import Lookup, Step
from processor.plan.touch import Root, Touch
from processor.progress.fan_outs import FanOut, FoundRoots, ResumedFanOut
from statestore import keys
from statestore.item_attributes import entity_of_item, key_of_item
from statestore.items import read_columns
from statestore.keys import Key
from statestore.store import Item

ParentRow = tuple[str, Mapping[str, Any]]
"""A row on the way up: its sort key and its columns."""


def find_roots(touch: Touch, plan: Plan) -> Step[FoundRoots]:
    """The roots of all products that the touched row may alter."""
    roots: set[Root] = set()
    fan_outs: list[FanOut] = []
    for name, index in plan.occurrences.get(touch.entity, ()):
        product = plan.products[name]
        used = product.used if index is None else product.nodes[index].used
        if touch.changed is not None and not (touch.changed if used is None else touch.changed & used):
            continue
        if index is None:
            roots.add((name, touch.row.key.sk))
        else:
            roots |= yield from _ascend(plan, product, index, _keys(product.nodes[index], touch), fan_outs)
    return FoundRoots(frozenset(roots), tuple(fan_outs))


def resume(fan_out: FanOut, plan: Plan) -> Step[ResumedFanOut]:
    """The roots above the next page of a fan-out."""
    product = plan.products[fan_out.product]
    node = product.nodes[fan_out.node]
    (page,) = yield (_page_above(plan, node, fan_out.key, fan_out.after),)
    fan_outs: list[FanOut] = []
    roots = yield from _above(plan, product, node, list(_holding(node, fan_out.key, page.items)), fan_outs)
    return ResumedFanOut(fan_out, page.after, FoundRoots(frozenset(roots), tuple(fan_outs)))


def _keys(node: JoinPlan, touch: Touch) -> set[str]:
    if node.own_slot is None:
        return {touch.row.key.sk}
    now_and_before = chain(touch.row.slots.items(), touch.row.edges, touch.former_keys)
    return {key for where, key in now_and_before if where == node.own_slot and not keys.is_no_key(key)}


def _ascend(plan: Plan, product: ProductPlan, index: int, wanted: set[str], fan_outs: list[FanOut]) -> Step[set[Root]]:
    """The roots above the rows of a node that hold one of `wanted`. Keys with more than one page of rows go to
    `fan_outs`."""
    node = product.nodes[index]
    name = product.product.name
    if node.parent is None and isinstance(node.up, KeyRead):
        return {(name, key) for key in wanted}
    if not wanted:
        return set()
    order = sorted(wanted)
    rows: list[ParentRow] = []
    if isinstance(node.up, KeyRead):
        above = plan.entities[node.above]
        items = yield tuple([above.key(sk) for sk in order])
        rows += [
            (key_of_item(item).sk, columns) for item in items if item and (columns := read_columns(item)) is not None
        ]
    else:
        pages = yield tuple([_page_above(plan, node, key) for key in order])
        for key, page in zip(order, pages, strict=True):
            rows += _holding(node, key, page.items)
            if page.after is not None:
                fan_outs.append(FanOut(name, index, key, page.after))
    return (yield from _above(plan, product, node, rows, fan_outs))


def _page_above(plan: Plan, node: JoinPlan, key: str, after: Key | None = None) -> Lookup:
    """The request for a page of the rows above `node` that hold `key`, which is not their primary key."""
    assert not isinstance(node.up, KeyRead)
    return Lookup(plan.source(node.above, node.up, key), paged=True, after=after)


def _above(
    plan: Plan, product: ProductPlan, node: JoinPlan, rows: list[ParentRow], fan_outs: list[FanOut]
) -> Step[set[Root]]:
    """The roots above rows that were found above `node`."""
    if node.parent is None:
        return {(product.product.name, sk) for sk, _ in rows}
    parent = product.nodes[node.parent]
    wanted = {key for row in rows for key in _own_keys(parent, row) if key is not None}
    return (yield from _ascend(plan, product, node.parent, wanted, fan_outs))


def _holding(node: JoinPlan, key: str, items: Iterable[Item]) -> Iterable[ParentRow]:
    """The rows whose real columns hold the key: an index answer is only a hint."""
    for item in items:
        if entity_of_item(item) != node.above:
            continue
        columns = read_columns(item)
        if columns is not None and key in node.parent_keys(columns):
            yield key_of_item(item).sk, columns


def _own_keys(node: JoinPlan, row: ParentRow) -> list[str | None]:
    """The keys by which a row of `node` joins its parents."""
    sk, columns = row
    return [sk] if node.own_slot is None else node.child_keys(columns)
