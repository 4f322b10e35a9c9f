"""A document as it is in the product's topic, JSON or framed Avro; the Avro schema of the documents, and its values. Pure.

    an object                    a record; its namespace is the way to it, so that a new member changes no other name
    a list of rows               an array, empty by default; by a key a map
    any other member             a union of null and its type, null by default
    int, float, bool, string     long, double, boolean, string
    decimal(p,s)                 bytes with logicalType decimal
    any other decimal            string: its digits
    date                         int with logicalType date
    timestamp                    long with logicalType timestamp-micros; of a timestamp(ns) timestamp-nanos
    json                         string: its JSON text, as in Debezium
    undeclared columns           a map in the field `undeclared`, from the name to the JSON text

So each field has a default, and a reader of another version of the product can read. Equal products have equal schemas.

`avro_datum` turns a document into values, and back. Promises: what comes back is equal to the document, in its canonical form, or
a Mismatch names the member that does not fit. The values are those below the logical types: a timestamp is a count, a decimal its
unscaled bytes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final, NamedTuple

from processor.language.product.document import GONE, Headers, Match, MessageParts, Renderer
from processor.language.product.document_type import (
    DocumentType,
    ListType,
    MapType,
    ObjectType,
    ValueType,
    document_type,
)
from processor.language.product.product import Product
from processor.values import canonical_json
from processor.values.avro_schema import adjust_name
from processor.values.entity import ColumnType, Entity
from processor.values.framing import framed
from processor.values.reasons import Mismatch, beyond, within
from processor.values.record import Value
from processor.values.values import PLAIN, Reading, converter

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
        case MapType(items=items):
            return {"type": "map", "values": _nullable(_written(items, namespace))}
        case ObjectType():
            fields = list(_fields(of, namespace))
            return {"type": "record", "name": _RECORD, "namespace": namespace, "fields": fields}


def _empty(of: DocumentType) -> Value:
    """The default of a member: an empty list or map, else null."""
    match of:
        case ListType(nullable=False):
            return []
        case MapType(nullable=False):
            return {}
    return None


def _fields(of: ObjectType, namespace: str) -> Iterator[AvroSchema]:
    for position, (name, (_, member)) in enumerate(zip(field_names(of), of.members, strict=True)):
        if position == of.undeclared:
            yield _UNDECLARED_FIELD
        try:
            written = _written(member, f"{namespace}.{name}")
        except ValueError as error:
            raise within(of.members[position][0], error) from None
        if isinstance(member, ListType | MapType) and not member.nullable:
            yield {"name": name, "type": written, "default": _empty(member)}
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


ConvertMember = Callable[[Any], Any]
"""Turns a value that is not null."""
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_DAY: Final = _EPOCH.toordinal()
_SECOND: Final = timedelta(seconds=1)
_LONG: Final = range(-(2**63), 2**63)
_EXACT: Final = Context(prec=400)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroDatum:
    """The functions of a product's documents. `write` gives an Avro writer's value of a document, and raises ValueError.
    `read` gives the document of a value as the reader of framed records makes it (`processor.values.avro_schema`)."""

    write: ConvertMember
    read: ConvertMember


def avro_datum(product: Product, entities: Mapping[str, Entity]) -> AvroDatum:
    """The functions of a product's documents."""
    of, namespace = document_type(product, entities), namespace_of(product)
    return AvroDatum(write=_nullable_converter(_writer(of, namespace)), read=_nullable_converter(_reader(of)))


def _writer(of: DocumentType, namespace: str) -> ConvertMember:
    match of:
        case ValueType(column=column):
            return _column_converter(column, _single_writer)
        case MapType(items=items):
            write_value = _nullable_converter(_member_writer(items, namespace))
            return lambda rows: {name: write_value(row) for name, row in rows.items()}
        case ListType(items=items):
            write_item = _nullable_converter(
                _member_writer(items, namespace) if items.nullable else _writer(items, namespace)
            )
            return lambda rows: [write_item(row) for row in rows]
        case ObjectType():
            return _record_writer(of, namespace)


