"""PostgreSQL's arithmetic: int with 64 bits, decimal exact (numeric), float in double precision.

A Decimal keeps its scale, the digits after its point, as PostgreSQL's numeric does: 4.50 has two. Its exponent is never above 0.

An arithmetic error (division by zero, a result out of range) gives None. A float has the range of the table's numbers: 0, and
1E-130 to 1E+126. Literals keep to this range too. So no operation on two floats can overflow a double.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

Number = int | Decimal
_EXACT: Final = Context(prec=20_000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_MIN_SIGNIFICANT_DIGITS: Final = 16
_MAX_SCALE: Final = 1000
_MAX_INT_DIGITS: Final = 1000
"""Digits of an integral number that becomes an int. Python refuses to write integers of over 4,300 digits."""
_WHOLE: Final = Decimal(1)
_SMALLEST: Final = Decimal("1E-130")
_LARGEST: Final = Decimal("1E+126")

add = _EXACT.add
subtract = _EXACT.subtract
multiply = _EXACT.multiply
negate = _EXACT.minus
magnitude = _EXACT.abs


def int64(operation: Callable[..., int | None]) -> Callable[..., int | None]:
    """The operation, which gives None for a result beyond 64 bits."""

    def bounded(*args: Any) -> int | None:
        result = operation(*args)
        return result if result is not None and -(2**63) <= result < 2**63 else None

    return bounded


def double(operation: Callable[..., float]) -> Callable[..., float | None]:
    """The operation, which gives None for a result out of a float's range."""

    def bounded(*args: Any) -> float | None:
        return in_range(operation(*args))

    return bounded


def in_range(number: float) -> float | None:
    """The float, or None if it is out of range."""
    return number if number == 0 or 1e-130 <= abs(number) <= 1e126 else None


def divide_ints(a: int, b: int) -> int | None:
    """The quotient, truncated towards zero like PostgreSQL's. None for a division by zero."""
    if not b:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def modulo(a: Number, b: Number) -> Number | None:
    """The remainder of truncated division; the remainder has the sign of `a`."""
    if not b:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    return _EXACT.remainder(Decimal(a), Decimal(b))


def divide(a: Number, b: Number) -> Decimal | None:
    """The quotient, rounded half away from zero at PostgreSQL's scale (numeric.c, select_div_scale): at least 16 significant
    digits, and the digits of both operands."""
    if not b:
        return None
    x, y = Decimal(a), Decimal(b)
    return _rounded_quotient(x, y, _quotient_scale(x, y))


def divide_floats(a: float, b: float) -> float | None:
    return in_range(a / b) if b else None


def to_float(number: Number) -> float | None:
    """The nearest double. None if the number is out of a float's range."""
    return float(number) if not number or _SMALLEST <= abs(Decimal(number)) <= _LARGEST else None


def decimal_from_float(number: float) -> Decimal:
    """A double as numeric. PostgreSQL keeps 15 digits."""
    return without_exponent(Decimal(f"{number:.15g}"))


def to_int(number: Number) -> int:
    """The nearest integer; a half is rounded away from zero."""
    return int(rounded(number))


def rounded(number: Number, digits: int = 0) -> Decimal:
    """The number with so many digits after the point; a half is rounded away from zero."""
    return _quantized(number, digits, ROUND_HALF_UP)


def truncated(number: Number, digits: int = 0) -> Decimal:
    return _quantized(number, digits, ROUND_DOWN)


def floor(number: Number) -> Decimal:
    return _quantized(number, 0, ROUND_FLOOR)


def ceiling(number: Number) -> Decimal:
    return _quantized(number, 0, ROUND_CEILING)


def sign(number: Number | float) -> int:
    return (number > 0) - (number < 0)


def without_exponent(number: Decimal) -> Decimal:
    """The number with scale 0, if its exponent is above 0: 1000 for 1E+3."""
    return number if _scale(number) else _EXACT.quantize(number, _WHOLE)


def of_scale(number: Number, scale: int) -> Decimal:
    """The number with at least so many digits after the point: 4.50 for 4.5."""
    found = Decimal(number)
    return found if _scale(found) >= scale else _quantized(found, scale, ROUND_HALF_UP)


def without_zeros(number: Number) -> Decimal:
    """The number without zeros at the end of its fraction: 4.5 for 4.50."""
    return without_exponent(_plain(number))


def canonical_number(number: Number) -> Number:
    """The one form of a number in a document: an int for an integral value, else a Decimal without trailing zeros. An integral
    value of too many digits stays a Decimal: 1E+5000."""
    plain = _plain(number)
    return int(plain) if plain.adjusted() < _MAX_INT_DIGITS and plain == plain.to_integral_value() else plain


def _plain(number: Number) -> Decimal:
    plain = _EXACT.normalize(Decimal(number))
    return plain if plain else Decimal(0)


def _quantized(number: Number, digits: int, rounding: str) -> Decimal:
    found = Decimal(number).quantize(Decimal(1).scaleb(-digits), rounding=rounding, context=_EXACT)
    return found if digits >= 0 else without_exponent(found)


def _scale(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _quotient_scale(x: Decimal, y: Decimal) -> int:
    (weight_x, first_x), (weight_y, first_y) = _leading(x), _leading(y)
    weight = weight_x - weight_y - (first_x <= first_y)
    return min(max(_MIN_SIGNIFICANT_DIGITS - 4 * weight, _scale(x), _scale(y), 0), _MAX_SCALE)


def _leading(number: Decimal) -> tuple[int, int]:
    """The weight and the value of the first digit to base 10,000."""
    if not number:
        return 0, 0
    weight = number.adjusted() // 4
    return weight, int(number.copy_abs().scaleb(-4 * weight, _EXACT))


def _rounded_quotient(x: Decimal, y: Decimal, scale: int) -> Decimal:
    numerator, denominator = x.as_integer_ratio(), y.as_integer_ratio()
    top = abs(numerator[0]) * denominator[1] * 10**scale
    bottom = numerator[1] * abs(denominator[0])
    quotient, rest = divmod(top, bottom)
    quotient += 2 * rest >= bottom
    return Decimal(quotient if (x < 0) == (y < 0) else -quotient).scaleb(-scale, _EXACT)
