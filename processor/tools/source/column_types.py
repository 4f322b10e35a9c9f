"""The type to declare for a column: by its SQL type and the connector's settings, by its schema, or by its values. Pure.

docs/types.md has the whole map of the SQL types of PostgreSQL, MySQL and MariaDB, and a test compares each of its rows with this
module. Schemas are in the form of Kafka Connect's JsonConverter. A type by values, where records have no schema, is a guess.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Literal, NamedTuple

from processor.tools.source.draft import DraftColumn
from processor.values import canonical_json
from processor.values.connect_schema import DECIMAL, NAMED_TYPES
from processor.values.decimal_forms import NUMERIC
from processor.values.entity import MAX_DIGITS, PLACEHOLDER, ColumnType, placeholder_of
from processor.values.record import Value
from processor.values.values import ANY_TEXT, PLAIN, Reading, canonical_value

DecimalMode = Literal["precise", "string", "double"]
TimeMode = Literal["adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]


class ConnectorModes(NamedTuple):
    """The connector's `time.precision.mode` and `decimal.handling.mode`. None: undeclared, and Debezium's default is a guess."""

    time: TimeMode | None = None
    decimal: DecimalMode | None = None


_PLAIN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("boolean", "bool", "bit(1)", "tinyint(1)"), "bool"),
    **dict.fromkeys(("smallint", "integer", "bigint", "int", "tinyint", "mediumint", "oid", "year", "smallserial"), "int"),
    **dict.fromkeys(("real", "float", "double precision", "double"), "float"),
    **dict.fromkeys(("json", "jsonb", "hstore"), "json(text)"),
    **dict.fromkeys(("point", "geometry", "geography", "linestring", "polygon"), "json"),
    **dict.fromkeys(
        (
            "text", "varchar", "character varying", "char", "character", "bpchar", "citext", "name", "isbn", "isbn13", "issn",
            "issn13", "ismn", "ean13", "upc", "bytea", "bit", "bit varying", "varbit", "timetz", "uuid", "xml", "ltree", "inet",
            "cidr", "macaddr", "macaddr8", "enum", "set", "tsvector", "int4range", "int8range", "numrange", "daterange",
            "tsrange", "tstzrange", "binary", "varbinary", "blob", "tinyblob", "mediumblob", "longblob", "tinytext",
            "mediumtext", "longtext", "nvarchar", "nchar",
        ),
        "string",
    ),
    **dict.fromkeys(("timestamptz", "timestamp with time zone"), "timestamp"),
    "date": "date",
    "interval": "int",
}  # fmt: skip
_GUESSED: Final = {
    "interval": "string with interval.handling.mode string",
    "tinyint(1)": "int where it holds other numbers than 0 and 1",
    "bigint unsigned": "with bigint.unsigned.handling.mode precise: decimal(20,0), decimals: bytes",
}
_SHAPE: Final = re.compile(r"([a-z_][a-z_0-9]*(?: [a-z]+)*?)\s*(?:\(([^()]*)\))?((?: [a-z]+)*)((?:\[\])*)")
_TO_MILLISECONDS: Final = 3
"""`adaptive` sends milliseconds up to this number of digits of the second, and microseconds above."""
_FULL: Final = 6


def declared_type(sql_type: str, modes: ConnectorModes, *, mysql: bool = False) -> DraftColumn:
    """The column to declare for a type as SQL writes it: `numeric(12, 2)`, `timestamp(3) without time zone`, `integer[]`. The
    schema of an extension's type, `extensions.citext`, says nothing."""
    written = sql_type if mysql else sql_type.rpartition(".")[2]
    found = _SHAPE.fullmatch(written.lower().replace(" unsigned", "").replace(" zerofill", ""))
    if found is None:
        return _unknown(sql_type)
    name, arguments, zone, array = found[1], re.sub(r"\s", "", found[2] or ""), found[3].strip(), found[4]
    name = f"{name} {zone}".removesuffix(" without time zone") if zone else name
    column = _scalar(name, arguments, modes, mysql)
    if " unsigned" in sql_type.lower() and name == "bigint":
        column = column._replace(guess=_GUESSED["bigint unsigned"])
    if not column.type:
        return _unknown(sql_type)
    return column._replace(type=f"{column.type}[]") if array else column


