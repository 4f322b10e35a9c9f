"""Reads an Avro schema: its form by Kafka Connect, and how to turn what an Avro reader gives into JSON values.

The values become those of Kafka Connect's JsonConverter: bytes as base64, numbers int or Decimal, days and instants as bare
numbers whose unit the schema names. `connect.name` and `connect.parameters` say what a column means (Confluent's AvroConverter
writes both), else Avro's logical type. The plain schema, for the reader, has no logical types, so that no date leaves Python's
range and no digit is lost. Its types have names of their own, and those that come from references are in it.

This module reads no bytes.

Debezium gives other names to columns whose own names Avro does not allow (`field.name.adjustment.mode`):

    column      avro        avro_unicode
    user-id     user_id     user_u002did
    2fa         _2fa        _u0032fa
    user_id     user_id     user_u005fid
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from string import ascii_letters, digits
from typing import Any, Final, TypeVar

from processor.values.connect_schema import (
    CONNECT,
    DECIMAL,
    Chosen,
    ToJson,
    base64_text,
    float_value,
    shortest_float,
    unscaled_text,
)
from processor.values.reasons import Mismatch
from processor.values.record import Value

T = TypeVar("T")
_FIRST: Final = frozenset(ascii_letters)
_LATER: Final = frozenset(ascii_letters + digits)


def adjusted_names(columns: Iterable[str]) -> dict[str, str]:
    """Adjusted name -> column, for the columns that have one. An adjusted name that is a column itself, or that two columns
    share, means neither."""
    columns = frozenset(columns)
    found: dict[str, set[str]] = {}
    for column in columns:
        for adjusted in {adjust_name(column, unicode=False), adjust_name(column, unicode=True)} - columns:
            found.setdefault(adjusted, set()).add(column)
    return {adjusted: next(iter(of)) for adjusted, of in found.items() if len(of) == 1}


def with_columns(members: Mapping[str, T], names: Mapping[str, str]) -> Mapping[str, T]:
    """The members under the names of their columns. Raises ValueError where two members are one column."""
    if names.keys().isdisjoint(members):
        return members
    made = {names.get(name, name): value for name, value in members.items()}
    if len(made) < len(members):
        raise _clash(members, names)
    return made


def _clash(members: Iterable[str], names: Mapping[str, str]) -> Mismatch:
    same: dict[str, list[str]] = {}
    for name in members:
        same.setdefault(names.get(name, name), []).append(name)
    column, found = next((column, found) for column, found in same.items() if len(found) > 1)
    both = " and ".join(map(repr, found))
    return Mismatch(f"column {column!r}: {both} of the record may both be this column", "column-type")


def adjust_name(column: str, *, unicode: bool = False) -> str:
    """The name in letters, digits and `_`: each other character becomes `_`, or with `unicode` its code."""
    kept = "" if unicode else "_"
    text = ""
    for n, char in enumerate(column):
        if char in kept or char in (_LATER if n else _FIRST):
            text += char
            continue
        units = char.encode("utf-16-be", "surrogatepass").hex()
        codes = [units[start : start + 4] for start in range(0, len(units), 4)]
        text += "".join(f"_u{code}" for code in codes) if unicode else "_" * len(codes)
        text += char if char in digits and not unicode else ""
    return text


_PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
_MAP_ENTRY: Final = "io.confluent.connect.avro.MapEntry"
_LOGICAL: Final = {
    "decimal": DECIMAL,
    "date": f"{CONNECT}Date",
    "time-millis": f"{CONNECT}Time",
    "time-micros": "io.debezium.time.MicroTime",
    "timestamp-millis": f"{CONNECT}Timestamp",
    "timestamp-micros": "io.debezium.time.MicroTimestamp",
    "timestamp-nanos": "io.debezium.time.NanoTimestamp",
    "local-timestamp-millis": f"{CONNECT}Timestamp",
    "local-timestamp-micros": "io.debezium.time.MicroTimestamp",
    "local-timestamp-nanos": "io.debezium.time.NanoTimestamp",
}
"""Avro's logical type -> the name by Kafka Connect or Debezium of the same meaning."""


