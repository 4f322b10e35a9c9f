"""The type to declare for a column by its values, where records have no schema. Every such type is a guess. Pure."""

import re
from decimal import Decimal
from typing import Final

from processor.drafts.draft import DraftColumn
from processor.records.entity import ColumnType
from processor.records.placeholders import PLACEHOLDER, placeholder_of
from processor.records.record import Value
from processor.records.times import to_timestamp

UNSEEN: Final = "only null was seen: declare it with its type; undeclared it passes through"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dZ?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*")
_BYTES: Final = re.compile(r"[A-Za-z0-9+/]{2,22}={1,2}")
_TIMESTAMP: Final = ColumnType(name="timestamp")
_PLACEHOLDER: Final = placeholder_of(PLACEHOLDER)
_EARLIEST: Final = 10**11
"""An integer from here on may be a time: in milliseconds, the year 1973."""


class SeenValues:
    """The kinds of the values of a column."""

    def __init__(self) -> None:
        self._kinds: set[str] = set()
        self._least: int | None = None
        self._items: SeenValues | None = None

    def add(self, value: Value) -> None:
        """Takes a value. Null, and Debezium's placeholder, show nothing."""
        if value is None or _PLACEHOLDER.is_in(value):
            return
        self._kinds.add(_kind(value))
        if type(value) is int:
            self._least = value if self._least is None else min(self._least, value)
        if type(value) is list:
            self._items = self._items or SeenValues()
            for item in value:
                self._items.add(item)

    def column(self) -> DraftColumn:
        """The column to declare."""
        kinds = self._kinds
        if not kinds:
            return DraftColumn("", UNSEEN)
        if kinds == {"list"}:
            found = self._items.column() if self._items else DraftColumn("")
            plain = found.type and not found.type.endswith("[]")
            return DraftColumn(f"{found.type}[]" if plain else "json[]", "" if plain else "nothing shows its elements")
        if kinds == {"int"} and self._least is not None and self._least >= _EARLIEST:
            return DraftColumn("int", "timestamp(ms), timestamp(us) or timestamp(ns), if it is a time")
        if kinds == {"bytes"}:
            return DraftColumn("string", "decimal(p,s) with decimals: bytes, if it is a number of Debezium")
        if kinds <= {"int", "decimal"}:
            return DraftColumn("int" if kinds == {"int"} else "decimal")
        if kinds <= {"string", "bytes", "date", "timestamp"} and len(kinds) > 1:
            return DraftColumn("string")
        return (
            DraftColumn(next(iter(kinds)))
            if len(kinds) == 1
            else DraftColumn("json", f"it holds {', '.join(sorted(kinds))}")
        )


def _kind(value: Value) -> str:
    """The type of one value, or `list`, or `bytes` for text that may be Base64."""
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
    return "bytes" if _BYTES.fullmatch(value) and len(value) % 4 == 0 else "string"


def _is_time(text: str) -> bool:
    try:
        to_timestamp(text, _TIMESTAMP, None)
    except ValueError:
        return False
    return True
