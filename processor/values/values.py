"""Turns decoded JSON values into the canonical values of a column's type (processor/values/record.py).

Promises: equal values give the same canonical value, and a value that does not fit is refused with a reason, never changed.
This module does not know records, keys or names of columns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Final, Literal

from processor.values import canonical_json
from processor.values.entity import ColumnType, TimestampUnit
from processor.values.mismatch import unexpected, within
from processor.values.numbers import (
    canonical_decimal,
    decode_decimal,
    read_unsaid,
    to_decimal,
    to_float,
    to_int,
)
from processor.values.record import Value
from processor.values.settled_form import SettledForm
from processor.values.times import to_date, to_timestamp

Convert = Callable[[Value], Value]
"""Turns a decoded JSON value that is not null into the canonical value. Raises ValueError with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a column's values: facts from the source, in addition to the declared type.

    text: the meaning of text. `plain`: itself; `debezium`: itself, and in a decimal with a scale perhaps Debezium's bytes;
    `bytes`: the bytes of a decimal of `scale` (None: nobody declared it); `json`: JSON. unit: the unit of bare timestamps.
    named: whether a schema names the type, so that the declared unit and precision count no more. refused: the reason why the
    declared type takes no value of the schema. settled: the form of text that the column has under `debezium`, None before a
    record settled it.
    """

    text: Literal["plain", "debezium", "bytes", "json"] = "plain"
    scale: int | None = 0
    unit: TimestampUnit | None = None
    named: bool = False
    refused: str = ""
    settled: SettledForm | None = None


PLAIN: Final = Reading()
DEBEZIUM: Final = Reading(text="debezium")


def canonical_value(value: Value, column_type: ColumnType, reading: Reading = PLAIN) -> Value:
    """The canonical value of a decoded JSON value (numbers int or Decimal); null stays null.

    Raises ValueError with a reason: `expected int, found text 'abc'`.
    """
    return None if value is None else converter(column_type, reading)(value)


@lru_cache(maxsize=4096)
def converter(column_type: ColumnType, reading: Reading = PLAIN) -> Convert:
    """The function for the values of one column. It is made once for a column, so records skip the choice by type."""
    single = _single(column_type, reading)
    if not column_type.array:
        return single
    parsed = _json if column_type.name == "json" else single
    return partial(_array, convert=single, parsed=parsed, column_type=column_type)


def _single(column_type: ColumnType, reading: Reading) -> Convert:
    if reading.refused:
        return _refusal(column_type, reading.refused)
    match column_type.name:
        case "string":
            return _string(column_type)
        case "bool":
            return lambda value: _bool(value, column_type)
        case "date":
            return lambda value: to_date(value, column_type)
        case "timestamp":
            unit = reading.unit if reading.named else reading.unit or column_type.unit
            return lambda value: to_timestamp(value, column_type, unit)
        case "json":
            return _json_text if reading.text == "json" or column_type.text else _json
        case "int" | "float" | "decimal":
            return _number(column_type, reading)


def _refusal(column_type: ColumnType, why: str) -> Convert:
    def refuse(value: Value) -> Value:
        raise unexpected(column_type, value, why)

    return refuse


def _number(column_type: ColumnType, reading: Reading) -> Convert:
    to_type = _NUMBERS[column_type.name]

    def from_number(value: Value) -> Value:
        return to_type(value, column_type)

    def from_bytes(value: Value) -> Value:
        number = (
            decode_decimal(value, reading.scale, column_type, stated=reading.named) if isinstance(value, str) else value
        )
        return to_type(number, column_type)

    def from_unsaid(value: Value) -> Value:
        number = read_unsaid(value, column_type, reading.settled) if isinstance(value, str) else value
        return to_type(number, column_type)

    if reading.text == "bytes":
        return from_bytes
    return from_unsaid if reading.text == "debezium" and column_type.scale is not None else from_number


_NUMBERS: Final[dict[str, Callable[[Value, ColumnType], Value]]] = {
    "int": to_int,
    "float": to_float,
    "decimal": to_decimal,
}


@lru_cache(maxsize=64)
def _string(column_type: ColumnType) -> Convert:
    """One function for all readings, by which `decode` knows the columns of text."""

    def from_text(value: Value) -> str:
        if type(value) is not str:
            raise unexpected(column_type, value)
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise unexpected(column_type, value, "half of a surrogate pair") from None
        return value

    return from_text


def _bool(value: Value, column_type: ColumnType) -> bool:
    if type(value) is int and value in (0, 1):  # MySQL's boolean is a tinyint(1), which arrives as a number
        return value == 1
    if type(value) is not bool:
        raise unexpected(column_type, value)
    return value


def _json(value: Value) -> Value:
    """The value, unchanged. A bare 1.0 becomes 1, because the table keeps numbers, not their text."""
    if type(value) is not Decimal:
        return value
    if not value.is_finite():
        raise unexpected(_JSON, value)
    try:
        number = canonical_decimal(value, _JSON)
    except ValueError:
        return value  # DynamoDB has no such number; it is stored as text, so no digit is lost
    return int(number) if number == number.to_integral_value() else number


def _json_text(value: Value) -> Value:
    if not isinstance(value, str):
        return _json(value)
    try:
        return _json(canonical_json.loads(value))
    except ValueError as error:
        raise unexpected(_JSON, value, str(error)) from None


def _array(value: Value, convert: Convert, parsed: Convert, column_type: ColumnType) -> list[Value]:
    """The array, or the array in JSON text: a column of an array has no other text. `parsed`: for the elements of that text."""
    if type(value) is str:
        value, convert = _array_in(value, column_type), parsed
    if type(value) is not list:
        raise unexpected(column_type, value)
    result = []
    for position, element in enumerate(value, start=1):
        try:
            result.append(None if element is None else convert(element))
        except ValueError as error:
            raise within(f"element {position}", error) from None
    return result


def _array_in(text: str, column_type: ColumnType) -> Value:
    try:
        return canonical_json.loads(text)
    except ValueError:
        raise unexpected(column_type, text) from None


_JSON: Final = ColumnType(name="json")
