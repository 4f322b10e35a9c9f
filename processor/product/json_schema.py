"""Writes the JSON Schema (draft 2020-12) of a product's documents, from the declared types.

Every member is present, and its schema shows whether it may be null. Never null: the key columns of a row, and the columns by
which a join found a row, since null joins nothing. A column of a `one` join is null if no row was found, unless the join is
required. A computed value may be null, except `count` and literals. Levels that show whole rows allow undeclared columns, without
a schema for them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from processor.product.expressions.expression import Aggregate, Column, Expression, Literal, Path, Shown, node_of
from processor.product.join_fields import type_of
from processor.product.product import BareValue, Fields, Join, Product, Selection, WholeRow
from processor.records.entity import ColumnType, Entity

Schema = dict[str, Any]

_SCHEMAS: Mapping[str, Schema] = {
    "int": {"type": "integer"},
    "string": {"type": "string"},
    "float": {"type": "number", "format": "double"},
    "decimal": {"type": "number"},
    "bool": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
    "json": {},
}


def document_schema(product: Product, entities: Mapping[str, Entity]) -> Schema:
    """The schema of a product's documents. The null value of a tombstone is not a document, and not in the schema."""
    heading = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": product.name}
    return heading | _SchemaWriter(entities).document(product)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SchemaLevel:
    """A level of the tree. `known`: the columns that are never null in its rows. `absent`: the level may show an element of a
    list join without a row, so that all columns but the join columns may be null. `anything`: join columns that then show a
    json value of any type."""

    entity: Entity
    known: Collection[str]
    joins: Sequence[Join]
    above: "_SchemaLevel | None" = None
    absent: bool = False
    anything: Collection[str] = ()


class _SchemaWriter:
    """Writes the schema of each level."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = entities

    def document(self, product: Product) -> Schema:
        """The schema of the whole document."""
        root = self._entities[product.root]
        return self._shown(product.selection, _SchemaLevel(entity=root, known=root.key, joins=product.joins))

    def _shown(self, selection: Selection, level: _SchemaLevel) -> Schema:
        """The schema of the value that a level makes of a row."""
        match selection:
            case BareValue(expression=expression):
                return self._value(expression, level)
            case Fields(members=selected):
                named = selected
            case WholeRow():
                named = tuple((name, Column(name=name)) for name in level.entity.columns)
        members = {name: self._value(expression, level) for name, expression in named}
        for join in level.joins:
            if join.shown:
                members[join.name] = self._embed(join, level)
                members |= {f"{join.name}_total": {"type": "integer"}} if join.total else {}
        closed = {} if isinstance(selection, WholeRow) else {"additionalProperties": False}
        return {"type": "object", "properties": members, "required": list(members), **closed}

    def _embed(self, join: Join, above: _SchemaLevel) -> Schema:
        shown = self._shown(join.selection, self._below(join, above))
        if join.aggregated or (not join.many and join.required and not above.absent):
            return shown
        if not join.many:
            return _nullable(shown)
        cut = {} if join.limit is None else {"maxItems": join.limit}
        return {"type": "array", "items": shown, **cut}

    def _below(self, join: Join, above: _SchemaLevel) -> _SchemaLevel:
        entity = self._entities[join.entity]
        if not join.listed or join.required:
            return _SchemaLevel(entity=entity, known={*entity.key, *join.child_columns}, joins=join.joins, above=above)
        anything = {child for child, parent in join.on if type_of(parent, above.entity).name == "json"}
        return _SchemaLevel(entity=entity, known=(), joins=join.joins, above=above, absent=True, anything=anything)

    def _value(self, expression: Expression, level: _SchemaLevel) -> Schema:
        """The schema of an expression, also for an element without a row."""
        schema = self._of_row(expression, level)
        return _nullable(schema) if level.absent else schema

    def _of_row(self, expression: Expression, level: _SchemaLevel) -> Schema:
        """The schema of an expression of a row: a column of the row, of a row above or of a `one` join, or a computed value."""
        node = node_of(expression)
        if isinstance(node, Column):
            if node.name in level.anything and not (node.up or node.path):
                return {}
            for _ in range(node.up):
                assert level.above is not None, node
                level = level.above
            found, at = self._reach(node.path, level)
            schema = _column_schema(at.entity.columns[node.name])
            return schema if found and node.name in at.known else _nullable(schema)
        if isinstance(node, Shown):
            found, at = self._reach(node.path[:-1], level)
            schema = self._embed(_join_named(at.joins, node.path[-1]), at)
            return schema if found else _nullable(schema)
        schema = {"type": "null"} if node.type is None else dict(_SCHEMAS[node.type])
        counted = isinstance(node, Aggregate) and node.function == "count"
        return schema if counted or isinstance(node, Literal) else _nullable(schema)

    def _reach(self, path: Path, level: _SchemaLevel) -> tuple[bool, _SchemaLevel]:
        """Whether a path of `one` joins always reaches a row, and the level at its end."""
        found = True
        for name in path:
            join = _join_named(level.joins, name)
            found, level = found and join.required, self._below(join, level)
        return found, level


def _join_named(joins: Sequence[Join], name: str) -> Join:
    return next(join for join in joins if join.name == name)


def _column_schema(column: ColumnType) -> Schema:
    return {"type": "array", "items": _nullable(_SCHEMAS[column.name])} if column.array else dict(_SCHEMAS[column.name])


def _nullable(schema: Schema) -> Schema:
    """The schema, which allows null, too. A schema without a type allows null already."""
    kind = schema.get("type")
    return schema | {"type": [kind, "null"]} if isinstance(kind, str) and kind != "null" else schema