def _scalar(name: str, arguments: str, modes: ConnectorModes, mysql: bool) -> DraftColumn:
    exact = f"{name}({arguments})"
    if exact in _PLAIN and (mysql or name != "tinyint"):
        return DraftColumn(_PLAIN[exact], _GUESSED.get(exact, ""))
    match name:
        case "numeric" | "decimal" | "dec":
            return DraftColumn(_decimal_of_sql(arguments, mysql))
        case "money":
            return DraftColumn(_decimal_of_sql("19,2", mysql), "" if modes.decimal else "other fractions than 2 digits")
        case "timestamp" if mysql:
            return DraftColumn("timestamp")
        case "timestamp" | "datetime":
            return _timestamp(arguments, modes, 0 if mysql else _FULL)
        case "time" | "time without time zone":
            time = "string" if modes.time == "isostring" else "int"
            return DraftColumn(time, "" if modes.time else "string with time.precision.mode isostring")
        case "time with time zone":
            return DraftColumn("string")
    return DraftColumn(_PLAIN.get(name, ""), _GUESSED.get(name, ""))


def _decimal_of_sql(arguments: str, mysql: bool) -> str:
    """`decimal(p,s)` where the source has a scale: bytes need it in records without a schema, and so does text in expressions."""
    precision, _, scale = (arguments or ("10,0" if mysql else "")).partition(",")
    if not precision.isdecimal() or not (scale or "0").isdecimal():
        return "decimal"
    fits = 1 <= int(precision) <= MAX_DIGITS and int(scale or 0) <= int(precision)
    return f"decimal({precision},{scale or 0})" if fits else "decimal"


def _timestamp(arguments: str, modes: ConnectorModes, default: int) -> DraftColumn:
    digits = int(arguments) if arguments.isdecimal() else default
    adaptive = "ms" if digits <= _TO_MILLISECONDS else "us"
    match modes.time:
        case "isostring":
            return DraftColumn("timestamp")
        case "connect":
            return DraftColumn("timestamp(ms)")
        case "nanoseconds":
            return DraftColumn("timestamp(ns)")
        case "microseconds":
            return DraftColumn("timestamp(us)")
        case None:
            return DraftColumn(f"timestamp({adaptive})", "the unit, by Debezium's default time.precision.mode")
    return DraftColumn(f"timestamp({adaptive})")


def _unknown(sql_type: str) -> DraftColumn:
    return DraftColumn(
        "", f"{sql_type or 'this type'}: look at a record, then declare it; undeclared it passes through"
    )


_JSON: Final = "io.debezium.data.Json"
_PRIMITIVES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "int", "long", "integer"), "int"),
    **dict.fromkeys(("float", "double", "float32", "float64", "number"), "float"),
    **dict.fromkeys(("string", "bytes", "enum", "fixed"), "string"),
    **dict.fromkeys(("struct", "map", "record", "object"), "json"),
    "boolean": "bool",
}


def schema_column(schema: Mapping[str, Any]) -> DraftColumn:
    """The column of a schema. `doc`, which Avro and Kafka Connect know, becomes its comment."""
    doc = schema.get("doc")
    return _typed(schema)._replace(comment=doc if isinstance(doc, str) else "")


def _typed(schema: Mapping[str, Any]) -> DraftColumn:
    kind, name = schema.get("type"), schema.get("name")
    if kind == "array":
        items = schema.get("items")
        found = _typed(items) if isinstance(items, dict) else DraftColumn("json")
        inner = found.type if found.type and not found.type.endswith("[]") else "json"
        return DraftColumn(f"{inner}[]", found.guess)
    if name == DECIMAL:
        return DraftColumn(_decimal_of_schema(schema.get("parameters")))
    if name == _JSON:
        return DraftColumn("json")
    if isinstance(name, str) and name in NAMED_TYPES:
        types, reading = NAMED_TYPES[name]
        return DraftColumn(f"{types[0]}({reading.unit})" if reading.unit else types[0])
    if isinstance(kind, str) and kind in _PRIMITIVES:
        return DraftColumn(_PRIMITIVES[kind])
    return DraftColumn("json", "its schema allows several types")


def _decimal_of_schema(parameters: Any) -> str:
    found = parameters if isinstance(parameters, dict) else {}
    precision, scale = (str(found.get(name, "")) for name in ("connect.decimal.precision", "scale"))
    if (
        precision.isdecimal()
        and scale.isdecimal()
        and 0 < int(precision) <= MAX_DIGITS
        and int(scale) <= int(precision)
    ):
        return f"decimal({precision},{scale})"
    return "decimal"


