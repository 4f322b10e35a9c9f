"""Joins whose rows an index has in their order (`ordered: true`), so that a read ends at the limit.

Promises: a join without an obstacle shows the same rows, whether a step reads all of them or only the first ones of the order.
Each row counts or not by its own columns alone, and nothing else reads the rows behind the limit: no list with a `limit` has
aggregates or joins that do.

The order of the index is that of the first terms of `order_by` that are columns of the rows (`terms_of`).
"""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

from processor.language.product.expressions.expression import Column, node_of, reads_clock, references
from processor.language.product.product import Join, OrderTerm, Product, members_below
from processor.values.entity import Entity
from registry.fields import order_field

_TYPES: Final = ("int", "decimal", "float", "timestamp", "date", "string", "bool")
MOST_TERMS: Final = 4
"""The most terms of an order in an index, so that the name of a row has room."""


def terms_of(join: Join, entity: Entity) -> tuple[tuple[str, bool], ...]:
    """The columns of the rows that begin the order, and whether each descends."""

    def in_index(term: OrderTerm) -> bool:
        declared = entity.columns.get(term.by.name) if isinstance(term.by, Column) and _is_own(term.by) else None
        return declared is not None and declared.name in _TYPES and not declared.array and not declared.compare

    terms = takewhile(in_index, join.order_by[:MOST_TERMS])
    return tuple((term.by.name, term.descending) for term in terms if isinstance(term.by, Column))


def order_fields(join: Join, entity: Entity) -> tuple[str, ...]:
    """The same as fields of a slot."""
    return tuple(order_field(column, descending) for column, descending in terms_of(join, entity))


def obstacles(product: Product, entities: Mapping[str, Entity | None]) -> Iterator[tuple[str, str]]:
    """Why reads of the ordered joins of a product cannot end at their limits, each with its cure."""
    for _, join in product.walk():
        entity = entities[join.entity]
        found = obstacle(join, entity) if join.ordered and entity else None
        if found is not None:
            yield f"`{join.name}` is `ordered`, but {found[0]}", found[1]


def obstacle(join: Join, entity: Entity) -> tuple[str, str] | None:
    """Why a read of this join cannot end at its limit, and the cure; None where it can."""
    if join.many and (join.limit is None or not join.shown):
        return "it has no `limit`, so it reads all rows", "add `limit` to an `embed`, or remove `ordered`"
    if join.total or join.distinct:
        return f"`{'total' if join.total else 'distinct'}` reads rows behind the limit", "remove one of them"
    if join.strong or join.listed:
        kind = "`strong`" if join.strong else "a list join"
        return f"it is {kind}, which no index answers", "remove `ordered`"
    if join.level or join.part or join.lift:
        return "its list has the rows of several joins", "remove `ordered`"
    if not terms_of(join, entity):
        return (
            "its order begins with no column of the rows",
            f"begin `order_by` with a column of `{entity.name}` of type {', '.join(_TYPES)}, that compares as it is",
        )
    if join.where is not None and reads_clock(node_of(join.where)):
        return "its `where` reads the clock, which other rows may meet later", "remove `ordered`"
    if join.where is not None and not all(map(_is_own, references(node_of(join.where)))):
        return "its `where` reads other rows", "let `where` read columns of its own rows"
    if any(below.required for _, below in members_below(join.joins)):
        return "a `required` join decides which of its rows count", "remove one of them"
    return None


def _is_own(read: object) -> bool:
    return isinstance(read, Column) and not read.path and not read.up
