"""Writes the JSON Schema (draft 2020-12) of a product's documents. `document_type` says which members may be null.

Levels that show whole rows allow undeclared columns, without a schema for them.
"""

from collections.abc import Mapping
from typing import Any

from processor.product.document_type import DocumentType, ListType, ObjectType, ValueType, document_type
from processor.product.product import Product
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
    return _nullable(schema) if of.nullable else schema


def _column_schema(column: ColumnType) -> Schema:
    return {"type": "array", "items": _nullable(_SCHEMAS[column.name])} if column.array else dict(_SCHEMAS[column.name])


def _nullable(schema: Schema) -> Schema:
    """The schema, which allows null, too. A schema without a type allows null already."""
    kind = schema.get("type")
    return schema | {"type": [kind, "null"]} if isinstance(kind, str) and kind != "null" else schema
