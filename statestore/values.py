"""The values that an item may hold, their form in DynamoDB's JSON, and the bytes that they count.

Promises: a reader gets a value that equals the written one. Numbers are exact to 38 digits and come back canonical, from an int
as from a Decimal: int when integral, else a Decimal without trailing zeros. Does not: take floats (they are not exact) or sets.
Does the work of boto3's serializers several times as fast, and without boto3.

A column is an attribute of an item: text, booleans, nulls, and numbers that DynamoDB holds exactly as such; other values as
{"json": text}. A value that is older than the row's version is {"value": as above, "since": its own version}. Values that no job
reads by name are one JSON text, compressed by zlib where that makes them a quarter smaller.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow, Subnormal
from functools import lru_cache
from typing import Any, NamedTuple
from zlib import compress, decompress

import simplejson

_NUMBER = Context(prec=38, Emin=-130, Emax=125, traps=[Inexact, InvalidOperation, Overflow, Subnormal])
_PLAIN_INT = 10**38


def canonical(value: Any) -> Any:
    """The value as a reader will get it. Raises ValueError, with the reason, when DynamoDB cannot hold the value exactly."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _text(value)
    if kind is bool or kind is bytes or value is None:
        return value
    if kind is int or kind is Decimal:
        return value if kind is int and -_PLAIN_INT < value < _PLAIN_INT else _number(value)
    if kind is dict:
        return {_name(name): canonical(inner) for name, inner in value.items()}
    if kind is list or kind is tuple:
        return [canonical(inner) for inner in value]
    cure = "; give an int or a Decimal" if kind is float else ""
    raise ValueError(f"a {kind.__name__} cannot be stored exactly{cure}")


def encode(value: Any) -> dict[str, Any]:
    """A canonical value in DynamoDB's JSON: `{"S": "text"}`, `{"N": "42"}`."""
    kind = type(value)
    if kind is str:
        return {"S": value}
    if kind is bool:
        return {"BOOL": value}
    if value is None:
        return {"NULL": True}
    if kind is bytes:
        return {"B": value}
    if kind is dict:
        return {"M": {name: encode(inner) for name, inner in value.items()}}
    if kind is list:
        return {"L": [encode(inner) for inner in value]}
    return {"N": str(value)}


def decode(wire: Mapping[str, Any]) -> Any:
    """The value of DynamoDB's JSON. Raises ValueError for a type that `encode` never writes."""
    ((kind, value),) = wire.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "B":  # boto3 gives bytes, and DynamoDB itself their Base64
            return value if type(value) is bytes else b64decode(value)
        case "N":
            return int(value) if value.isdecimal() else _number(Decimal(value))
        case "NULL":
            return None
        case "L":
            return [decode(inner) for inner in value]
        case "M":
            return {name: decode(inner) for name, inner in value.items()}
    raise ValueError(f"an attribute of type {kind} was not written by statestore")


def size(value: Any) -> int:
    """Bytes that a value counts towards an item, as AWS documents it ("DynamoDB item sizes and formats"). AWS gives the size of a
    number only roughly, and leaves out the sign; DynamoDB Local counts a byte for it."""
    return _SIZES[type(value)](value)


def item_size(item: Mapping[str, Any]) -> int:
    """Bytes of an item, attribute names included."""
    texts, bytes_ = list(item), 0
    for value in item.values():
        if type(value) is str:
            texts.append(value)  # as most are: all are measured together
        else:
            bytes_ += _SIZES[type(value)](value)
    text = "".join(texts)
    return bytes_ + (len(text) if text.isascii() else len(text.encode()))


@lru_cache(maxsize=4096)
def _number_size(value: int | Decimal) -> int:
    digits = str(value).partition("E")[0].replace(".", "").strip("-0")
    return 1 + (len(digits) + 1) // 2 + int(value < 0)


def _text_size(value: str) -> int:
    return len(value) if value.isascii() else len(value.encode())


def _map_size(value: Mapping[str, Any]) -> int:
    return 3 + len(value) + item_size(value)


def _list_size(value: Sequence[Any]) -> int:
    return 3 + sum(1 + size(inner) for inner in value)


_SIZES: dict[type, Callable[[Any], int]] = {
    str: _text_size,
    bytes: len,
    bool: lambda _: 1,
    type(None): lambda _: 1,
    dict: _map_size,
    list: _list_size,
    tuple: _list_size,
    int: _number_size,
    Decimal: _number_size,
}
"""The size of a value by its type."""


def fits(item: Mapping[str, Any], limit: int) -> bool:
    """Whether an item, attribute names included, counts at most `limit` bytes."""
    return item_size(item) <= limit


def _number(value: int | Decimal) -> int | Decimal:
    if type(value) is int and -_PLAIN_INT < value < _PLAIN_INT:
        return value
    try:
        exact = _NUMBER.normalize(Decimal(value))
    except DecimalException:
        raise ValueError("a number beyond 38 digits or beyond 1E-130 .. 9.99E+125 cannot be stored exactly") from None
    if not exact.is_finite():
        raise ValueError(f"{exact} is not a number that can be stored")
    integral = exact == exact.to_integral_value()
    return int(exact) if integral else exact


def _name(name: Any) -> str:
    if type(name) is not str or not name:
        raise ValueError(f"{name!r} cannot name an entry of a map; give a non-empty text")
    return name if name.isascii() else _text(name)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("a text with half a surrogate pair has no UTF-8, so it cannot be stored") from None
    return value


MAX_COLUMNS = 300
"""The most declared columns of a row. One write sets all of them, two attributes per slot and the item's own, at most
`limits.MAX_CHANGES` together."""
_OWN = re.compile(r"PK|SK|GSI_SK(_\d+)?|ttl|(GSI|prev)_\d+|[_.].*")
_SLOTS = re.compile(r"(GSI|prev)_(\d+)")
WORTHWHILE = 512
"""This many characters are worth a compression."""
_LEVEL = 6
"""Level 6 takes 2.5 KB of words to 1.2 KB in 71 µs of CPU, as small as zstd does in
22 µs; with a dictionary zstd takes them to 0.8 KB, but each table would have to keep its dictionaries."""


class NamedAttributes(NamedTuple):
    """The attributes of an item by their meaning: pairs of an attribute's name and its column or slot. `former`: the copies of
    slots from before a write; `names`: the item's names in indexes with a range key of their own."""

    columns: tuple[tuple[str, str], ...]
    slots: tuple[tuple[str, int], ...]
    former: tuple[tuple[str, int], ...]
    names: tuple[tuple[str, int], ...]


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
    own = tuple((name, int(name.rpartition("_")[2])) for name in names if name.startswith("GSI_SK_"))
    return NamedAttributes(tuple(columns), slots, former, own)


def store_value(value: Any, since: str | None = None) -> Any:
    """A column's value as an attribute's value. `since`: its version, where it is older than the row."""
    kind = type(value)
    plain = kind is str or kind is bool or value is None
    if not plain:
        plain = -_PLAIN_INT < value < _PLAIN_INT if kind is int else kind is Decimal and _fits(value)
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
