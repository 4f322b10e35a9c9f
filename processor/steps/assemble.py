"""Fetches the rows of one document: the root by key, then level by level the rows that each join of the product finds.

The step asks all requests of one level together. Siblings that share a slot ask the same lookup, which the runner sends
once. An index answer is only a hint, and so is an edge: the step checks each row's real columns against the join.
`processor.product.document` decides which rows a document shows, and in which order.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from processor.plan.access import KeyRead
from processor.plan.declared_columns import declared_columns, undeclared_columns
from processor.plan.plan import EntityPlan, JoinPlan, Plan, ProductPlan
from processor.plan.step import Step
from processor.product.document import Match
from statestore.item_attributes import entity_of_item
from statestore.store import Item

Ask = tuple[Match, JoinPlan, str]


def assemble(plan: Plan, product: ProductPlan, root: str, tally: Counter[str] | None = None) -> Step[Match | None]:
    """The rows of the document whose root has the encoded key `root`; None when there is no such row. Counts in `tally` the
    stored values that do not fit their columns."""
    entity = plan.entities[product.product.root]
    (item,) = yield (entity.key(root),)
    columns = declared_columns(item, entity, tally) if item is not None else None
    if columns is None:
        return None
    top = Match(columns, undeclared_columns(item, entity))
    level = [(top, product.top)]
    while asks := list(_asks(product, level)):
        answers = yield tuple([plan.request(node.join.entity, node.down, key) for _, node, key in asks])
        level = []
        for (match, node, key), answer in zip(asks, answers, strict=True):
            for found in _rows(node, plan.entities[node.join.entity], key, answer, tally):
                match.found[node.join.name].append(found)
                if node.below:
                    level.append((found, node.below))
    return top


def _asks(product: ProductPlan, level: Iterable[tuple[Match, tuple[int, ...]]]) -> Iterable[Ask]:
    for match, nodes in level:
        for index in nodes:
            node = product.nodes[index]
            match.found[node.join.name] = []
            found = node.parent_keys(match.columns)
            for key in found if len(found) == 1 else dict.fromkeys(found):
                if key is not None:
                    yield match, node, key


def _rows(node: JoinPlan, entity: EntityPlan, key: str, answer: Any, tally: Counter[str] | None) -> Iterable[Match]:
    by_key = isinstance(node.down, KeyRead)
    items: Iterable[Item] = answer.items if not by_key else [answer] if answer is not None else []
    for item in items:
        if entity_of_item(item) != node.join.entity:
            continue
        columns = declared_columns(item, entity, tally)
        if columns is not None and key in node.child_keys(columns):
            yield Match(columns, undeclared_columns(item, entity))
