"""The JSON Schema (draft 2020-12) of a product's documents, from the declared types.

Every member is there; what may be null says so. Not null are the key columns of a row, and the columns by which a joined row
was found, since null joins nothing. A column of a `one` join is null where nothing was found. What is stored but not
declared is allowed where a level shows whole rows, and not described.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from processor.model.entity import ColumnType, Entity
from processor.model.product import Bare, Column, Fields, Join, Product, Selection, Whole

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
    return heading | _Writer(entities).level(product.root, (), product.selection, product.joins)


class _Writer:
    """Writes the schema of each level."""

    def __init__(self, entities: Mapping[str, Entity]) -> None:
        self._entities = entities

    def level(self, entity: str, found_by: Collection[str], selection: Selection, joins: Sequence[Join]) -> Schema:
        """What a row of `entity` shows, which was found by these of its columns."""
        known = {*self._entities[entity].key, *found_by}
        match selection:
            case Bare(of=column):
                return self._column(entity, known, joins, column)
            case Fields(members=selected):
                named = selected
            case Whole():
                named = tuple((name, Column(name=name)) for name in self._entities[entity].columns)
        members = {name: self._column(entity, known, joins, column) for name, column in named}
        members |= {join.name: self._embed(join) for join in joins if join.shown}
        closed = not isinstance(selection, Whole)
        return {
            "type": "object",
            "properties": members,
            "required": list(members),
            **({"additionalProperties": False} if closed else {}),
        }

    def _embed(self, join: Join) -> Schema:
        shown = self.level(join.entity, join.child_columns, join.selection, join.joins)
        if not join.many:
            return _nullable(shown)
        cut = {} if join.limit is None else {"maxItems": join.limit}
        return {"type": "array", "items": shown, **cut}

    def _column(self, entity: str, known: Collection[str], joins: Sequence[Join], column: Column) -> Schema:
        """A column of the level's own row, of which `known` are not null, or of a `one` join."""
        for name in column.path:
            join = next(join for join in joins if join.name == name)
            entity, joins = join.entity, join.joins
        schema = _typed(self._entities[entity].columns[column.name])
        return schema if column.name in known and not column.path else _nullable(schema)


def _typed(column: ColumnType) -> Schema:
    return {"type": "array", "items": _nullable(_TYPES[column.name])} if column.array else dict(_TYPES[column.name])


def _nullable(schema: Schema) -> Schema:
    """The schema, or null. One without a type allows null already."""
    kind = schema.get("type")
    return schema | {"type": [kind, "null"]} if isinstance(kind, str) else schema
