"""The rows of other entities that hold a join key of a row: by the joins of all products, from both sides."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from processor.plan.access import Access
from processor.plan.declared_columns import declared_columns
from processor.plan.plan import EntityPlan, Plan
from processor.plan.product_plan import JoinPlan
from processor.plan.step import Step
from processor.product.product import Columns
from statestore.item_attributes import entity_of_item
from statestore.store import Page


class Reference(NamedTuple):
    """The rows of `entity` whose `columns` hold a join key of the row: their primary keys, column by column."""

    entity: str
    columns: Columns
    keys: tuple[Mapping[str, Any], ...]


class _Side(NamedTuple):
    """The other side of a join of the row: its entity and columns, how to find its rows, and the keys to ask for."""

    entity: str
    columns: Columns
    access: Access
    keys: tuple[str, ...]
    node: JoinPlan
    below: bool


def references(plan: Plan, entity: str, columns: Mapping[str, Any]) -> Step[tuple[Reference, ...]]:
    """The rows that refer to a row of `entity` with these columns, and those that it refers to, by entity and columns."""
    found: dict[tuple[str, Columns], dict[tuple[Any, ...], Mapping[str, Any]]] = {}
    for side in _sides(plan, entity, columns):
        other = plan.entities[side.entity]
        rows = found.setdefault((side.entity, side.columns), {})
        answers = yield tuple(plan.request(side.entity, side.access, key) for key in side.keys)
        for key, answer in zip(side.keys, answers, strict=True):
            for row in _rows(answer, other):
                held = side.node.child_keys(row) if side.below else side.node.parent_keys(row)
                if key in held and (side.entity != entity or _key_of(row, other) != _key_of(columns, other)):
                    primary = _key_of(row, other)
                    rows[tuple(primary.values())] = primary
    return tuple(Reference(*at, tuple(rows.values())) for at, rows in sorted(found.items()))


def _sides(plan: Plan, entity: str, columns: Mapping[str, Any]) -> Iterator[_Side]:
    for product in plan.products.values():
        for node in product.nodes:
            if node.above == entity:
                keys = tuple(key for key in node.parent_keys(columns) if key is not None)
                yield _Side(node.join.entity, node.child_columns, node.down, keys, node, True)
            if node.join.entity == entity:
                keys = tuple(key for key in node.child_keys(columns) if key is not None)
                yield _Side(node.above, node.parent_columns, node.up, keys, node, False)


def _rows(answer: Any, entity: EntityPlan) -> Iterator[Mapping[str, Any]]:
    items = answer.items if isinstance(answer, Page) else [answer] if answer is not None else []
    for item in items:
        if entity_of_item(item) == entity.name and (row := declared_columns(item, entity)) is not None:
            yield row


def _key_of(row: Mapping[str, Any], entity: EntityPlan) -> dict[str, Any]:
    return {name: row[name] for name in entity.entity.key}