def _member_writer(of: DocumentType, namespace: str) -> ConvertMember:
    """The writer of a value in a union. It names the branch of a record or of rows, or the library compares each row with it."""
    write = _writer(of, namespace)
    if isinstance(of, ObjectType):
        name = record_name(namespace)
        return lambda row: (name, write(row))
    if isinstance(of, ListType | MapType):
        branch = "array" if isinstance(of, ListType) else "map"
        return lambda rows: (branch, write(rows))
    return write


def _record_writer(of: ObjectType, namespace: str) -> ConvertMember:
    fields: list[tuple[str, str, ConvertMember]] = []
    for name, (member, inner) in zip(field_names(of), of.members, strict=True):
        rows = isinstance(inner, ListType | MapType) and not inner.nullable
        make = _writer if rows else _member_writer
        fields.append((member, name, make(inner, f"{namespace}.{name}")))
    declared = {member for member, _ in of.members}

    def write(row: Mapping[str, Value]) -> dict[str, Any]:
        datum: dict[str, Any] = {}
        for member, name, write_value in fields:
            value = row[member]
            try:
                datum[name] = None if value is None else write_value(value)
            except ValueError as error:
                raise within(member, error) from None
        if of.undeclared is not None:
            datum[UNDECLARED] = {name: canonical_json.dumps(row[name]) for name in row if name not in declared}
        return datum

    return write


def _column_converter(column: ColumnType | None, single_of: Callable[[ColumnType], ConvertMember]) -> ConvertMember:
    """Converts the values of a column, `single_of` those of a column without an array."""
    if column is None:
        return _itself
    single = single_of(column)
    if not column.array:
        return single
    convert = _nullable_converter(single)
    return lambda values: [convert(value) for value in values]


def _single_writer(column: ColumnType) -> ConvertMember:
    match column.name:
        case "int":
            return lambda value: _long(value, value, "int", "Avro has 64 bits: declare decimal(38,0)")
        case "float":
            return float
        case "decimal" if column.precision is not None:
            return lambda value: _unscaled(value, column)
        case "decimal" | "json":
            return canonical_json.dumps
        case "date":
            return lambda value: date.fromisoformat(value).toordinal() - _EPOCH_DAY
        case "timestamp":
            return lambda value: _count(value, column)
    return _itself


def _itself(value: Any) -> Any:
    return value


def _nullable_converter(convert: ConvertMember) -> ConvertMember:
    return lambda value: None if value is None else convert(value)


def _long(count: int, value: Value, expected: object, why: str) -> int:
    if count not in _LONG:
        raise beyond(expected, value, why)
    return count


def _unscaled(value: Any, column: ColumnType) -> bytes:
    """The bytes of a decimal in the scale of its column."""
    unscaled = Decimal(value).scaleb(column.scale or 0, _EXACT)
    number = int(unscaled)
    if number != unscaled or abs(number) >= 10 ** (column.precision or 0):
        raise beyond(column, value, "declare more digits, or decimal")
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def _count(value: str, column: ColumnType) -> int:
    """The microseconds or nanoseconds of a canonical timestamp."""
    second, _, fraction = value[:-1].partition(".")
    digits = 9 if column.unit == "ns" else 6
    if len(fraction) > digits:
        raise beyond(column, value, "Avro has microseconds: declare timestamp(ns)")
    count = (datetime.fromisoformat(second) - _EPOCH) // _SECOND * 10**digits + int(fraction.ljust(digits, "0"))
    return _long(count, value, column, "Avro has nanoseconds from 1677 to 2262: declare timestamp(us)")


def _reader(of: DocumentType) -> ConvertMember:
    match of:
        case ValueType(column=column):
            return _column_converter(column, _single_reader)
        case MapType(items=items):
            read_value = _nullable_converter(_reader(items))
            return lambda rows: {name: read_value(row) for name, row in rows.items()}
        case ListType(items=items):
            read_item = _nullable_converter(_reader(items))
            return lambda rows: [read_item(row) for row in rows]
        case ObjectType():
            return _record_reader(of)


