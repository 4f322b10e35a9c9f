"""How the schema of a column says to read its values, and which declared types take them.

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
    a union, and nobody knows which branch             each type that reads all branches in the same way
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from processor.values.entity import ColumnType, TypeName
from processor.values.schemas.connect_values import CONNECT, DECIMAL, VARIABLE_DECIMAL
from processor.values.values import PLAIN, Reading

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
_WORDS: Final = ("Uuid", "Xml", "Ltree", "Enum", "EnumSet", "TsVector")
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
    **{f"{_DATA}{name}": (_TEXT, PLAIN) for name in _WORDS},
}
"""The name of a type -> the declared types that take it next to `json`, and how to read it."""


def schema_reading(schema: Mapping[str, Any], column_type: ColumnType) -> Reading:
    """How to read the values of a column by its schema. For an array, the schema of the elements decides."""
    if column_type.array and schema.get("name") == JSON:
        return Reading(text="json")
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        schema = schema["items"]
    if schema.get("type") == UNKNOWN_REFERENCE:
        return _refused(f"$ref {schema.get('name')!r}, which nobody here knows", (), column_type)
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
