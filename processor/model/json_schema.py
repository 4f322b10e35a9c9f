"""The JSON Schema (draft 2020-12) of a product's documents, from the declared types.

Every member is there; what may be null says so. Not null are the key columns of a row, and the columns by which a joined row
was found, since null joins nothing. A column of a `one` join is null where nothing was found, and what is computed may be,
but for a count. What is stored but not declared is allowed where a level shows whole rows, and not described.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from processor.model.entity import ColumnType, Entity
from processor.model.expression import Aggregate, Column, Expression, node_of
from processor.model.product import Bare, Fields, Join, Product, Selection, Whole

Schema = dict[str, Any]

_TYPES: Mapping[str, Schema] = {
    "int": {"type": "integer"},
    "string": {"type": "string"},
    "float": {"type": "number"},
    "decimal": {"type": "number"},
    "bool": {"type": "boolean"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
    "json": {},
}


def document_schema(product: Product, entities: Mapping[str, Entity]) -> Schema:
    """The schema of a product's documents. Tombstones are no documents: a message's value may be null, too."""
    heading = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": product.name}
    return heading | _Writer(entities).level(((product.root, product.joins),), (), product.selection)


Rows = tuple[tuple[str, Sequence[Join]], ...]
"""The entity and the joins of each row from the root down to a level."""


class _Writer:
    """Writes the schema of each level."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = entities

    def level(self, rows: Rows, found_by: Collection[str], selection: Selection) -> Schema:
        """What the last of `rows` shows, which was found by these of its columns."""
        entity, joins = rows[-1]
        known = {*self._entities[entity].key, *found_by}
        match selection:
            case Bare(of=expression):
                return self._value(rows, known, expression)
            case Fields(members=selected):
                named = selected
            case Whole():
                named = tuple((name, Column(name=name)) for name in self._entities[entity].columns)
        members = {name: self._value(rows, known, expression) for name, expression in named}
        for join in joins:
            if join.shown:
                members[join.name] = self._embed(rows, join)
                if join.total:
                    members[f"{join.name}_total"] = {"type": "integer"}
        closed = not isinstance(selection, Whole)
        return {
            "type": "object",
            "properties": members,
            "required": list(members),
            **({"additionalProperties": False} if closed else {}),
        }

    def _embed(self, rows: Rows, join: Join) -> Schema:
        shown = self.level((*rows, (join.entity, join.joins)), join.child_columns, join.selection)
        if join.many and join.aggregated:
            return shown
        if not join.many:
            return _nullable(shown)
        cut = {} if join.limit is None else {"maxItems": join.limit}
        return {"type": "array", "items": shown, **cut}

    def _value(self, rows: Rows, known: Collection[str], expression: Expression) -> Schema:
        """What an expression at the last of `rows` gives, of whose columns `known` are not null."""
        node = node_of(expression)
        if not isinstance(node, Column):
            counted = isinstance(node, Aggregate) and node.function == "count"
            schema = {"type": "null"} if node.type is None else dict(_TYPES[node.type])
            return schema if counted else _nullable(schema)
        entity, joins = rows[-1 - node.up]
        for name in node.path:
            join = next(join for join in joins if join.name == name)
            entity, joins = join.entity, join.joins
        schema = _typed(self._entities[entity].columns[node.name])
        return schema if node.name in known and not node.path and not node.up else _nullable(schema)


def _typed(column: ColumnType) -> Schema:
    return {"type": "array", "items": _nullable(_TYPES[column.name])} if column.array else dict(_TYPES[column.name])


def _nullable(schema: Schema) -> Schema:
    """The schema, or null. One without a type allows null already."""
    kind = schema.get("type")
    return schema | {"type": [kind, "null"]} if isinstance(kind, str) and kind != "null" else schema
