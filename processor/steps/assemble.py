"""Fetches the rows of one document: the root by key, then level by level what each join of the product finds.

Requests of one level are asked together; siblings that share a slot ask the same query, which is sent once. An index answer is
a hint, and so is an edge: each row's real columns are checked against the join. What to show of the rows, and in which order, is
`processor.model.document`'s matter.
"""

from collections.abc import Iterable
from typing import Any

from processor.model.access import KeyRead
from processor.model.document import Match
from processor.model.elements import join_keys
from processor.model.plan import Node, Plan, ProductPlan
from processor.model.step import Step
from statestore import keys
from statestore.items import read_columns, read_more
from statestore.store import Item

Ask = tuple[Match, Node, str]


def assemble(plan: Plan, product: ProductPlan, root: str) -> Step[Match | None]:
    """The rows of the document whose root has the spelt key `root`; None when that row is not there."""
    (item,) = yield (plan.entities[product.product.root].key(root),)
    columns = read_columns(item) if item is not None else None
    if columns is None:
        return None
    top = Match(columns, read_more(item))
    level = [(top, product.top)]
    while asks := list(_asks(product, level)):
        answers = yield tuple([plan.ask(node.join.entity, node.down, key) for _, node, key in asks])
        level = []
        for (match, node, key), answer in zip(asks, answers, strict=True):
            for found in _rows(node, key, answer):
                match.found[node.join.name].append(found)
                if node.below:
                    level.append((found, node.below))
    return top


def _asks(product: ProductPlan, level: Iterable[tuple[Match, tuple[int, ...]]]) -> Iterable[Ask]:
    for match, nodes in level:
        for index in nodes:
            node = product.nodes[index]
            match.found[node.join.name] = []
            held = join_keys(node.parent_columns, match.columns)
            for key in held if len(held) == 1 else dict.fromkeys(held):
                if key is not None:
                    yield match, node, key


def _rows(node: Node, key: str, answer: Any) -> Iterable[Match]:
    items: Iterable[Item] = answer if not isinstance(node.down, KeyRead) else [answer] if answer is not None else []
    for item in items:
        if keys.entity_of(item["PK"]) != node.join.entity:
            continue
        columns = read_columns(item)
        if columns is not None and key in join_keys(node.child_columns, columns):
            yield Match(columns, read_more(item))