UNSEEN: Final = "only null was seen: declare it with its type; undeclared it passes through"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dZ?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_BYTES: Final = re.compile(r"[A-Za-z0-9+/]{2,22}={1,2}")
_TIMESTAMP: Final = ColumnType(name="timestamp")
_MEANT: Final = {"text of an integer": "int", "text of a decimal": "decimal", "text of truth": "bool"}
"""Kinds of text of a system that writes other types as text. Text of numbers alone may be a number, or text."""
_PLACEHOLDER: Final = placeholder_of(PLACEHOLDER)
_EARLIEST: Final = 10**11
"""An integer from here on may be a time: in milliseconds, the year 1973."""


class SeenValues:
    """The kinds of the values of a column."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._least: int | None = None
        self._items: SeenValues | None = None

    def add(self, value: Value, *, any_text: bool = False) -> None:
        """Takes a value. Null, and Debezium's placeholder, show nothing. `any_text`: text may be a number, a truth or a time of
        a system."""
        if value is None or _PLACEHOLDER.is_in(value):
            return
        self._kinds.add(_text_kind(value) if any_text and type(value) is str else _kind(value))
        if type(value) is int:
            self._least = value if self._least is None else min(self._least, value)
        if type(value) is list:
            self._items = self._items or SeenValues()
            for item in value:
                self._items.add(item)

    def column(self) -> DraftColumn:
        """The column to declare."""
        kinds = self._kinds
        if texts := kinds & _MEANT.keys():
            meant = {_MEANT[text] for text in texts}
            known = kinds - texts
            is_meant = known <= {"bool"} if meant == {"bool"} else bool(known) and known <= {"int", "decimal"}
            kinds = known | (meant if is_meant else {"string"})
        if not kinds:
            return DraftColumn("", UNSEEN)
        if kinds == {"list"}:
            found = self._items.column() if self._items else DraftColumn("")
            plain = found.type and not found.type.endswith("[]")
            return (
                DraftColumn(f"{found.type}[]", found.guess)
                if plain
                else DraftColumn("json[]", "nothing shows its elements")
            )
        if "text" in kinds and kinds <= {"text", "list", "json"}:
            return DraftColumn("json(text)", "string, if the source keeps it as text")
        if kinds == {"int"} and self._least is not None and self._least >= _EARLIEST:
            return DraftColumn("int", "timestamp(ms), timestamp(us) or timestamp(ns), if it is a time")
        if kinds == {"bytes"}:
            return DraftColumn("string", "decimal(p,s) with decimals: bytes, if it is a number of Debezium")
        if kinds <= {"int", "decimal"}:
            return DraftColumn("int" if kinds == {"int"} else "decimal")
        if kinds <= {"string", "text", "bytes", "date", "timestamp"} and len(kinds) > 1:
            return DraftColumn("string")
        return (
            DraftColumn(next(iter(kinds)))
            if len(kinds) == 1
            else DraftColumn("json", f"it holds {', '.join(sorted(kinds))}")
        )


def _text_kind(text: str) -> str:
    """The type of one text of a system that writes numbers, truth and times as text."""
    if NUMERIC.fullmatch(text):
        return "text of an integer" if text.lstrip("+-").isdecimal() else "text of a decimal"
    if text.lower() in ("true", "false"):
        return "text of truth"
    return "timestamp" if _is_time(text, ANY_TEXT) and not _DATE.fullmatch(text) else _kind(text)


def _kind(value: Value) -> str:
    """The type of one value; `list`; `text` for text of a JSON object or array; or `bytes` for text that may be Base64."""
    match value:
        case bool():
            return "bool"
        case int():
            return "int"
        case Decimal():
            return "decimal"
        case list():
            return "list"
        case dict():
            return "decimal" if value.keys() == {"scale", "value"} else "json"
    if _DATE.fullmatch(value):
        return "date"
    if _TIME.fullmatch(value) and _is_time(value):
        return "timestamp"
    if value[:1] in ("{", "[") and _is_json(value):
        return "text"
    return "bytes" if _BYTES.fullmatch(value) and len(value) % 4 == 0 else "string"


def _is_json(text: str) -> bool:
    try:
        canonical_json.loads(text)
    except ValueError:
        return False
    return True


def _is_time(text: str, reading: Reading = PLAIN) -> bool:
    try:
        canonical_value(text, _TIMESTAMP, reading)
    except ValueError:
        return False
    return True
