"""The type of a product's documents, from the declared types: a tree of objects, lists and values.

Every member is present, and its type says whether it may be null. Never null: the key columns of a row, and the join columns
of a row that was found, since null joins nothing. A column of a `one` join is null if no row was found, unless the join is
required. A computed value may be null, except `count` and literals. This module writes it as

    JSON Schema   (draft 2020-12) Levels that show whole rows allow undeclared columns, without a schema for them
    mapping       for an index of OpenSearch or Elasticsearch. A text is searched by its words, and under `.keyword` as a whole. A
                  list of rows is an object, as the index itself would choose. The index keeps every member, but searches only
                  those that are declared: a json column, undeclared columns and lists by a key are not searched

`avro.py` writes the type as an Avro schema.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Final

from processor.errors import StatestoreError
from processor.language.product.expressions.expression import (
    Aggregate,
    Built,
    Column,
    Computed,
    Depth,
    Expression,
    Literal,
    Path,
    Shown,
    node_of,
)
from processor.language.product.join_fields import type_of
from processor.language.product.product import (
    BareValue,
    Fields,
    Join,
    Product,
    Selection,
    WholeRow,
    embeds,
    gathered_paths,
    join_at,
    root_entity,
)
from processor.values.entity import ColumnType, Entity


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueType:
    """A value that is no row. `column`: the declared type, or that of a computed value; None: always null."""

    column: ColumnType | None
    nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectType:
    """An object of a row. `undeclared`: how many members come before the undeclared columns of a whole row; None: the object has
    no others than `members`."""

    members: tuple[tuple[str, "DocumentType"], ...]
    undeclared: int | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListType:
    """A list of rows. `most`: the limit of the join."""

    items: "DocumentType"
    most: int | None = None
    nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MapType:
    """An object of rows by a text that each of them has."""

    items: "DocumentType"
    most: int | None = None
    nullable: bool = False


DocumentType = ValueType | ObjectType | ListType | MapType


def document_type(product: Product, entities: Mapping[str, Entity]) -> DocumentType:
    """The type of a product's documents. The null value of a tombstone is not a document."""
    root = root_entity(product, entities)
    return _TypeReader(entities).shown(product.selection, _TypedLevel(entity=root, known=root.key, joins=product.joins))


@dataclass(frozen=True, slots=True, kw_only=True)
class _TypedLevel:
    """A level of the tree. `known`: the columns that are never null in its rows. `absent`: the level may show an element of a
    list join without a row, so that all columns but the join columns may be null. `anything`: join columns that then show a
    json value of any type."""

    entity: Entity
    known: Collection[str]
    joins: Sequence[Join]
    above: "_TypedLevel | None" = None
    absent: bool = False
    anything: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class _TypeReader:
    """Reads the type of each level."""

    entities: Mapping[str, Entity]

    def shown(self, selection: Selection, level: _TypedLevel) -> DocumentType:
        """The type of the value that a level makes of a row."""
        match selection:
            case BareValue(expression=expression):
                return self._value(expression, level)
            case Fields(members=selected):
                named = selected
            case WholeRow():
                named = tuple((name, Column(name=name)) for name in level.entity.columns)
        members = {name: self._value(expression, level) for name, expression in named}
        undeclared = len(members) if isinstance(selection, WholeRow) else None
        for path, join in embeds(level.joins):
            members[join.name] = self._embed(path, level)
            if join.total:
                members[f"{join.name}_total"] = ValueType(column=ColumnType(name="int"))
        return ObjectType(members=tuple(members.items()), undeclared=undeclared)

    def _embed(self, path: Path, level: _TypedLevel) -> DocumentType:
        """The type of what the join at a path makes of its rows."""
        join = join_at(level.joins, path)
        shown = self.shown(join.selection, self._at(path, level))
        if join.parts:
            paths = gathered_paths(level.joins, path)[1:]
            shown = reduce(
                _united, (self.shown(join_at(level.joins, at).selection, self._at(at, level)) for at in paths), shown
            )
        if join.aggregated or (not join.many and join.required and not level.absent):
            return shown
        if join.key is not None:
            return MapType(items=shown, most=join.limit)
        return ListType(items=shown, most=join.limit) if join.many else replace(shown, nullable=True)

    def _at(self, path: Path, level: _TypedLevel) -> _TypedLevel:
        """The level of the rows at the end of a path of joins."""
        for name in path:
            level = self._below(join_at(level.joins, (name,)), level)
        return level

    def _below(self, join: Join, above: _TypedLevel) -> _TypedLevel:
        entity = self.entities[join.entity]
        if not join.listed or join.required:
            return _TypedLevel(entity=entity, known={*entity.key, *join.child_columns}, joins=join.joins, above=above)
        anything = {child for child, parent in join.on if type_of(parent, above.entity).name == "json"}
        return _TypedLevel(entity=entity, known=(), joins=join.joins, above=above, absent=True, anything=anything)

    def _value(self, expression: Expression, level: _TypedLevel) -> DocumentType:
        """The type of an expression, also for an element without a row."""
        found = self._of_row(expression, level)
        return replace(found, nullable=True) if level.absent else found

    def _of_row(self, expression: Expression, level: _TypedLevel) -> DocumentType:
        """The type of an expression of a row: a column of the row, of a row above or of a `one` join, or a computed value."""
        node = node_of(expression)
        if isinstance(node, Column):
            if node.name in level.anything and not (node.up or node.path):
                return ValueType(column=ColumnType(name="json"))
            for _ in range(node.up):
                assert level.above is not None, node
                level = level.above
            found, at = self._reach(node.path, level)
            known = found and node.name in at.known
            return ValueType(column=at.entity.columns[node.name], nullable=not known)
        if isinstance(node, Shown):
            if node.flat:
                return self._embed(node.path, level)
            found, at = self._reach(node.path[:-1], level)
            shown = self._embed(node.path[-1:], at)
            return shown if found else replace(shown, nullable=True)
        if isinstance(node, Built):
            return self._built(node, level)
        if isinstance(node, Aggregate) and node.function == "array_agg":
            return ValueType(column=ColumnType(name=node.takes or "json", array=True), nullable=True)
        counted = isinstance(node, Aggregate) and node.function == "count"
        return ValueType(
            column=None if node.type is None else ColumnType(name=node.type),
            nullable=not (counted or isinstance(node, Literal | Depth)),
        )

    def _built(self, node: Built, level: _TypedLevel) -> DocumentType:
        """The type of an object; an array, whose elements may differ, is json."""
        if node.names is None:
            return ValueType(column=ColumnType(name="json"))
        parts = (part if isinstance(part, Column) else Computed(text="", node=part) for part in node.parts)
        members = tuple(self._of_row(part, level) for part in parts)
        return ObjectType(members=tuple(zip(node.names, members, strict=True)))

    def _reach(self, path: Path, level: _TypedLevel) -> tuple[bool, _TypedLevel]:
        """Whether a path of `one` joins always reaches a row, and the level at its end."""
        found = True
        for name in path:
            join = join_at(level.joins, (name,))
            found, level = found and join.required, self._below(join, level)
        return found, level


