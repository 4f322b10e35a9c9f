"""Finds the documents that a change may alter: from the row's old and new keys, up each product's tree to the root.

A product is left at once where the change altered no column that it reads at that place (rule 8). The way up is a key read
where the join's parent columns are the parent's primary key (and no read at all when that parent is the root: its key is
known), else one page of an index query, or of the edges of one key: what lies beyond it is left for later, and gone on with by
`resume`. All requests of one level are asked together.
"""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from processor.model.access import EdgeRead, KeyRead, SlotRead
from processor.model.elements import join_keys
from processor.model.fan_out import FanOut, Found, Resumed
from processor.model.plan import Node, Plan, ProductPlan
from processor.model.step import EdgePage, Paged, Step
from processor.model.touch import Root, Touch
from statestore import keys
from statestore.items import read_columns
from statestore.keys import Key
from statestore.store import Item

Climbed = tuple[str, Mapping[str, Any]]
"""A row on the way up: its sort key and its columns."""


def find_roots(touch: Touch, plan: Plan) -> Step[Found]:
    """The roots of all products that the touched row may alter."""
    roots: set[Root] = set()
    rest: list[FanOut] = []
    for name, index in plan.places.get(touch.entity, ()):
        product = plan.products[name]
        used = product.used if index is None else product.nodes[index].used
        if touch.changed is not None and not (touch.changed if used is None else touch.changed & used):
            continue
        if index is None:
            roots.add((name, touch.row.key.sk))
        else:
            roots |= yield from _ascend(plan, product, index, _keys(product.nodes[index], touch), rest)
    return Found(frozenset(roots), tuple(rest))


def resume(fan_out: FanOut, plan: Plan) -> Step[Resumed]:
    """The roots above the next page of a fan-out."""
    product = plan.products[fan_out.product]
    node = product.nodes[fan_out.node]
    (page,) = yield (_page_above(plan, node, fan_out.key, fan_out.after),)
    rest: list[FanOut] = []
    roots = yield from _above(plan, product, node, list(_holding(node, fan_out.key, page.items)), rest)
    return Resumed(fan_out, page.after, Found(frozenset(roots), tuple(rest)))


def _keys(node: Node, touch: Touch) -> set[str]:
    if node.own_slot is None:
        return {touch.row.key.sk}
    now_and_before = chain(touch.row.slots.items(), touch.row.edges, touch.left)
    return {key for where, key in now_and_before if where == node.own_slot and not keys.is_no_key(key)}


def _ascend(plan: Plan, product: ProductPlan, index: int, wanted: set[str], rest: list[FanOut]) -> Step[set[Root]]:
    """The roots above the rows of a node that hold one of `wanted`; what one page cannot tell goes to `rest`."""
    node = product.nodes[index]
    name = product.product.name
    if node.parent is None and isinstance(node.up, KeyRead):
        return {(name, key) for key in wanted}
    if not wanted:
        return set()
    order = sorted(wanted)
    rows: list[Climbed] = []
    if isinstance(node.up, KeyRead):
        above = plan.entities[node.above]
        items = yield tuple([above.key(sk) for sk in order])
        rows += [(item["SK"], columns) for item in items if item and (columns := read_columns(item)) is not None]
    else:
        pages = yield tuple([_page_above(plan, node, key) for key in order])
        for key, page in zip(order, pages, strict=True):
            rows += _holding(node, key, page.items)
            if page.after is not None:
                rest.append(FanOut(name, index, key, page.after))
    return (yield from _above(plan, product, node, rows, rest))


def _page_above(plan: Plan, node: Node, key: str, after: Key | None = None) -> Paged | EdgePage:
    """The request for a page of the rows above `node` that hold `key`, which is not their primary key."""
    if isinstance(node.up, EdgeRead):
        return EdgePage(plan.edges(node.above, node.up, key), after)
    assert isinstance(node.up, SlotRead)
    return Paged(plan.query(node.above, node.up, key), after)


def _above(plan: Plan, product: ProductPlan, node: Node, rows: list[Climbed], rest: list[FanOut]) -> Step[set[Root]]:
    """The roots above rows that were found above `node`."""
    if node.parent is None:
        return {(product.product.name, sk) for sk, _ in rows}
    parent = product.nodes[node.parent]
    wanted = {key for row in rows for key in _own_keys(parent, row) if key is not None}
    return (yield from _ascend(plan, product, node.parent, wanted, rest))


def _holding(node: Node, key: str, items: Iterable[Item]) -> Iterable[Climbed]:
    """An index answer is a hint: only the rows whose real columns hold the key."""
    for item in items:
        if keys.entity_of(item["PK"]) != node.above:
            continue
        columns = read_columns(item)
        if columns is not None and key in join_keys(node.parent_columns, columns):
            yield item["SK"], columns


def _own_keys(node: Node, row: Climbed) -> list[str | None]:
    """The keys by which a row of `node` joins its parents."""
    sk, columns = row
    return [sk] if node.own_slot is None else join_keys(node.child_columns, columns)