@dataclass(slots=True, kw_only=True)
class AvroType:
    """A type of an Avro schema. `plain`: the schema for the reader; `connect`: by Kafka Connect; `to_json`: turns a value that is
    not null into its JSON value, None where it is that value; `name`: in `plain`, of a named type; `entry`: whether Kafka Connect
    writes maps with keys that are no text as arrays of such records; `deep`: whether values may nest without end; `chooses`:
    whether values hold the `Chosen` of unions."""

    kind: str
    plain: Any
    connect: dict[str, Any]
    to_json: ToJson | None = None
    name: str = ""
    entry: bool = False
    deep: bool = False
    chooses: bool = False


def read_avro_schema(schema: Any, references: Mapping[str, Any]) -> AvroType:
    """The type of a parsed schema. `references`: full name -> the parsed schema of a type from elsewhere.

    Raises ValueError with the place of an error.
    """
    reader = _SchemaReader(references)
    read = reader.read(schema, "")
    read.deep, read.chooses = reader.deep, reader.unions > 0
    return read


def _nullable(to_json: ToJson) -> ToJson:
    return lambda value: None if value is None else to_json(value)


@dataclass(slots=True)
class _SchemaReader:
    references: Mapping[str, Any]
    named: dict[str, AvroType] = field(default_factory=dict)
    deep: bool = False
    unions: int = 0

    def read(self, schema: Any, namespace: str) -> AvroType:
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return self._union([self.read(branch, namespace) for branch in schema])
        if not isinstance(schema, dict) or "type" not in schema:
            raise ValueError("a type that is no name, no list and no object with `type`")
        kind = schema["type"]
        if not isinstance(kind, str):
            return self.read(kind, namespace)
        match kind:
            case "record" | "error" | "enum" | "fixed":
                return self._named(kind, schema, namespace)
            case "array":
                return self._array(self.read(schema.get("items"), namespace), schema)
            case "map":
                return self._map(self.read(schema.get("values"), namespace), schema)
            case _ if kind in _PRIMITIVES:
                return _primitive(kind, schema)
        return self._by_name(kind, namespace)

    def _by_name(self, name: str, namespace: str) -> AvroType:
        if name in _PRIMITIVES:
            return _primitive(name, {})
        for full in (name, f"{namespace}.{name}") if "." in name or not namespace else (f"{namespace}.{name}", name):
            if full in self.named:
                return self._again(self.named[full])
            if full in self.references:
                return self.read(self.references[full], "")
        raise ValueError(f"no type {name!r}, neither in the schema nor in its references")

    def _again(self, known: AvroType) -> AvroType:
        """A type that the schema had before. A type whose fields are not read yet contains itself."""

        def to_json(value: Any) -> Value:
            return value if known.to_json is None else known.to_json(value)

        inside = len(known.plain) == 2
        self.deep |= inside
        return replace(known, plain=known.name, to_json=to_json if inside else known.to_json)

    def _named(self, kind: str, schema: Mapping[str, Any], outer: str) -> AvroType:
        name = schema.get("name")
        if not isinstance(name, str) or not name:
            raise ValueError(f"a type {kind} without a name")
        namespace = name.rpartition(".")[0] if "." in name else str(schema.get("namespace", outer) or "")
        full = name if "." in name or not namespace else f"{namespace}.{name}"
        mine = f"T{len(self.named)}"
        made = AvroType(kind=kind, plain={"type": kind, "name": mine}, connect=_connect("string", schema), name=mine)
        self.named[full] = made  # before its fields, which may have this type, too
        if kind == "enum":
            made.plain["symbols"] = _known(f"the symbols of enum {full!r}", schema.get("symbols"), list)
        elif kind == "fixed":
            made.plain["size"] = _known(f"the size of fixed {full!r}", schema.get("size"), int)
            made.connect = _connect("bytes", schema)
            made.to_json = _from_bytes(made.connect)
        else:
            self._fill_record(made, schema, namespace, full)
        return made

    def _fill_record(self, made: AvroType, schema: Mapping[str, Any], namespace: str, full: str) -> None:
        fields = schema.get("fields")
        if not isinstance(fields, list) or not all(
            isinstance(f, dict) and isinstance(f.get("name"), str) for f in fields
        ):
            raise ValueError(f"record {full!r} without a list of fields with names")
        types = {f["name"]: self.read(f.get("type"), namespace) for f in fields}
        if len(types) != len(fields):
            raise ValueError(f"record {full!r} with two fields of one name")
        made.kind = "record"
        made.entry = full == _MAP_ENTRY or schema.get("connect.internal.type") == "MapEntry"
        made.plain |= {"type": "record", "fields": [{"name": name, "type": t.plain} for name, t in types.items()]}
        connect = _connect("struct", schema)
        made.connect.clear()  # types within may hold it
        made.connect |= connect | {"fields": [{**t.connect, "field": name} for name, t in types.items()]}
        converts = [(name, t.to_json) for name, t in types.items() if t.to_json is not None]

        def to_json(row: dict[str, Any]) -> Value:
            for name, convert in converts:
                value = row[name]
                if value is not None:
                    row[name] = convert(value)
            return row

        made.to_json = to_json if converts else None

    def _array(self, items: AvroType, schema: Mapping[str, Any]) -> AvroType:
        plain = {"type": "array", "items": items.plain}
        connect = _connect("map" if items.entry else "array", schema) | {"items": items.connect}
        inner = None if items.to_json is None else _nullable(items.to_json)

        def to_json(values: list[Any]) -> Value:
            made = values if inner is None else [inner(value) for value in values]
            return [[entry["key"], entry["value"]] for entry in made] if items.entry else made

        return AvroType(kind="array", plain=plain, connect=connect, to_json=to_json if inner or items.entry else None)

    def _map(self, values: AvroType, schema: Mapping[str, Any]) -> AvroType:
        inner = None if values.to_json is None else _nullable(values.to_json)

        def to_json(members: dict[str, Any]) -> Value:
            return members if inner is None else {name: inner(value) for name, value in members.items()}

        return AvroType(
            kind="map",
            plain={"type": "map", "values": values.plain},
            connect=_connect("map", schema),
            to_json=to_json if inner else None,
        )

    def _union(self, branches: list[AvroType]) -> AvroType:
        some = [branch for branch in branches if branch.kind != "null"]
        if len(some) > 1:
            return self._choice(branches)
        single = some[0] if some else AvroType(kind="null", plain="null", connect={})

        def to_json(value: Any) -> Value:
            if type(value) is tuple:  # a record, after its name; enum and fixed come without
                value = value[1]
            return value if single.to_json is None else single.to_json(value)

        simple = single.to_json is None and not single.name
        plain = [branch.plain for branch in branches]
        return AvroType(kind="union", plain=plain, connect=single.connect, to_json=None if simple else to_json)

    def _choice(self, branches: list[AvroType]) -> AvroType:
        """A union of several types. The reader names only the branches that are records. So the plain schema makes a record of
        each, with the branch as its only field: Avro writes both in the same bytes."""
        plain: list[Any] = []
        by_name: dict[str, AvroType] = {}
        for branch in branches:
            if branch.kind == "null":
                plain.append(branch.plain)
                continue
            self.unions += 1
            name = f"U{self.unions}"
            by_name[name] = branch
            plain.append({"type": "record", "name": name, "fields": [{"name": "value", "type": branch.plain}]})

        def to_json(named: Any) -> Value:
            name, record = named
            branch, value = by_name[name], record["value"]
            return Chosen(value if branch.to_json is None else branch.to_json(value), branch.connect)

        return AvroType(kind="union", plain=plain, connect={}, to_json=to_json)


