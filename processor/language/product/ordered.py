"""Joins whose rows an index has in their order (`ordered: true`), so that a read ends at the limit.

Promises: a join without an obstacle shows the same rows, whether a step reads all of them or only the first ones of the order.
Each row must count or not by its own columns alone, and no other part of the product may read the rows behind the limit.

The order of the index is that of the first terms of `order_by` that are columns of the rows (`terms_of`).
"""

from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Final

from processor.language.product.expressions.expression import (
    Aggregate,
    Built,
    Call,
    Column,
    Expression,
    ExpressionNode,
    node_of,
    references,
)
from processor.language.product.product import Join, OrderTerm, Product, expressions, lifted, members_below
from processor.values.entity import Entity
from registry.fields import order_field

_TYPES: Final = ("int", "decimal", "float", "timestamp", "date", "string", "bool")
MOST_TERMS: Final = 4
"""The most terms of an order in an index, so that the name of a row has room."""


def terms_of(join: Join, entity: Entity) -> tuple[tuple[str, bool], ...]:
    """The columns of the rows that begin the order, and whether each descends."""

    def in_index(term: OrderTerm) -> bool:
        by = term.by
        if not isinstance(by, Column) or by.path or by.up or by.name not in entity.columns:
            return False
        declared = entity.columns[by.name]
        return declared.name in _TYPES and not declared.array and not declared.compare

    terms = takewhile(in_index, join.order_by[:MOST_TERMS])
    return tuple((term.by.name, term.descending) for term in terms if isinstance(term.by, Column))


def order_fields(join: Join, entity: Entity) -> tuple[str, ...]:
    """The same as fields of a slot."""
    return tuple(order_field(column, descending) for column, descending in terms_of(join, entity))


def obstacles(product: Product, entities: Mapping[str, Entity | None]) -> Iterator[tuple[str, str]]:
    """Why reads of the ordered joins of a product cannot end at their limits, each with its cure."""
    for _, join in product.walk():
        entity = entities[join.entity]
        found = _obstacle(join, entity) if join.ordered and entity else None
        if found is not None:
            yield f"`{join.name}` is `ordered`, but {found[0]}", found[1]
    for name in dict.fromkeys(_aggregated(product)):
        yield f"`{name}` is `ordered`, but an aggregate reads all its rows", "aggregate a join of its own"


def _obstacle(join: Join, entity: Entity) -> tuple[str, str] | None:
    """Why a read of this join cannot end at its limit, and the cure; None where it can."""
    if join.many and (join.limit is None or not join.shown):
        return "it has no `limit`, so it reads all rows", "add `limit` to an `embed`, or remove `ordered`"
    if not terms_of(join, entity):
        return (
            "its order begins with no column of the rows",
            f"begin `order_by` with a column of `{entity.name}` of type {', '.join(_TYPES)}, that compares as it is",
        )
    if join.total:
        return "`total` counts all rows", "remove one of them"
    if join.distinct:
        return "`distinct` may need rows behind the limit", "remove one of them"
    if join.strong or join.listed:
        kind = "`strong`" if join.strong else "a list join"
        return f"it is {kind}, which no index answers", "remove `ordered`"
    if join.level or join.part or join.lift:
        return "its list has the rows of several joins", "remove `ordered`"
    if join.where is not None and not all(map(_is_own, references(node_of(join.where)))):
        return "its `where` reads other rows", "let `where` read columns of its own rows"
    if any(below.required for _, below in members_below(join.joins)):
        return "a `required` join decides which of its rows count", "remove one of them"
    if join.many and any(True for _ in _joins_above(join)):
        return "another join reads all its rows", "give that join an `on` of its own, or remove `ordered`"
    return None


def _is_own(read: object) -> bool:
    return isinstance(read, Column) and not read.path and not read.up


def _joins_above(join: Join) -> Iterator[Join]:
    """The joins below that belong to the level of the join itself, or above it."""

    def below(joins: tuple[Join, ...], depth: int) -> Iterator[Join]:
        for one in joins:
            if one.lift >= depth:
                yield one
            yield from below(one.joins, depth + 1)

    return below(join.joins, 1)


def _aggregated(product: Product) -> Iterator[str]:
    """The names of the ordered lists whose rows an aggregate reads, so that it needs all of them."""

    def walk(joins: tuple[Join, ...], said: tuple[Expression, ...]) -> Iterator[str]:
        for over in (over for expression in said for over in _overs(node_of(expression))):
            there = joins
            for name in over:
                join = next(one for one in _reachable(there) if one.name == name)
                if join.ordered and join.many:
                    yield join.name
                there = join.joins
        for join in joins:
            own = (*expressions(join.selection), *(term.by for term in join.order_by))
            yield from walk(join.joins, (*own, *(one for one in (join.where, join.key) if one is not None)))

    return walk(product.joins, (*expressions(product.selection), *((product.where,) if product.where else ())))


def _reachable(joins: tuple[Join, ...]) -> Iterator[Join]:
    yield from joins
    yield from (join for _, join in lifted(joins))


def _overs(node: ExpressionNode) -> Iterator[tuple[str, ...]]:
    """The paths of the joins whose rows the aggregates of a node read."""
    match node:
        case Aggregate(over=over):
            yield over
            for part in node.read:
                yield from _overs(part)
        case Call(args=args) | Built(parts=args):
            for arg in args:
                yield from _overs(arg)
