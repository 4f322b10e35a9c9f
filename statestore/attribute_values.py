"""The values that an item may hold, their form in DynamoDB's JSON, and the bytes that they count.

Promises: a reader gets a value that equals the written one. Numbers are exact to 38 digits and come back canonical, from an int
as from a Decimal: int when integral, else a Decimal without trailing zeros. Does not: take floats (they are not exact) or sets.
Does the work of boto3's serializers several times as fast, and without boto3.
"""

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, DecimalException, Inexact, InvalidOperation, Overflow, Subnormal
from functools import lru_cache
from typing import Any

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
    return bytes_ + len("".join(texts).encode())


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