def _known(what: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{what} are not there")
    return value


def _primitive(kind: str, schema: Mapping[str, Any]) -> AvroType:
    connect = _connect(kind, schema)
    convert: Mapping[str, ToJson] = {
        "bytes": _from_bytes(connect),
        "double": float_value,
        "float": lambda number: float_value(shortest_float(number)),
    }
    return AvroType(kind=kind, plain=kind, connect=connect, to_json=convert.get(kind))


def _from_bytes(connect: Mapping[str, Any]) -> ToJson:
    return _decimal_text if connect.get("name") == DECIMAL else base64_text


def _decimal_text(data: bytes) -> str:
    if not data:
        raise ValueError("a decimal without bytes")
    return unscaled_text(int.from_bytes(data, "big", signed=True))


def _connect(kind: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema by Kafka Connect: its type, its name and its parameters."""
    name, parameters = schema.get("connect.name"), schema.get("connect.parameters")
    parameters = dict(parameters) if isinstance(parameters, dict) else {}
    logical = schema.get("logicalType")
    if not isinstance(name, str) and isinstance(logical, str):
        name = _LOGICAL.get(logical)
    if name == DECIMAL and "scale" not in parameters:
        parameters["scale"] = str(schema.get("scale", 0))
    connect: dict[str, Any] = {"type": kind}
    if isinstance(name, str):
        connect["name"] = name
    if parameters:
        connect["parameters"] = parameters
    return connect
