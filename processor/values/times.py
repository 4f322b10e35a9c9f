"""Reads dates and timestamps of columns: `2026-11-20`, `2026-11-20T22:38:37.758449Z`, years 0001 to 9999."""

import re
from datetime import date, datetime, timedelta
from typing import Any, Final

from processor.values.entity import ColumnType, TimestampUnit
from processor.values.mismatch import beyond, unexpected
from processor.values.numbers import to_int

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
_NO_YEAR: Final = re.compile(r"-?infinity|[+-][0-9]{4,}-.*")
"""Texts of Debezium for PostgreSQL's infinity, for years before 0001 and for years after 9999."""


def to_date(value: Any, column_type: ColumnType) -> str:
    """The canonical date of ISO text (Debezium's isostring mode appends a Z), or of days since 1970. Raises ValueError."""
    if isinstance(value, str):
        match = _DATE.fullmatch(value)
        if match is None:
            raise _unread(value, column_type)
        return _check_day(match.group(1), value, column_type)
    days = to_int(value, column_type)
    if not date.min.toordinal() <= _EPOCH_DAY + days <= date.max.toordinal():
        raise beyond(column_type, value, _YEARS)
    return date.fromordinal(_EPOCH_DAY + days).isoformat()


def to_timestamp(value: Any, column_type: ColumnType, unit: TimestampUnit | None) -> str:
    """The canonical timestamp of RFC 3339 text, or of a number of `unit`s since 1970.

    Raises ValueError; a number without a `unit` is refused, too."""
    if isinstance(value, str):
        return _read_text(value, column_type)
    count = to_int(value, column_type)
    if unit is None:
        raise unexpected(column_type, value, _NO_UNIT)
    if unit == "ns" and count in _INFINITE_NANOSECONDS:  # 64 bits of nanoseconds end in the year 2262
        raise unexpected(column_type, value, _INFINITE)
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


def _read_text(text: str, column_type: ColumnType) -> str:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise _unread(text, column_type)
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


def _unread(text: str, column_type: ColumnType) -> ValueError:
    return unexpected(column_type, text, _YEARS if _NO_YEAR.fullmatch(text) else "")


def _timestamp_text(moment: datetime, fraction: str) -> str:
    fraction = fraction.rstrip("0")
    return f"{moment.isoformat()}.{fraction}Z" if fraction else f"{moment.isoformat()}Z"


def _check_day(day: str, text: str, column_type: ColumnType) -> str:
    try:
        date.fromisoformat(day)
    except ValueError:
        raise beyond(column_type, text, "no such day") from None
    return day
