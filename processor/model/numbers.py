"""Numbers as columns keep them: exact, and no more than a DynamoDB number holds.

A canonical Decimal has no trailing zeros and no positive exponent, so that equal numbers are written alike wherever
they come from.
"""

import base64
import binascii
import re
from decimal import Context, Decimal, DecimalException, Inexact, Overflow, Subnormal
from typing import Any, Final

from processor.model.entity import ColumnType
from processor.model.types import MAX_DIGITS
from processor.model.unexpected import unexpected

_NUMERIC: Final = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DYNAMODB: Final = Context(prec=MAX_DIGITS, Emin=-130, Emax=125, traps=[Inexact, Overflow, Subnormal])
_TOO_LARGE: Final = 10**MAX_DIGITS
_MAX_SCALE: Final = 1000
_MAX_BASE64: Final = 1024
_EXACT: Final = Context(prec=4000, traps=[Inexact, Overflow, Subnormal])
_LIMIT: Final = f"DynamoDB keeps {MAX_DIGITS} digits and magnitudes from 1E-130 to 1E+126"
_AMBIGUOUS: Final = (
    "a number or Debezium's bytes: send schemas, or declare decimal where decimal.handling.mode is string"
)


def to_int(value: Any, column_type: ColumnType) -> int:
    """An integral JSON number (42, 42.0, 4.2e1) as int."""
    if type(value) is int:
        if -_TOO_LARGE < value < _TOO_LARGE:
            return value
        raise unexpected(column_type, value, _LIMIT)
    if type(value) is float:
        value = _of_float(value, column_type)
    if type(value) is not Decimal or not value.is_finite():
        raise unexpected(column_type, value)
    if value.adjusted() >= MAX_DIGITS:
        raise unexpected(column_type, value, _LIMIT)
    if value != value.to_integral_value():
        raise unexpected(column_type, value)
    return int(value)


def to_float(value: Any, column_type: ColumnType) -> Decimal:
    """A number or numeric text as the shortest decimal form of its double."""
    try:
        number = value if type(value) is float else float(to_number(value, column_type))
    except OverflowError:
        raise unexpected(column_type, value, "beyond a double") from None
    return canonical_decimal(_of_float(number, column_type, value), column_type)


def to_decimal(value: Any, column_type: ColumnType) -> Decimal:
    """A number or numeric text, exactly."""
    return canonical_decimal(to_number(value, column_type), column_type)


def canonical_decimal(number: int | Decimal, column_type: ColumnType) -> Decimal:
    """The one form of a number: 1.5 for 1.50, 100 for 1E+2, 0 for -0.0; refuses what DynamoDB cannot hold."""
    try:
        result = _DYNAMODB.normalize(number if type(number) is Decimal else Decimal(number))
    except DecimalException:
        raise unexpected(column_type, number, _LIMIT) from None
    if not result:
        return Decimal(0)
    return Decimal(int(result)) if "E+" in str(result) else result


def to_number(value: Any, column_type: ColumnType) -> int | Decimal:
    """What a JSON number, numeric text, or Debezium's `{scale, value}` says."""
    match value:
        case bool():
            pass
        case int():
            return value
        case Decimal() if value.is_finite():
            return value
        case float():
            return _of_float(value, column_type)
        case str() if _NUMERIC.fullmatch(value):
            try:
                return Decimal(value)
            except DecimalException:
                raise unexpected(column_type, value, _LIMIT) from None
        case {"scale": int(scale), "value": str(text), **rest} if not rest and abs(scale) <= _MAX_SCALE:
            return of_bytes(text, scale, column_type)
    raise unexpected(column_type, value)


def of_bytes(value: Any, scale: int, column_type: ColumnType) -> Decimal:
    """What Debezium's (Kafka Connect's) Decimal says: base64 of the unscaled value, two's-complement, big-endian."""
    unscaled = _unscaled(value) if isinstance(value, str) else None
    if unscaled is None:
        raise unexpected(column_type, value, "not Debezium's bytes")
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def of_text_or_bytes(value: str, column_type: ColumnType) -> int | Decimal:
    """What text in a Debezium record without a schema says, in a column declared with a scale.

    Nothing in the record tells `decimal.handling.mode=string` ("12.34") from the default, bytes ("BNI="). Most texts
    can be read in one way only. One that can be read in both ("1000" is also the bytes of -2667212) is refused: either
    guess would now and then store a wrong number.
    """
    scale, precision = column_type.scale or 0, column_type.precision or MAX_DIGITS
    unscaled = _unscaled(value)
    if unscaled is None or abs(unscaled) >= 10**precision:
        return to_number(value, column_type)
    if _NUMERIC.fullmatch(value):
        raise unexpected(column_type, value, _AMBIGUOUS)
    return Decimal(unscaled).scaleb(-scale, _EXACT)


def _unscaled(text: str) -> int | None:
    """The integer in base64 as Java's BigInteger gives it: padded, and without a byte too many; None for other text."""
    if not 0 < len(text) <= _MAX_BASE64:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    number = int.from_bytes(data, "big", signed=True)
    length = ((number if number >= 0 else ~number).bit_length() // 8) + 1
    return number if len(data) == length and base64.b64encode(data).decode() == text else None


def _of_float(number: float, column_type: ColumnType, value: Any = None) -> Decimal:
    result = Decimal(repr(number))
    if not result.is_finite():
        raise unexpected(column_type, number if value is None else value)
    return result
