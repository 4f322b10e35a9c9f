"""Reads numbers of columns: exact, and within the limits of a DynamoDB number.

A canonical Decimal has no trailing zeros and no positive exponent. So equal numbers have equal text, whatever their source.
"""

import base64
import binascii
import re
from decimal import Context, Decimal, DecimalException, Inexact, Overflow, Subnormal
from typing import Any, Final

from processor.values.entity import MAX_DIGITS, ColumnType
from processor.values.reasons import Mismatch, beyond, unexpected

NUMERIC: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DYNAMODB: Final = Context(prec=MAX_DIGITS, Emin=-130, Emax=125, traps=[Inexact, Overflow, Subnormal])
_TOO_LARGE: Final = 10**MAX_DIGITS
_MAX_SCALE: Final = 1000
_MAX_BASE64: Final = 1024
_EXACT: Final = Context(prec=4000, traps=[Inexact, Overflow, Subnormal])
_LIMIT: Final = f"the table keeps {MAX_DIGITS} digits and magnitudes from 1E-130 to 1E+126"
ENDLESS: Final = re.compile(r"nan|[+-]?infinity|(?:positive|negative)_infinity", re.IGNORECASE)
_INFINITE: Final = "no finite number; declare json to pass it through as it comes"
_BYTES: Final = "for Debezium's bytes: declare `decimals: bytes` and decimal(precision,scale), or send schemas"
_NO_SCALE: Final = "the entity has `decimals: bytes`: declare decimal(precision,scale), or send schemas"
_OTHER_SCALE: Final = (
    "bytes with more digits than the declared precision: the source has another precision or scale; declare that of the "
    "source, or send schemas"
)
_NO_BYTES: Final = "not Debezium's bytes"


def to_int(value: Any, column_type: ColumnType) -> int:
    """An integral JSON number (42, 42.0, 4.2e1) as int."""
    if type(value) is int:
        if -_TOO_LARGE < value < _TOO_LARGE:
            return value
        raise beyond(column_type, value, _LIMIT)
    if type(value) is float:
        value = _from_float(value, column_type)
    if type(value) is not Decimal or not value.is_finite():
        raise _no_number(column_type, value)
    if value.adjusted() >= MAX_DIGITS:
        raise beyond(column_type, value, _LIMIT)
    if value != value.to_integral_value():
        raise unexpected(column_type, value)
    return int(value)


def to_float(value: Any, column_type: ColumnType) -> Decimal:
    """A number or numeric text as the shortest decimal form of its double."""
    try:
        number = value if type(value) is float else float(to_number(value, column_type))
    except OverflowError:
        raise beyond(column_type, value, "beyond a double") from None
    return canonical_decimal(_from_float(number, column_type, value), column_type)


def to_decimal(value: Any, column_type: ColumnType) -> Decimal:
    """A number or numeric text, exactly."""
    return canonical_decimal(to_number(value, column_type), column_type)


def canonical_decimal(number: int | Decimal, column_type: ColumnType) -> Decimal:
    """The one form of a number: 1.5 for 1.50, 100 for 1E+2, 0 for -0.0. Raises ValueError for a number that DynamoDB cannot
    hold."""
    try:
        result = _DYNAMODB.normalize(number if type(number) is Decimal else Decimal(number))
    except DecimalException:
        raise beyond(column_type, number, _LIMIT) from None
    if not result:
        return Decimal(0)
    return Decimal(int(result)) if "E+" in str(result) else result


def to_number(value: Any, column_type: ColumnType) -> int | Decimal:
    """The number in a JSON number, in numeric text, or in Debezium's `{scale, value}`."""
    match value:
        case bool():
            pass
        case int():
            return value
        case Decimal() if value.is_finite():
            return value
        case float():
            return _from_float(value, column_type)
        case str() if NUMERIC.fullmatch(value):
            try:
                return Decimal(value)
            except DecimalException:
                raise beyond(column_type, value, _LIMIT) from None
        case {"scale": int(scale), "value": str(text), **rest} if not rest and abs(scale) <= _MAX_SCALE:
            return decode_decimal(text, scale, column_type, stated=True)
    raise _no_number(column_type, value)


def decode_decimal(value: str, scale: int | None, column_type: ColumnType, *, stated: bool = False) -> Decimal:
    """Decodes a Decimal of Debezium (Kafka Connect): base64 of the unscaled value, two's-complement, big-endian. `scale` None:
    nobody says it, and the text is refused. `stated`: the record says the scale. Else it is that of the declared type, and more
    digits than this type has show that the source has another one."""
    unscaled = unscaled_of(value)
    if unscaled is None or scale is None:
        raise unexpected(column_type, value, _NO_BYTES if unscaled is None else _NO_SCALE)
    if not stated and column_type.precision is not None and abs(unscaled) >= 10**column_type.precision:
        raise unexpected(column_type, value, _OTHER_SCALE, code="column-range")
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def _no_number(column_type: ColumnType, value: Any) -> Mismatch:
    """The error of a value that is not read as a number here. A word of letters is hardly ever bytes."""
    if isinstance(value, Decimal):
        return unexpected(column_type, value, unrepresentable=not value.is_finite())
    if not isinstance(value, str) or NUMERIC.fullmatch(value):
        return unexpected(column_type, value)
    if ENDLESS.fullmatch(value):
        return unexpected(column_type, value, _INFINITE, unrepresentable=True)
    return unexpected(column_type, value, _BYTES if not value.isalpha() and unscaled_of(value) is not None else "")


def unscaled_of(text: str) -> int | None:
    """The integer in base64 of Java's BigInteger: padded, and in as few bytes as possible. None for other text."""
    if not 0 < len(text) <= _MAX_BASE64:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    number = int.from_bytes(data, "big", signed=True)
    length = ((number if number >= 0 else ~number).bit_length() // 8) + 1
    return number if len(data) == length and base64.b64encode(data).decode() == text else None


def _from_float(number: float, column_type: ColumnType, value: Any = None) -> Decimal:
    result = Decimal(repr(number))
    if not result.is_finite():
        raise beyond(column_type, number if value is None else value, "")
    return result