def _record_reader(of: ObjectType) -> ConvertMember:
    fields: list[tuple[str, str, ConvertMember, Value]] = [
        (member, name, _reader(inner), _empty(inner))
        for name, (member, inner) in zip(field_names(of), of.members, strict=True)
    ]

    def read(datum: Mapping[str, Any]) -> dict[str, Value]:
        row: dict[str, Value] = {}
        for position, (member, name, read_value, default) in enumerate(fields):
            if position == of.undeclared:
                row |= _undeclared(datum)
            value = datum.get(name, default)
            row[member] = None if value is None else read_value(value)
        return row | _undeclared(datum) if of.undeclared == len(fields) else row

    return read


def _undeclared(datum: Mapping[str, Any]) -> dict[str, Value]:
    return {name: canonical_json.loads(text) for name, text in datum.get(UNDECLARED, {}).items()}


def _single_reader(column: ColumnType) -> ConvertMember:
    match column.name:
        case "decimal" if column.precision is not None:
            reading = Reading(text="bytes", scale=column.scale or 0)
        case "decimal" | "json":
            return canonical_json.loads
        case "timestamp":
            reading = Reading(unit="ns" if column.unit == "ns" else "us")
        case _:
            reading = PLAIN
    return converter(ColumnType(name=column.name), reading)


Encode = Callable[[Value], bytes]
"""Encodes a document. Raises ValueError or TypeError for one that the format does not hold."""


class EncodedDocument(NamedTuple):
    """A document as it goes out: the message's key and value; value None where there is no document. `misfit`: why Avro does not
    hold the document, without values of rows; then the value is JSON, and does not go out. `changes`: the tick of the product's
    clock from which on the document may differ. `headers`: those of the product; `partition_key`: chooses the partition, empty
    where the key does."""

    key: str
    value: bytes | None
    misfit: str = ""
    changes: int | None = None
    headers: Headers = ()
    partition_key: bytes = b""


class DocumentEncoder(NamedTuple):
    """Makes the documents of a product, and encodes them. `encode`: None for JSON; `parts`: None without any."""

    renderer: Renderer
    encode: Encode | None = None
    parts: MessageParts | None = None

    def encoded(self, top: Match, key: str) -> EncodedDocument:
        """The document of a root row. `key`: of its message."""
        if self.encode is None:
            text = self.renderer.text(top)
            made = EncodedDocument(key, None if text is GONE else text.encode(), "", self.renderer.clock.changes)
            return made if self.parts is None else self._with_parts(top, made)
        document, changes = self.renderer.document(top), self.renderer.clock.changes
        if document is GONE:
            return EncodedDocument(key, None, "", changes)
        try:
            return self._with_parts(top, EncodedDocument(key, self.encode(document), "", changes))
        except (ValueError, TypeError) as error:
            misfit = error.plain if isinstance(error, Mismatch) else type(error).__name__
            return self._with_parts(top, EncodedDocument(key, canonical_json.encode(document), misfit, changes))

    def _with_parts(self, top: Match, made: EncodedDocument) -> EncodedDocument:
        if self.parts is None or made.value is None:
            return made
        parts, columns = self.parts, top.columns
        return made._replace(headers=parts.headers(columns), partition_key=parts.partition_key(columns))


def framed_avro(
    product: Product,
    entities: Mapping[str, Entity],
    number: int,
    open_writer: Callable[[str], Callable[[Any], bytes]],
) -> Encode:
    """Avro behind the number of its schema. `open_writer`: makes the function that writes bodies by the text of a schema."""
    to_datum, write = avro_datum(product, entities).write, open_writer(avro_schema_text(product, entities))
    return lambda document: framed(number, write(to_datum(document)))


def json_of_avro(product: Product, entities: Mapping[str, Entity]) -> Encode:
    """JSON of the documents that Avro holds, for readers without a schema registry."""
    to_datum = avro_datum(product, entities).write

    def encode(document: Value) -> bytes:
        to_datum(document)
        return canonical_json.encode(document)

    return encode
