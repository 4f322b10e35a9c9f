"""A column as an attribute of an item: its name and its value, and back.

Text, booleans, nulls, and numbers that DynamoDB holds exactly are stored as such; other values as {"json": text}. A value that is
older than the row's version is {"value": as above, "since": its own version}. Values that nobody reads by name are one JSON text,
compressed by zlib where that makes them a quarter smaller.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import compress, decompress

import simplejson

MAX_COLUMNS = 300
"""The most declared columns of a row. One write sets all of them, two attributes per slot and the item's own, at most
`limits.MAX_CHANGES` together."""
_OWN = re.compile(r"PK|SK|GSI_SK|ttl|(GSI|prev)_\d+|[_.].*")
_SLOTS = re.compile(r"(GSI|prev)_(\d+)")
_MAX_NUMBER = 10**38
WORTHWHILE = 512
"""So many characters are worth a compression."""
_LEVEL = 6
"""Level 6 takes 2.5 KB of words to 1.2 KB in 71 µs of CPU, as small as zstd does in
22 µs; with a dictionary zstd takes them to 0.8 KB, but each table would have to keep its dictionaries."""


class NamedAttributes(NamedTuple):
    """The attributes of an item by their meaning: pairs of an attribute's name and its column or slot. `former`: the copies of
    slots from before a write."""

    columns: tuple[tuple[str, str], ...]
    slots: tuple[tuple[str, int], ...]
    former: tuple[tuple[str, int], ...]


@lru_cache(maxsize=65536)
def attribute(column: str) -> str:
    """The attribute that holds a column."""
    return "." + column if _OWN.fullmatch(column) else column


@lru_cache(maxsize=4096)
def named_attributes(names: tuple[str, ...]) -> NamedAttributes:
    """The attributes with these names. The rows of an entity have few different sets of names."""
    columns = [(name, name.removeprefix(".")) for name in names if name.startswith(".") or not _OWN.fullmatch(name)]
    numbered = [(name, match[1], int(match[2])) for name in names if (match := _SLOTS.fullmatch(name))]
    slots = tuple((name, k) for name, kind, k in numbered if kind == "GSI")
    former = tuple((name, k) for name, kind, k in numbered if kind == "prev")
    return NamedAttributes(tuple(columns), slots, former)


def store_value(value: Any, since: str | None = None) -> Any:
    """A column's value as an attribute's value. `since`: its version, where it is older than the row."""
    kind = type(value)
    plain = kind is str or kind is bool or value is None
    if not plain:
        plain = -_MAX_NUMBER < value < _MAX_NUMBER if kind is int else kind is Decimal and _fits(value)
    stored = value if plain else {"json": dumps(value)}
    return stored if since is None else {"value": stored, "since": since}


def load_value(stored: Any) -> Any:
    """The value that an attribute holds."""
    if type(stored) is not dict:
        return stored
    return load_value(stored["value"]) if "since" in stored else loads(stored["json"])


def pack_values(values: Mapping[str, Any]) -> str | bytes:
    """Columns that no product reads, as one attribute's value."""
    text = dumps(values)
    if len(text) < WORTHWHILE:
        return text
    raw = text.encode()
    packed = compress(raw, _LEVEL)
    return packed if 4 * len(packed) <= 3 * len(raw) else text


def unpack_values(stored: str | bytes) -> dict[str, Any]:
    """The columns in an attribute of `pack_values`."""
    found: dict[str, Any] = loads(stored if isinstance(stored, str) else decompress(stored).decode())
    return found


def dumps(value: Any) -> str:
    """A value as JSON."""
    return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=False, separators=(",", ":")))


def loads(text: str) -> Any:
    """The value of JSON, with exact numbers."""
    return simplejson.loads(text, use_decimal=True)


def _fits(value: Decimal) -> bool:
    _, digits, exponent = value.as_tuple()
    return isinstance(exponent, int) and len(digits) <= 38 and exponent >= -130 and len(digits) + exponent <= 126
