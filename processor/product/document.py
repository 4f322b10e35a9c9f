"""Makes the document from the rows that its joins found: filter, order, limit, selection. Pure, and the same for every store.

1. From the bottom up, each join keeps only the rows that count (`where`, and `required` joins below them), in order.
2. From the top down, each level makes its members in the product's order: first the selected ones, then the embeds.

Rows are ordered by the terms of `order_by`; nulls come last in both directions. Ties, and rows without `order_by`, are ordered by
the row's primary key: column by column, numbers by value, text by code point. A list join has the order of the array above.
"""

import enum
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Final

from processor.product.expressions.evaluate import GROUP, Evaluate, Scope, compile_expression
from processor.product.expressions.evaluate import Match as Match
from processor.product.expressions.expression import Column, Computed, Expression, Type
from processor.product.join_fields import element_values, instants_of, join_keys
from processor.product.join_sides import align_columns
from processor.product.product import BareValue, Fields, Join, Product, Selection, WholeRow
from processor.records.entity import Entity
from processor.records.record import Value
from processor.records.times import to_microseconds

Rank = Callable[[Value], Any]


class Gone(enum.Enum):
    """The type of `GONE`: the root has no document. It fails `where`, or a required join has no row."""

    GONE = "gone"


GONE: Final = Gone.GONE


@dataclass(slots=True, kw_only=True)
class Renderer:
    """Renders documents of one product. `tally` counts, for metrics, lists that a limit `cut` and `one` joins with several rows
    (`ambiguous`)."""

    product: Product
    entities: Mapping[str, Entity]
    tally: Counter[str]
    level: "CompiledLevel" = field(init=False)
    where: Evaluate | None = field(init=False)

    def __post_init__(self) -> None:
        product = self.product
        self.level = CompiledLevel(self.entities[product.root], product.selection, product.joins, self.entities)
        self.where = None if product.where is None else compile_expression(product.where, self.level)

    def document(self, top: Match) -> Value | Gone:
        """The document of the root row `top`, or GONE. Removes from `top` the found rows that do not count."""
        scope: Scope = (top, None)
        self.level.reduce(scope, self.tally)
        if not self.level.complete(top) or (self.where is not None and self.where(scope) is not True):
            return GONE
        return self.level.render(scope)


class CompiledLevel:
    """A compiled level of the tree. `render` makes the level's value from a row, or from a group of rows."""

    __slots__ = ("joins", "render", "required")

    def __init__(
        self, entity: Entity, selection: Selection, joins: Sequence[Join], entities: Mapping[str, Entity]
    ) -> None:
        self.joins = {
            join.name: (CompiledListJoin if join.listed else CompiledJoin)(join, entity, entities) for join in joins
        }
        self.required = tuple(join.name for join in joins if join.required and not join.listed)
        self.render = self._renderer(entity, selection)

    def below(self, join: str) -> "CompiledLevel":
        return self.joins[join].level

    def shown(self, join: str) -> Evaluate:
        return self.joins[join].show

    def reduce(self, scope: Scope, tally: Counter[str]) -> None:
        """Keeps, at this level and at all levels below, only the found rows that count, in order."""
        for joined in self.joins.values():
            joined.reduce(scope, tally)

    def complete(self, match: Match) -> bool:
        """Whether every required join of the row has a row that counts."""
        return all(match.found[name] for name in self.required)

    def _renderer(self, entity: Entity, selection: Selection) -> Evaluate:
        if isinstance(selection, BareValue):
            return compile_expression(selection.expression, self)
        members = self._members(entity, selection)
        embeds = [joined.member for joined in self.joins.values() if joined.join.shown]

        def render(scope: Scope) -> Value:
            document = members(scope)
            for member in embeds:
                member(scope, document)
            return document

        return render if embeds else members

    def _members(self, entity: Entity, selection: WholeRow | Fields) -> Evaluate:
        if isinstance(selection, WholeRow):
            return lambda scope: _whole_row(scope[0], entity)
        own = [(name, of.name) for name, of in selection.members if isinstance(of, Column) and not (of.path or of.up)]
        if len(own) == len(selection.members):
            return lambda scope: {name: scope[0].columns.get(column) for name, column in own}
        members = [(name, compile_expression(of, self)) for name, of in selection.members]
        return lambda scope: {name: evaluate(scope) for name, evaluate in members}


