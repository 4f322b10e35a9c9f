"""Reads column types from text. A definition writes that text, and `str(ColumnType)` gives it back."""

import re
from typing import Final, cast, get_args

from processor.text import nearest
from processor.values.entity import ColumnType, TimestampUnit, TypeName

MAX_DIGITS: Final = 38
"""The table keeps so many significant digits of a number, in every store as in DynamoDB."""

_NAMES: Final = get_args(TypeName)
_UNITS: Final = get_args(TimestampUnit)
_TYPES: Final = (
    f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}, also decimal(precision,scale), timestamp(ms), timestamp(us), timestamp(ns) or "
    "json(text); [] after a type makes an array"
)
_SHAPE: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*(\[\s*\])?", re.ASCII)
_SQL_NAMES: Final = {
    "integer": "int", "bigint": "int", "smallint": "int", "long": "int", "serial": "int",
    "text": "string", "varchar": "string", "char": "string", "uuid": "string", "str": "string",
    "numeric": "decimal", "number": "decimal", "money": "decimal", "double": "float", "real": "float",
    "boolean": "bool", "jsonb": "json(text)", "object": "json", "array": "json[]",
    "datetime": "timestamp", "timestamptz": "timestamp",
}  # fmt: skip


def parse_type(text: str) -> ColumnType:
    """Reads a column type: `int`, `decimal(12,2)`, `timestamp(us)`, `json(text)`, `string[]`.

    Raises ValueError, which names the error and the correct form.
    """
    shape = _SHAPE.fullmatch(text.strip())
    if shape is None:
        raise ValueError(f"{text!r} is not a type: expected {_TYPES}")
    name, arguments, array = shape.group(1), shape.group(2), shape.group(3) is not None
    if name not in _NAMES:
        raise ValueError(f"unknown type {name!r}{_suggestion(name)}: expected {_TYPES}")
    type_name = cast(TypeName, name)
    if arguments is None:
        return ColumnType(name=type_name, array=array)
    if type_name == "decimal":
        precision, scale = _precision_and_scale(text, arguments)
        return ColumnType(name=type_name, array=array, precision=precision, scale=scale)
    if type_name == "timestamp":
        return ColumnType(name=type_name, array=array, unit=_unit(text, arguments))
    if type_name == "json":
        if arguments.strip() != "text":
            raise ValueError(f"{text!r}: expected json(text), for JSON that arrives as text")
        return ColumnType(name=type_name, array=array, text=True)
    raise ValueError(f"{text!r}: {name} takes nothing in parentheses")


def _precision_and_scale(text: str, arguments: str) -> tuple[int, int]:
    parts = [part.strip() for part in arguments.split(",")]
    if len(parts) not in (1, 2) or not all(re.fullmatch(r"[0-9]{1,4}", part) for part in parts):
        raise ValueError(f"{text!r}: expected decimal(precision,scale), for example decimal(12,2)")
    precision, scale = int(parts[0]), int(parts[1]) if len(parts) == 2 else 0
    if not 1 <= precision <= MAX_DIGITS or scale > precision:
        raise ValueError(f"{text!r}: expected a precision from 1 to {MAX_DIGITS} and a scale from 0 to the precision")
    return precision, scale


def _unit(text: str, arguments: str) -> TimestampUnit:
    unit = arguments.strip()
    if unit not in _UNITS:
        raise ValueError(f"{text!r}: expected the unit of numbers, timestamp(ms), timestamp(us) or timestamp(ns)")
    return cast(TimestampUnit, unit)


def _suggestion(name: str) -> str:
    lower = name.lower()
    near = lower if lower in _NAMES else _SQL_NAMES.get(lower) or nearest(lower, _NAMES)
    return f" (did you mean {near!r}?)" if near else ""
