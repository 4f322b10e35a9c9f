"""Says which values of rows PostgreSQL cannot hold, or holds with fewer digits. Pure."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Final

from processor.records.entity import ColumnType, Entity
from processor.records.record import Value
from processor.records.times import round_to_microseconds

_MOST_DIGITS: Final = 131_072
"""Digits of a numeric before its point."""
_MOST_DECIMALS: Final = 16_383
"""Digits of a numeric after its point."""
_NUL: Final = "a NUL character, which Postgres cannot hold"


def why_not_held(entity: Entity, columns: Mapping[str, Value], used: Collection[str] | None) -> str | None:
    """Why PostgreSQL cannot hold a row as it is; None if it can. `used`: the columns that count in addition to the key,
    None for all."""
    for name, column in entity.columns.items():
        if used is not None and name not in used and name not in entity.key:
            continue
        value = columns.get(name)
        if name in entity.key and column.name == "timestamp" and round_to_microseconds(str(value)) != value:
            return f"key column {name} has more digits than the microseconds of Postgres"
        if reason := _why_refused(value, column):
            return f"column {name} has {reason}"
    return None


def _why_refused(value: Value, column: ColumnType) -> str | None:
    if value is None:
        return None
    if column.array:
        element = replace(column, array=False)
        return next((reason for each in value if (reason := _why_refused(each, element))), None)
    if column.name == "string":
        return _NUL if "\0" in value else None
    return _why_json_refused(value) if column.name == "json" else None


def _why_json_refused(value: Value) -> str | None:
    match value:
        case str():
            return _NUL if "\0" in value else None
        case dict():
            return _why_json_refused([*value, *value.values()])
        case list():
            return next((reason for each in value if (reason := _why_json_refused(each))), None)
        case int() | Decimal() if type(value) is not bool:
            return _why_number_refused(Decimal(value))
    return None


def _why_number_refused(number: Decimal) -> str | None:
    if number.adjusted() < _MOST_DIGITS and int(number.as_tuple().exponent) >= -_MOST_DECIMALS:
        return None
    return "a number beyond the range of Postgres"