class CompiledJoin:
    """A compiled join below a level."""

    __slots__ = ("_aggregated", "_filtered", "_key", "_order", "join", "level", "where")

    def __init__(self, join: Join, above: Entity, entities: Mapping[str, Entity]) -> None:
        entity = entities[join.entity]
        self.join = join
        self.level = level = CompiledLevel(entity, join.selection, join.joins, entities)
        self._aggregated = join.aggregated
        self.where = None if join.where is None else compile_expression(join.where, level)
        self._filtered = join.where is not None or bool(level.required)
        self._key = _key_rank(entity)
        self._order = [
            (compile_expression(term.by, level), _rank(_type_of(term.by, join, entities)), term.descending)
            for term in reversed(join.order_by)
        ]

    def reduce(self, scope: Scope, tally: Counter[str]) -> None:
        rows, join = scope[0].found[self.join.name], self.join
        if self.level.joins:
            for row in rows:
                self.level.reduce((row, scope), tally)
        if self._filtered:
            rows = [row for row in rows if self._counts((row, scope))]
        if len(rows) > 1:
            rows = self._ordered(rows, scope)
            if not join.many:
                tally["ambiguous"] += 1
                del rows[1:]
            elif join.limit is not None and len(rows) > join.limit:
                tally["cut"] += 1
        scope[0].found[join.name] = rows

    def member(self, scope: Scope, document: dict[str, Value]) -> None:
        """Puts the embed's members into the document."""
        document[self.join.name] = self.show(scope)
        if self.join.total:
            document[f"{self.join.name}_total"] = len(scope[0].found[self.join.name])

    def show(self, scope: Scope) -> Value:
        rows, render = scope[0].found[self.join.name], self.level.render
        if self._aggregated:
            return render((Match(columns={}, more={}, found={GROUP: rows}), scope))
        if self.join.many:
            return [render((row, scope)) for row in rows[: self.join.limit]]
        return render((rows[0], scope)) if rows else None

    def _counts(self, scope: Scope) -> bool:
        return self.level.complete(scope[0]) and (self.where is None or self.where(scope) is True)

    def _ordered(self, rows: list[Match], scope: Scope) -> list[Match]:
        rows = sorted(rows, key=self._key)
        for evaluate, rank, descending in self._order:
            values = [(evaluate((row, scope)), row) for row in rows]
            ranked = [(rank(value), row) for value, row in values if value is not None]
            ranked.sort(key=lambda pair: pair[0], reverse=descending)
            rows = [row for _, row in ranked] + [row for value, row in values if value is None]
        return rows


class CompiledListJoin(CompiledJoin):
    """A compiled list join. A found row occurs once for each element of the array above that finds it."""

    __slots__ = ("_absent", "_child", "_child_instants", "_parent", "_parent_instants")

    def __init__(self, join: Join, above: Entity, entities: Mapping[str, Entity]) -> None:
        super().__init__(join, above, entities)
        self._child, self._parent = align_columns(join, entities[join.entity], above)
        self._child_instants = instants_of(self._child, entities[join.entity])
        self._parent_instants = instants_of(self._parent, above)
        self._absent = self._without_row(entities[join.entity])

    def reduce(self, scope: Scope, tally: Counter[str]) -> None:
        super().reduce(scope, tally)
        elements = self._elements(scope)
        scope[0].found[self.join.name] = [row for rows, _ in elements for row in rows]

    def show(self, scope: Scope) -> Value:
        if self._aggregated:
            return super().show(scope)
        render, shown = self.level.render, []
        for rows, values in self._elements(scope):
            shown += [render((row, scope)) for row in rows]
            if not rows and not self.join.required:
                shown.append(self._absent(dict(zip(self._child, values, strict=True)), scope))
        return shown

    def _elements(self, scope: Scope) -> list[tuple[list[Match], list[Value]]]:
        """For each element of the array: the rows that it finds, and its values of the join columns."""
        rows: dict[str | None, dict[int, Match]] = {}
        for row in scope[0].found[self.join.name]:
            (key,) = join_keys(self._child, row.columns, self._child_instants)
            rows.setdefault(key, {})[id(row)] = row
        keys = join_keys(self._parent, scope[0].columns, self._parent_instants)
        elements = element_values(self._parent, scope[0].columns)
        return [(list(rows.get(key, {}).values()), values) for key, values in zip(keys, elements, strict=True)]

    def _without_row(self, entity: Entity) -> Callable[[Mapping[str, Value], Scope], Value]:
        """Shows an element without a row: all members are null except the join columns, and the joins below are empty."""
        match self.join.selection:
            case BareValue(expression=expression):
                name = _own_column(expression)
                return lambda element, scope: element.get(name)
            case Fields(members=selected):
                members = [(name, _own_column(expression)) for name, expression in selected]
            case WholeRow():
                members = [(name, name) for name in entity.columns]
        nothing = Match(columns=dict.fromkeys(entity.columns), more={}, found={name: [] for name in self.level.joins})
        embeds = [joined.member for joined in self.level.joins.values() if joined.join.shown]

        def absent(element: Mapping[str, Value], scope: Scope) -> Value:
            document = {name: element.get(column) for name, column in members}
            for member in embeds:
                member((nothing, scope), document)
            return document

        return absent


def _own_column(expression: Expression) -> str:
    """The name of the row's own column if the expression is one, else an empty text."""
    return expression.name if isinstance(expression, Column) and not (expression.path or expression.up) else ""


def _whole_row(row: Match, entity: Entity) -> dict[str, Value]:
    return {c: row.columns.get(c) for c in entity.columns} | {c: row.more[c] for c in sorted(row.more)}


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


def _type_of(expression: Expression, join: Join, entities: Mapping[str, Entity]) -> Type:
    """The type of a term of `order_by`. A column of a row above orders nothing, so its type does not matter: None."""
    if isinstance(expression, Computed):
        return expression.node.type
    for step in expression.path:
        join = next(below for below in join.joins if below.name == step)
    return None if expression.up else entities[join.entity].columns[expression.name].name
