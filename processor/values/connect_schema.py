"""Schemas in the form of Kafka Connect: how they say to read a column, and what Avro and JSON Schema say in this form.

Promise: the record decides. A type that a schema names is never read as another one: a day is no count of milliseconds, and
bytes are no digits. A schema without such a name says no unit, and the declared type decides.

    schema by Kafka Connect or Debezium                declared types that take its values (`json` takes all)
    Timestamp, MicroTimestamp, NanoTimestamp           timestamp, in the unit of the schema
    ZonedTimestamp, IsoTimestamp                       timestamp, string
    Date, IsoDate                                      date; IsoDate also string
    Time, MicroTime, NanoTime, Duration, Year          int, as it arrives
    ZonedTime, IsoTime, Interval, Uuid, Enum, ...      string
    Decimal                                            int, float, decimal
    VariableScaleDecimal                               float, decimal
    Json                                               string, and arrays: the text is an array
    bytes of another name, or of none                  string, in base64
    a union of unknown branch                          each type that reads all branches in the same way

Kafka Connect has no unions of several types, so a schema has one form for all records. Here the schema of a record gets the
branch that the record chose, in place of the union. Elements of one array may choose different branches: then their schema is a
union again.

JsonSchemaConverter names a type by `title`, its base by `connect.type`, and its parameters by `connect.parameters`. A JSON Schema
of another writer has none of these, and says nothing about how to read a value. A `$ref` leads into the document
(`#/definitions/Row`, `#`), or to a schema that the registry keeps as a reference, by its name or its `$id`. One that leads
nowhere becomes a schema that refuses the values of its column, and names the reference.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from math import isfinite
from struct import pack
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urljoin

from processor.values.entity import ColumnType, TypeName
from processor.values.record import Value
from processor.values.values import PLAIN, Reading

ToJson = Callable[[Any], Value]
"""Turns a value of a reader that is not null into its JSON value."""

CONNECT: Final = "org.apache.kafka.connect.data."
DECIMAL: Final = f"{CONNECT}Decimal"
VARIABLE_DECIMAL: Final = "io.debezium.data.VariableScaleDecimal"


def shortest_float(number: float) -> float:
    """The double whose text is the shortest of a 32-bit float: 0.1, not 0.10000000149011612."""
    for digits in (6, 7, 8):
        short = float(f"{number:.{digits}g}")
        if pack("f", short) == pack("f", number):
            return short
    return float(f"{number:.9g}")


def float_value(number: float) -> Value:
    """A double as in JSON. Kafka Connect writes NaN and the infinities as text."""
    if isfinite(number):
        return Decimal(repr(number))
    return "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"


def base64_text(data: bytes) -> str:
    """Bytes as JSON has them."""
    return b64encode(data).decode()


def unscaled_text(number: int) -> str:
    """The unscaled number of a decimal, as Java's BigInteger has its bytes: no more than it needs. A `fixed` has more."""
    size = ((number if number >= 0 else ~number).bit_length() // 8) + 1
    return base64_text(number.to_bytes(size, "big", signed=True))


Schemas = Mapping[str, Mapping[str, Any]]
"""Column -> its schema by Kafka Connect."""

UNKNOWN_REFERENCE: Final = "unknown reference"
"""The type of a schema that refers to another one that is not there. Its name is the reference."""
_TIME: Final = "io.debezium.time."
_DATA: Final = "io.debezium.data."
JSON: Final = f"{_DATA}Json"
_NUMBERS: Final[tuple[TypeName, ...]] = ("decimal", "float", "int")
_TEXT: Final[tuple[TypeName, ...]] = ("string",)
_COUNTS: Final = ("Time", "MicroTime", "NanoTime", "MicroDuration", "NanoDuration", "Year")
_CLOCKS: Final = ("ZonedTime", "IsoTime", "Interval")
_TEXTS: Final = ("Uuid", "Xml", "Ltree", "Enum", "EnumSet", "TsVector")
NAMED_TYPES: Final[Mapping[str, tuple[tuple[TypeName, ...], Reading]]] = {
    f"{_TIME}Timestamp": (("timestamp",), Reading(unit="ms", named=True)),
    f"{_TIME}MicroTimestamp": (("timestamp",), Reading(unit="us", named=True)),
    f"{_TIME}NanoTimestamp": (("timestamp",), Reading(unit="ns", named=True)),
    f"{CONNECT}Timestamp": (("timestamp",), Reading(unit="ms", named=True)),
    f"{_TIME}ZonedTimestamp": (("timestamp", "string"), Reading(named=True)),
    f"{_TIME}IsoTimestamp": (("timestamp", "string"), Reading(named=True)),
    f"{_TIME}Date": (("date",), PLAIN),
    f"{CONNECT}Date": (("date",), PLAIN),
    f"{_TIME}IsoDate": (("date", "string"), PLAIN),
    f"{CONNECT}Time": (("int",), PLAIN),
    VARIABLE_DECIMAL: (("decimal", "float"), PLAIN),
    JSON: (_TEXT, Reading(text="json")),
    **{f"{_TIME}{name}": (("int",), PLAIN) for name in _COUNTS},
    **{f"{_TIME}{name}": (_TEXT, PLAIN) for name in _CLOCKS},
    **{f"{_DATA}{name}": (_TEXT, PLAIN) for name in _TEXTS},
}
"""The name of a type -> the declared types that take it next to `json`, and how to read it."""


def schema_reading(schema: Mapping[str, Any], column_type: ColumnType) -> Reading:
    """How to read the values of a column by its schema. For an array, the schema of the elements decides."""
    if column_type.array and schema.get("name") == JSON:
        return Reading(text="json")
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        schema = schema["items"]
    if schema.get("type") == UNKNOWN_REFERENCE:
        return _refused(f"$ref {schema.get('name')!r}, which is unknown here", (), column_type)
    if schema.get("type") == "union":
        return _common_reading(schema.get("branches"), column_type)
    name = schema.get("name")
    if name == DECIMAL:
        reading = Reading(text="bytes", scale=_scale(schema.get("parameters")), named=True)
        return reading if _takes(_NUMBERS, column_type) else _refused(name, _NUMBERS, column_type)
    if isinstance(name, str) and name in NAMED_TYPES:
        types, reading = NAMED_TYPES[name]
        return reading if _takes(types, column_type) else _refused(name, types, column_type)
    if schema.get("type") == "bytes" and not _takes(_TEXT, column_type):
        return _refused(name if isinstance(name, str) else "bytes", _TEXT, column_type)
    return PLAIN


def _common_reading(branches: Any, column_type: ColumnType) -> Reading:
    """The reading of all branches. A record may bring any JSON as its schema."""
    readings = {
        schema_reading(branch, column_type) if isinstance(branch, dict) else None
        for branch in (branches if isinstance(branches, list) else ())
    }
    found = readings.pop() if len(readings) == 1 else None
    return found or _refused("one of several types", (), column_type)


def _takes(types: tuple[TypeName, ...], column_type: ColumnType) -> bool:
    return column_type.name in types or column_type.name == "json"


def _refused(name: str, types: tuple[TypeName, ...], column_type: ColumnType) -> Reading:
    """The reading that refuses every value, and its reason."""
    if column_type.name == "json":
        return PLAIN
    return Reading(refused=f"its schema says {name}: declare {' or '.join((*types, 'json'))}")


def _scale(parameters: Any) -> int:
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    return int(scale) if isinstance(scale, str) and re.fullmatch(r"-?[0-9]{1,3}", scale) else 0


class Chosen(NamedTuple):
    """A value of a union, and the schema of the branch that the record chose."""

    value: Value
    connect: dict[str, Any]


def with_branches(value: Value, schema: dict[str, Any]) -> tuple[Value, dict[str, Any]]:
    """The value as plain JSON, and the schema with the chosen branches in place of the unions."""
    if type(value) is Chosen:
        return with_branches(value.value, value.connect)
    if type(value) is list:
        return _array(value, schema)
    if type(value) is dict:
        return _members(value, schema)
    return value, schema


def union_schema(branches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a value that is of one of these branches, and does not show of which."""
    different = [branch for n, branch in enumerate(branches) if branch not in branches[:n]]
    return different[0] if len(different) == 1 else {"type": "union", "branches": different}


def _array(values: list[Value], schema: dict[str, Any]) -> tuple[Value, dict[str, Any]]:
    items = schema.get("items", {})
    read = [with_branches(value, items) for value in values]
    found = [inner for value, inner in read if value is not None]
    known = schema | {"items": union_schema(found)} if found and "items" in schema else schema
    return [value for value, _ in read], known


def _members(members: Mapping[str, Value], schema: dict[str, Any]) -> tuple[Value, dict[str, Any]]:
    fields = {field["field"]: field for field in schema.get("fields", ())}
    read = {name: with_branches(value, fields.get(name, {})) for name, value in members.items()}
    known = (
        schema | {"fields": [read[name][1] | {"field": name} for name in fields if name in read]} if fields else schema
    )
    return {name: value for name, (value, _) in read.items()}, known


_WORDS: Final = ("title", "connect.type", "connect.parameters")
_NO_REFERENCES: Final[Mapping[str, Any]] = {}


def connect_schema(schema: Any, references: Mapping[str, Any] = _NO_REFERENCES) -> dict[str, Any]:
    """The schema by Kafka Connect; empty for a schema that says nothing. `references`: name -> the parsed schema of each other
    document that the registry keeps for it."""
    return _Reader(references).read(schema, schema)


class _Reader:
    """Reads the schemas of a document and of those that it refers to. A schema that contains itself says nothing there."""

    def __init__(self, references: Mapping[str, Any]) -> None:
        self._references = references
        self._made: dict[int, dict[str, Any]] = {}

    def read(self, schema: Any, document: Any) -> dict[str, Any]:
        """The schema, which is in this document."""
        if not isinstance(schema, dict):
            return {}
        if isinstance(schema.get("$ref"), str):
            return self._referred(schema, document)
        whole = schema.get("allOf")
        if isinstance(whole, list) and len(whole) == 1 and isinstance(whole[0], dict):
            return self.read(whole[0] | {name: value for name, value in schema.items() if name != "allOf"}, document)
        choice: list[Any] = next(
            (schema[word] for word in ("oneOf", "anyOf") if isinstance(schema.get(word), list)), []
        )
        branches = [branch for branch in choice if isinstance(branch, dict) and branch.get("type") != "null"]
        if branches:  # Kafka Connect writes what may be null as a choice of two
            return union_schema([self.read(branch, document) for branch in branches])
        return self._single(schema, document)

    def _single(self, schema: Mapping[str, Any], document: Any) -> dict[str, Any]:
        kind, title = schema.get("connect.type", schema.get("type")), schema.get("title")
        made: dict[str, Any] = {"type": kind}
        if isinstance(title, str) and (title != DECIMAL or kind == "bytes"):
            made["name"] = title  # decimals may also come as numbers
        if isinstance(schema.get("connect.parameters"), dict):
            made["parameters"] = schema["connect.parameters"]
        if kind == "array":
            made["items"] = self.read(schema.get("items"), document)
        elif isinstance(properties := schema.get("properties"), dict):
            fields = [{**self.read(inner, document), "field": name} for name, inner in properties.items()]
            made |= {"type": "struct", "fields": fields}
        return made

    def _referred(self, schema: Mapping[str, Any], document: Any) -> dict[str, Any]:
        """The schema that a reference means, with the words of Kafka Connect next to the reference."""
        where, _, pointer = schema["$ref"].partition("#")
        target_document = self._document(where, document)
        target = _at(target_document, unquote(pointer))
        if target is None:
            return {"type": UNKNOWN_REFERENCE, "name": schema["$ref"]}
        if id(target) not in self._made:
            self._made[id(target)] = {}
            self._made[id(target)] = self.read(target, target_document)
        own = self._single({name: schema[name] for name in _WORDS if name in schema}, document)
        return self._made[id(target)] | {name: value for name, value in own.items() if value is not None}

    def _document(self, where: str, document: Any) -> Any:
        """The document with this name or `$id`; None where there is none."""
        base = document.get("$id") if isinstance(document, dict) else None
        whole = urljoin(base, where) if isinstance(base, str) else where
        if not where or whole == base:
            return document
        for name, known in self._references.items():
            if name in (where, whole) or (isinstance(known, dict) and known.get("$id") in (where, whole)):
                return known
        return None


def _at(document: Any, pointer: str) -> dict[str, Any] | None:
    """The schema at a pointer (`/definitions/Row`), or with this anchor; empty: the document."""
    if pointer and not pointer.startswith("/"):
        return next(
            (one for one in _anchored(document) if pointer in (one.get("$anchor"), one.get("$id", "")[1:])), None
        )
    for step in pointer.split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, list) and step.isascii() and step.isdigit() and int(step) < len(document):
            document = document[int(step)]
        else:
            document = document.get(step) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else None


def _anchored(document: Any) -> Iterator[dict[str, Any]]:
    for word in ("$defs", "definitions"):
        found = document.get(word) if isinstance(document, dict) else None
        yield from (one for one in (found.values() if isinstance(found, dict) else ()) if isinstance(one, dict))