def _united(one: DocumentType, other: DocumentType) -> DocumentType:
    """The type of values of both types, which have the same members of the same kinds."""
    nullable = one.nullable or other.nullable
    if isinstance(one, ObjectType) and isinstance(other, ObjectType):
        members = tuple((name, _united(a, b)) for (name, a), (_, b) in zip(one.members, other.members, strict=True))
        return replace(one, members=members, nullable=nullable)
    if isinstance(one, ValueType) and isinstance(other, ValueType) and one.column != other.column:
        if one.column is None or other.column is None:
            return ValueType(column=one.column or other.column, nullable=True)
        return ValueType(column=ColumnType(name=one.column.name, array=one.column.array), nullable=nullable)
    return replace(one, nullable=nullable)


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
    return heading | _schema(document_type(product, entities))


def _schema(of: DocumentType) -> Schema:
    """The schema of a part of the document."""
    match of:
        case ValueType(column=column):
            schema: Schema = {"type": "null"} if column is None else _column_schema(column)
        case ObjectType(members=members):
            properties = {name: _schema(member) for name, member in members}
            closed = {} if of.undeclared is not None else {"additionalProperties": False}
            schema = {"type": "object", "properties": properties, "required": list(properties), **closed}
        case ListType(items=items, most=most):
            schema = {"type": "array", "items": _schema(items), **({} if most is None else {"maxItems": most})}
        case MapType(items=items, most=most):
            limit = {} if most is None else {"maxProperties": most}
            schema = {"type": "object", "additionalProperties": _schema(items), **limit}
    return _nullable(schema) if of.nullable else schema


def _column_schema(column: ColumnType) -> Schema:
    return {"type": "array", "items": _nullable(_SCHEMAS[column.name])} if column.array else dict(_SCHEMAS[column.name])


def _nullable(schema: Schema) -> Schema:
    """The schema, which allows null, too. A schema without a type allows null already."""
    kind = schema.get("type")
    return schema | {"type": [kind, "null"]} if isinstance(kind, str) and kind != "null" else schema


IndexMapping = dict[str, Any]

_KEPT: Final = {"type": "object", "enabled": False}
_KINDS: Final[Mapping[str, IndexMapping]] = {
    "int": {"type": "long"},
    "string": {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}},
    "float": {"type": "double"},
    "decimal": {"type": "double"},
    "bool": {"type": "boolean"},
    "date": {"type": "date", "format": "strict_date"},
    "timestamp": {"type": "date", "format": "strict_date_optional_time"},
    "json": _KEPT,
}


def index_mapping(product: Product, entities: Mapping[str, Entity]) -> IndexMapping:
    """The mapping of a product's documents. Raises StatestoreError for documents that are no objects."""
    shown = document_type(product, entities)
    if not isinstance(shown, ObjectType):
        raise StatestoreError(
            f"documents of {product.name} are single values, and an index takes objects: give it `fields`"
        )
    return {"dynamic": False} | _mapping(shown)


def _mapping(of: DocumentType) -> IndexMapping:
    match of:
        case ValueType(column=column):
            return dict(_KEPT if column is None else _KINDS[column.name])
        case ObjectType(members=members):
            return {"properties": {name: _mapping(member) for name, member in members}}
        case ListType(items=items):
            return _mapping(items)
        case MapType():
            return dict(_KEPT)
