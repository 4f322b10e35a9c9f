"""Writes the Avro schema of a product's documents.

    an object                    a record; its namespace is the way to it, so that a new member changes no other name
    a list of rows               an array, empty by default
    any other member             a union of null and its type, null by default
    int, float, bool, string     long, double, boolean, string
    decimal(p,s)                 bytes with logicalType decimal
    any other decimal            string: its digits
    date                         int with logicalType date
    timestamp                    long with logicalType timestamp-micros; of a timestamp(ns) timestamp-nanos
    json                         string: its JSON text, as Debezium has it
    undeclared columns           a map in the field `undeclared`, from the name to the JSON text

So each field has a default, and a reader of another version of the product can read. Equal products have equal schemas.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from processor.product.document_type import DocumentType, ListType, ObjectType, ValueType, document_type
from processor.product.product import Product
from processor.records import canonical_json
from processor.records.entity import ColumnType, Entity
from processor.records.mismatch import within
from processor.records.schemas.adjusted_names import adjust_name

AvroSchema = Any
"""A schema as JSON values."""
UNDECLARED: Final = "undeclared"
"""The field of the undeclared columns."""
NAMES_CURE: Final = "select the members by `fields`, with names that differ"
_ROOT: Final = "statestore"
_RECORD: Final = "Value"
_SINGLE: Final[Mapping[str, AvroSchema]] = {
    "int": "long",
    "string": "string",
    "float": "double",
    "decimal": "string",
    "bool": "boolean",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros"},
    "json": {"type": "string", "connect.name": "io.debezium.data.Json"},
}


def avro_schema(product: Product, entities: Mapping[str, Entity]) -> AvroSchema:
    """The schema of a product's documents. Raises ValueError for two members of which Avro makes one name."""
    written = _written(document_type(product, entities), namespace_of(product))
    return written if isinstance(written, dict) and written["type"] == "record" else _nullable(written)


def avro_schema_text(product: Product, entities: Mapping[str, Entity]) -> str:
    """The schema as compact JSON: the text that a registry keeps."""
    return canonical_json.dumps(avro_schema(product, entities))


def namespace_of(product: Product) -> str:
    """The namespace of the whole document."""
    return f"{_ROOT}.{adjust_name(product.name)}"


def record_name(namespace: str) -> str:
    """The full name of the record of a namespace."""
    return f"{namespace}.{_RECORD}"


def field_names(of: ObjectType) -> list[str]:
    """The Avro name of each member of an object, in their order. Raises ValueError for two members of one name."""
    taken = {UNDECLARED: "the undeclared columns"} if of.undeclared is not None else {}
    for member, _ in of.members:
        name = adjust_name(member)
        if name in taken:
            raise ValueError(f"Avro has the name `{name}` for {taken[name]} and for `{member}`")
        taken[name] = f"`{member}`"
    return [adjust_name(member) for member, _ in of.members]


def _written(of: DocumentType, namespace: str) -> AvroSchema:
    """The schema of a part of the document, without null."""
    match of:
        case ValueType(column=column):
            return "null" if column is None else _column(column)
        case ListType(items=items):
            rows = isinstance(items, ObjectType) and not items.nullable
            written = _written(items, namespace)
            return {"type": "array", "items": written if rows else _nullable(written)}
        case ObjectType():
            fields = list(_fields(of, namespace))
            return {"type": "record", "name": _RECORD, "namespace": namespace, "fields": fields}


def _fields(of: ObjectType, namespace: str) -> Iterator[AvroSchema]:
    for position, (name, (_, member)) in enumerate(zip(field_names(of), of.members, strict=True)):
        if position == of.undeclared:
            yield _UNDECLARED_FIELD
        try:
            written = _written(member, f"{namespace}.{name}")
        except ValueError as error:
            raise within(of.members[position][0], error) from None
        if isinstance(member, ListType) and not member.nullable:
            yield {"name": name, "type": written, "default": []}
        else:
            yield {"name": name, "type": _nullable(written), "default": None}
    if of.undeclared == len(of.members):
        yield _UNDECLARED_FIELD


_UNDECLARED_FIELD: Final = {"name": UNDECLARED, "type": {"type": "map", "values": "string"}, "default": {}}


def _column(column: ColumnType) -> AvroSchema:
    single = _SINGLE[column.name]
    if column.precision is not None:
        decimal = {"type": "bytes", "logicalType": "decimal"}
        single = {**decimal, "precision": column.precision, "scale": column.scale or 0}
    elif column.unit == "ns":
        single = {"type": "long", "logicalType": "timestamp-nanos"}
    return {"type": "array", "items": _nullable(single)} if column.array else single


def _nullable(written: AvroSchema) -> AvroSchema:
    return written if written == "null" else ["null", written]
