"""Makes the document from the rows that its joins found: order, limit, selection. Pure, and the same for every store.

Members stand in the product's order: what the level selects, then its embeds. Order is by the terms of `order_by`, nulls last
either way, ties and the default by the row's primary key: column by column, numbers by value, text by code point.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from processor.model.change import Value
from processor.model.entity import Entity
from processor.model.product import Bare, Column, Fields, Join, Order, Product, Selection, Whole


@dataclass(slots=True, kw_only=True)
class Match:
    """A row's columns, `more` the undeclared ones, and, by the name of each join below it, the rows that the join found."""

    columns: Mapping[str, Value]
    more: Mapping[str, Value]
    found: "dict[str, list[Match]]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Renderer:
    """Renders documents of one product. `tally` counts what a reader of metrics should know: `cut` lists, `ambiguous` ones."""

    product: Product
    entities: Mapping[str, Entity]
    tally: Counter[str]

    def document(self, top: Match) -> Value:
        """The document below the root row `top`."""
        return self._level(top, self.product.root, self.product.selection, self.product.joins)

    def _level(self, match: Match, entity: str, selection: Selection, joins: Sequence[Join]) -> Value:
        match selection:
            case Bare():
                return self._reach(match, joins, selection.of)
            case Fields():
                document = {name: self._reach(match, joins, of) for name, of in selection.members}
            case Whole():
                document = _whole(match, self.entities[entity])
        for join in joins:
            if join.shown:
                document[join.name] = self._shown(match.found[join.name], join)
        return document

    def _shown(self, matches: list[Match], join: Join) -> Value:
        chosen = self._chosen(matches, join)
        if len(chosen) < len(matches):
            self.tally["cut" if join.many else "ambiguous"] += 1
        shown = [self._level(m, join.entity, join.selection, join.joins) for m in chosen]
        if join.many:
            return shown
        return shown[0] if shown else None

    def _chosen(self, matches: list[Match], join: Join) -> list[Match]:
        """The rows of a join that count, in order."""
        ordered = self._ordered(matches, join) if len(matches) > 1 else matches
        return ordered[: join.limit if join.many else 1]

    def _ordered(self, matches: list[Match], join: Join) -> list[Match]:
        entity = self.entities[join.entity]
        matches = sorted(matches, key=lambda m: [_rank(m.columns[c], entity, c) for c in entity.key])
        for order in reversed(join.order_by):
            matches = self._by(order, matches, join)
        return matches

    def _by(self, order: Order, matches: list[Match], join: Join) -> list[Match]:
        entity, joins, column = self.entities[join.entity], join.joins, order.by
        for step in column.path:
            below = next(j for j in joins if j.name == step)
            entity, joins = self.entities[below.entity], below.joins
        ranked, nulls = [], []
        for match in matches:
            value = self._reach(match, join.joins, column)
            if value is None:
                nulls.append(match)
            else:
                ranked.append((_rank(value, entity, column.name), match))
        ranked.sort(key=lambda pair: pair[0], reverse=order.descending)
        return [match for _, match in ranked] + nulls

    def _reach(self, match: Match, joins: Sequence[Join], column: Column) -> Value:
        for step in column.path:
            join = next(j for j in joins if j.name == step)
            below = self._chosen(match.found[step], join)
            if not below:
                return None
            match, joins = below[0], join.joins
        return match.columns.get(column.name)


def _whole(row: Match, entity: Entity) -> dict[str, Value]:
    return {c: row.columns.get(c) for c in entity.columns} | {c: row.more[c] for c in sorted(row.more)}


def _rank(value: Any, entity: Entity, column: str) -> Any:
    """What a value is compared by: a timestamp without its `Z`, so that 10:00:00 comes before 10:00:00.5."""
    return value[:-1] if entity.columns[column].name == "timestamp" else value
