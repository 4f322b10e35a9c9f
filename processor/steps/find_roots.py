"""Finds the documents that a change may alter: from the row's old and new keys, up each product's tree to the root.

A product is left at once where the change altered no column that it reads at that place (rule 8). The way up is a key read
where the join's parent columns are the parent's primary key (and no read at all when that parent is the root: its key is
known), else one index query; all requests of one level are asked together.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from processor.model.plan import KeyRead, Node, Plan, ProductPlan, SlotRead
from processor.model.step import Request, Step
from processor.model.touch import Root, Touch
from statestore import keys
from statestore.items import read_columns
from statestore.store import Item

Found = tuple[str, Mapping[str, Any]]
"""A row on the way up: its sort key and its columns."""


def find_roots(touch: Touch, plan: Plan) -> Step[set[Root]]:
    """The roots of all products that the touched row may alter."""
    roots: set[Root] = set()
    for name, index in plan.places.get(touch.entity, ()):
        product = plan.products[name]
        used = product.used if index is None else product.nodes[index].used
        if touch.changed is not None and not (touch.changed if used is None else touch.changed & used):
            continue
        if index is None:
            roots.add((name, touch.row.key.sk))
        else:
            node = product.nodes[index]
            found = yield from _ascend(plan, product, node, _keys(node, touch))
            roots.update((name, sk) for sk in found)
    return roots


def _keys(node: Node, touch: Touch) -> set[str]:
    if node.own_slot is None:
        return {touch.row.key.sk}
    now_and_before = touch.row.keys() | touch.left
    return {key for slot, key in now_and_before if slot == node.own_slot}


def _ascend(plan: Plan, product: ProductPlan, node: Node, wanted: set[str]) -> Step[set[str]]:
    """The sort keys of the roots above the rows of `node`'s parent that hold one of `wanted`."""
    while wanted:
        above = plan.entities[node.above]
        if node.parent is None and isinstance(node.up, KeyRead):
            return wanted
        order = sorted(wanted)
        requests: tuple[Request, ...]
        if isinstance(node.up, SlotRead):
            requests = tuple(plan.query(node.above, node.up, key) for key in order)
            answers = yield requests
            rows = [row for key, items in zip(order, answers, strict=True) for row in _holding(node, key, items)]
        else:
            requests = tuple(above.key(sk) for sk in order)
            answers = yield requests
            rows = [
                (item["SK"], columns)
                for item in answers
                if item is not None and (columns := read_columns(item)) is not None
            ]
        if node.parent is None:
            return {sk for sk, _ in rows}
        node = product.nodes[node.parent]
        wanted = {key for row in rows if (key := _own_key(node, row)) is not None}
    return set()


def _holding(node: Node, key: str, items: Iterable[Item]) -> Iterable[Found]:
    """An index answer is a hint: only the rows whose real columns hold the key."""
    for item in items:
        if keys.entity_of(item["PK"]) != node.above:
            continue
        columns = read_columns(item)
        if columns is not None and keys.spell([columns.get(c) for c in node.parent_columns]) == key:
            yield item["SK"], columns


def _own_key(node: Node, row: Found) -> str | None:
    """The key by which a row of `node` joins its parent."""
    sk, columns = row
    return sk if node.own_slot is None else keys.spell([columns.get(c) for c in node.child_columns])
