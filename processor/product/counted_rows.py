"""The rows of a join that count, in order: those that pass `where`, and that have a row in each `required` join below them.

Products share the rows of a root. Where several products join, filter and order alike, one `CountedRows` serves them all, and
finds its rows once for each row above (`SharedLevel`).

Rows are ordered by the terms of `order_by`; nulls come last in both directions. Ties, and rows without `order_by`, are ordered by
the row's primary key: column by column, numbers by value, text by code point. A list join has the order of the array above.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, Protocol

from processor.product.expressions.evaluate import Match, RowLevel, Scope, compile_expression
from processor.product.expressions.expression import Column, Computed, Expression, Type
from processor.product.join_fields import converted_of, element_values, join_keys
from processor.product.product import Join, WholeRow, align_columns
from processor.records.entity import Entity
from processor.records.record import Value
from processor.records.times import to_microseconds
from registry.column_of import column_of

Rank = Callable[[Value], Any]
Entities = Mapping[str, Entity]


@dataclass(slots=True)
class SharedLevel:
    """The compiled parts that products share at a level of their root's tree: the `rows` of its joins, by the place of the join
    and by all that decides which rows count; the `embeds`, by the place of the join and by the whole join."""

    rows: dict[Any, "CountedRows"] = field(default_factory=dict)
    embeds: dict[Any, Any] = field(default_factory=dict)


class CountingLevel(RowLevel, Protocol):
    """The level of a join's rows as one product sees it."""

    filtered: bool
    """Whether a row counts only with the rows of some joins below it."""

    def complete(self, scope: Scope) -> bool:
        """Whether every required join of the row has a row that counts."""


class CountedRows:
    """The rows of a join that count, for each row above. `place`: where `Match.found` has the rows that the join found. `level`:
    what products share at the level of these rows."""

    __slots__ = ("_complete", "_key", "_many", "_order", "level", "place", "tally", "where")

    def __init__(self, join: Join, place: object, above: Entity, entity: Entity, tally: Counter[str]) -> None:
        self.level = SharedLevel()
        self.place, self.tally = place, tally
        self._many, self._key = join.many, _key_rank(entity)

    def compile(self, join: Join, level: CountingLevel, entities: Entities) -> None:
        """Compiles the conditions and the order of the join, at the level of its rows."""
        self._complete = level.complete if level.filtered else None
        self.where = None if join.where is None else compile_expression(join.where, level)
        self._order = [
            (compile_expression(term.by, level), _rank(_type_of(term.by, join, entities)), term.descending)
            for term in reversed(join.order_by)
        ]

    def of(self, scope: Scope) -> list[Match]:
        """The rows below the row of this scope. The caller must not change the list."""
        found = scope[0].found
        rows: list[Match] | None = found.get(self)
        if rows is None:
            rows = found[self] = self._count(scope)
        return rows

    def _count(self, scope: Scope) -> list[Match]:
        rows: list[Match] = scope[0].found[self.place]
        if self._complete is not None:
            rows = [row for row in rows if self._complete((row, scope))]
        if self.where is not None:
            rows = [row for row in rows if self.where((row, scope)) is True]
        if len(rows) > 1:
            rows = self._ordered(rows, scope)
            if not self._many:
                self.tally["ambiguous"] += 1
                del rows[1:]
        return rows

    def _ordered(self, rows: list[Match], scope: Scope) -> list[Match]:
        rows = sorted(rows, key=self._key)
        for evaluate, rank, descending in self._order:
            values = [(evaluate((row, scope)), row) for row in rows]
            ranked = [(rank(value), row) for value, row in values if value is not None]
            ranked.sort(key=itemgetter(0), reverse=descending)
            rows = [row for _, row in ranked] + [row for value, row in values if value is None]
        return rows


class CountedElements(CountedRows):
    """The rows of a list join that count. A found row occurs once for each element of the array above that finds it."""

    __slots__ = ("_child", "_child_converted", "_parent", "_parent_converted", "columns")

    def __init__(self, join: Join, place: object, above: Entity, entity: Entity, tally: Counter[str]) -> None:
        super().__init__(join, place, above, entity, tally)
        self._child, self._parent = align_columns(join, entity, above)
        self.columns = tuple(map(column_of, self._child))
        self._child_converted = converted_of(self._child, entity)
        self._parent_converted = converted_of(self._parent, above)

    def elements(self, scope: Scope) -> list[tuple[list[Match], list[Value]]]:
        """For each element of the array: the rows that it finds, and its values of the join columns."""
        return self._elements(self.of(scope), scope)

    def _count(self, scope: Scope) -> list[Match]:
        elements = self._elements(super()._count(scope), scope)
        return [row for rows, _ in elements for row in rows]

    def _elements(self, counted: list[Match], scope: Scope) -> list[tuple[list[Match], list[Value]]]:
        rows: dict[str | None, dict[int, Match]] = {}
        for row in counted:
            (key,) = join_keys(self._child, row.columns, self._child_converted)
            rows.setdefault(key, {})[id(row)] = row
        keys = join_keys(self._parent, scope[0].columns, self._parent_converted)
        elements = element_values(self._parent, scope[0].columns)
        return [(list(rows.get(key, {}).values()), values) for key, values in zip(keys, elements, strict=True)]


def counting(join: Join) -> Join:
    """The join without what only shows its rows: joins that are equal so have the same rows that count, in the same order."""
    own = join.where is None and all(isinstance(term.by, Column) and not term.by.path for term in join.order_by)
    below = tuple(one for one in join.joins if one.required) if own else join.joins
    plain = replace(join, name="", shown=False, limit=None, total=False, required=False)
    return replace(plain, selection=WholeRow(), joins=below)


def _rank(type_: Type) -> Rank:
    """The sort key of a type's values: microseconds for timestamps, else the value itself."""
    return to_microseconds if type_ == "timestamp" else _itself


def _itself(value: Value) -> Value:
    return value


def _key_rank(entity: Entity) -> Callable[[Match], Any]:
    """The sort key of rows that `order_by` leaves equal: the columns of their primary key."""
    columns, ranks = itemgetter(*entity.key), [(c, _rank(entity.columns[c].name)) for c in entity.key]
    if all(rank is _itself for _, rank in ranks):
        return lambda row: columns(row.columns)
    return lambda row: [rank(row.columns[c]) for c, rank in ranks]


def _type_of(expression: Expression, join: Join, entities: Entities) -> Type:
    """The type of a term of `order_by`. A column of a row above orders nothing, so its type does not matter: None."""
    if isinstance(expression, Computed):
        return expression.node.type
    for step in expression.path:
        join = next(below for below in join.joins if below.name == step)
    return None if expression.up else entities[join.entity].columns[expression.name].name
