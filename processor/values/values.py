"""Turns decoded JSON values into the canonical values of a column's type (processor/values/record.py).

Promises: equal values give the same canonical value, and a value that does not fit is refused with a reason, never changed.
This module does not know records, keys or names of columns.

Dates and timestamps are `2026-11-20` and `2026-11-20T22:38:37.758449Z`, in the years 0001 to 9999.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from typing import Any, Final, Literal

from processor.values import canonical_json
from processor.values.decimal_forms import (
    LearnedForm,
    canonical_decimal,
    decode_decimal,
    read_undeclared,
    to_decimal,
    to_float,
    to_int,
    to_number,
)
from processor.values.entity import ColumnType, TimestampUnit
from processor.values.reasons import beyond, unexpected, within
from processor.values.record import Value

_DATE: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})Z?")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]((?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9])(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([01][0-9]|2[0-3])(?::?([0-5][0-9]))?)?"
)
_FRACTION_DIGITS: Final = {"ms": 3, "us": 6, "ns": 9}
_EPOCH: Final = datetime(1970, 1, 1)
_FIRST_SECOND: Final = int((datetime.min - _EPOCH).total_seconds())
_LAST_SECOND: Final = (datetime.max - _EPOCH) // timedelta(seconds=1)  # a float of it rounds up, out of the years
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_NO_UNIT: Final = "a number without a unit: declare timestamp(ms), timestamp(us) or timestamp(ns)"
_YEARS: Final = "outside the years 0001 to 9999; declare json to pass it through as it comes"
_INFINITE: Final = "Debezium's number for infinity; declare json to pass it through as it comes"
_INFINITE_NANOSECONDS: Final = (-(2**63), 2**63 - 1)
_TRUTH: Final = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}
_MIDNIGHT: Final = re.compile(r"(?<=[0-9]{2})[Tt :]00:00:00(?:\.0+)?Z?\Z")
_COLON: Final = re.compile(r"\A([0-9]{4}-[0-9]{2}-[0-9]{2}):(?=[0-9]{2}:)")
_NO_YEAR: Final = re.compile(r"-?infinity|[+-][0-9]{4,}-.*|[0-9]{4,}-.* BC|[0-9]{5,}-.*")
"""Texts of Debezium and of PostgreSQL for infinity, for years before 0001 and for years after 9999."""


def to_date(value: Any, column_type: ColumnType) -> str:
    """The canonical date of ISO text (Debezium's isostring mode appends a Z), or of days since 1970. Raises ValueError."""
    if isinstance(value, str):
        match = _DATE.fullmatch(value)
        if match is None:
            raise _unread_time(value, column_type)
        return _check_day(match.group(1), value, column_type)
    days = to_int(value, column_type)
    if not date.min.toordinal() <= _EPOCH_DAY + days <= date.max.toordinal():
        raise beyond(column_type, value, _YEARS)
    return date.fromordinal(_EPOCH_DAY + days).isoformat()


def to_timestamp(value: Any, column_type: ColumnType, unit: TimestampUnit | None) -> str:
    """The canonical timestamp of RFC 3339 text, or of a number of `unit`s since 1970.

    Raises ValueError; a number without a `unit` is refused, too."""
    if isinstance(value, str):
        return _timestamp_of_text(value, column_type)
    count = to_int(value, column_type)
    if unit is None:
        raise unexpected(column_type, value, _NO_UNIT)
    if unit == "ns" and count in _INFINITE_NANOSECONDS:  # 64 bits of nanoseconds end in the year 2262
        raise unexpected(column_type, value, _INFINITE, unrepresentable=True)
    digits = _FRACTION_DIGITS[unit]
    seconds, fraction = divmod(count, 10**digits)
    if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise beyond(column_type, value, _YEARS)
    return _timestamp_text(_EPOCH + timedelta(seconds=seconds), f"{fraction:0{digits}d}")


def to_microseconds(value: str) -> str:
    """A canonical timestamp, rounded to PostgreSQL's microseconds, without its `Z`: then text order is time order."""
    second, _, digits = value[:-1].partition(".")
    if len(digits) <= 6:
        return value[:-1]
    try:
        moment = datetime.fromisoformat(second) + timedelta(microseconds=round(float(f".{digits}") * 1_000_000))
    except OverflowError:
        return f"{second}.999999"
    text = moment.isoformat()
    return text.rstrip("0") if moment.microsecond else text


def round_to_microseconds(value: str) -> str:
    """A canonical timestamp, rounded to PostgreSQL's microseconds."""
    return f"{to_microseconds(value)}Z"


def to_seconds(text: str) -> int:
    """The whole seconds since 1970 of a date or a timestamp as people write them. Raises ValueError."""
    moment = canonical_value(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text, ColumnType(name="timestamp"))
    return int((datetime.fromisoformat(str(moment)[:19]) - _EPOCH).total_seconds())


def _timestamp_of_text(text: str, column_type: ColumnType) -> str:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _unread_time(text, column_type)
    day, clock, fraction, sign, hours, minutes = match.groups()
    _check_day(day, text, column_type)
    fraction = fraction.rstrip("0") if fraction else ""
    if len(fraction) > 9:
        raise beyond(column_type, text, "more than 9 digits of a second")
    if sign is None:
        return f"{day}T{clock}.{fraction}Z" if fraction else f"{day}T{clock}Z"
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    try:
        moment = datetime.fromisoformat(f"{day}T{clock}") + (offset if sign == "-" else -offset)
    except OverflowError:
        raise beyond(column_type, text, _YEARS) from None
    return _timestamp_text(moment, fraction)


def _unread_time(text: str, column_type: ColumnType) -> ValueError:
    endless = _NO_YEAR.fullmatch(text) is not None
    return unexpected(column_type, text, _YEARS if endless else "", unrepresentable=endless)


def _timestamp_text(moment: datetime, fraction: str) -> str:
    fraction = fraction.rstrip("0")
    return f"{moment.isoformat()}.{fraction}Z" if fraction else f"{moment.isoformat()}Z"


def _check_day(day: str, text: str, column_type: ColumnType) -> str:
    try:
        date.fromisoformat(day)
    except ValueError:
        raise beyond(column_type, text, "no such day") from None
    return day


Convert = Callable[[Value], Value]
"""Turns a decoded JSON value that is not null into the canonical value. Raises ValueError with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How to read a column's values: facts from the source, in addition to the declared type.

    text: the meaning of text. `plain`: itself; `any`: also an integer, truth (`true`, `f`, `1`), a date with midnight, or a
    time with a colon before its hours; `debezium`: itself, and in a decimal with a scale perhaps Debezium's bytes; `bytes`: the
    bytes of a decimal of `scale` (None: undeclared); `json`: JSON. unit: the unit of bare timestamps.
    named: whether a schema names the type, so that the declared unit and precision count no more. refused: the reason why the
    declared type takes no value of the schema. settled: the form of text that the column has under `debezium`, None before a
    record settled it.
    """

    text: Literal["plain", "any", "debezium", "bytes", "json"] = "plain"
    scale: int | None = 0
    unit: TimestampUnit | None = None
    named: bool = False
    refused: str = ""
    settled: LearnedForm | None = None


PLAIN: Final = Reading()
DEBEZIUM: Final = Reading(text="debezium")
ANY_TEXT: Final = Reading(text="any")


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
            if reading.text == "any":
                return lambda value: _bool(
                    _TRUTH.get(value.lower(), value) if type(value) is str else value, column_type
                )
            return lambda value: _bool(value, column_type)
        case "date":
            if reading.text == "any":
                return lambda value: to_date(_MIDNIGHT.sub("", value) if type(value) is str else value, column_type)
            return lambda value: to_date(value, column_type)
        case "timestamp":
            unit = reading.unit if reading.named else reading.unit or column_type.unit
            if reading.text == "any":
                return lambda value: to_timestamp(
                    _COLON.sub(r"\1T", value) if type(value) is str else value, column_type, unit
                )
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

    def from_text(value: Value) -> Value:
        return to_type(to_number(value, column_type) if type(value) is str else value, column_type)

    def from_bytes(value: Value) -> Value:
        number = (
            decode_decimal(value, reading.scale, column_type, stated=reading.named) if isinstance(value, str) else value
        )
        return to_type(number, column_type)

    def from_unsaid(value: Value) -> Value:
        number = read_undeclared(value, column_type, reading.settled) if isinstance(value, str) else value
        return to_type(number, column_type)

    if reading.text == "bytes":
        return from_bytes
    if reading.text == "any":
        return from_text
    return from_unsaid if reading.text == "debezium" and column_type.scale is not None else from_number


_NUMBERS: Final[dict[str, Callable[[Value, ColumnType], Value]]] = {
    "int": to_int,
    "float": to_float,
    "decimal": to_decimal,
}


@lru_cache(maxsize=64)
def _string(column_type: ColumnType) -> Convert:
    """One function for all readings: `decode` knows the columns of text by it."""

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
