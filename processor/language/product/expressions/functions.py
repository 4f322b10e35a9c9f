"""PostgreSQL's functions in Python: three-valued logic, arithmetic, text. The table of them is in `catalogue.py`.

Logic: None means unknown.

Arithmetic: int with 64 bits, decimal exact (numeric), float in double precision.

A Decimal keeps its scale, the digits after its point, as PostgreSQL's numeric does: 4.50 has two. Its exponent is never above 0.

An arithmetic error (division by zero, a result out of range) gives None. A float has the range of the table's numbers: 0, and
1E-130 to 1E+126. Literals keep to this range too. So no operation on two floats can overflow a double.

Text: functions count code points, and map each character to one upper or lower case character.
"""

import calendar
import hashlib
import hmac
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal
from functools import lru_cache, partial
from typing import Any, Final

from processor.errors import SettingError


def both(*values: bool | None) -> bool | None:
    if False in values:
        return False
    return None if None in values else True


def either(*values: bool | None) -> bool | None:
    if True in values:
        return True
    return None if None in values else False


def is_in(value: Any, *choices: Any) -> bool | None:
    if value is None:
        return None
    if value in choices:
        return True
    return None if None in choices else False


def is_null(value: Any) -> bool:
    return value is None


def is_true(value: bool | None) -> bool:
    return value is True


def is_false(value: bool | None) -> bool:
    return value is False


def coalesce(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def nullif(value: Any, other: Any) -> Any:
    return None if value == other else value


def greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), default=None)


def least(*values: Any) -> Any:
    return min((value for value in values if value is not None), default=None)


def case(*parts: Any) -> Any:
    """The value of the first true condition. `parts`: pairs of condition and value, then the value of `else`."""
    for when, then in zip(parts[:-1:2], parts[1::2], strict=True):
        if when is True:
            return then
    return parts[-1]


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
    """The number with this many digits after the point; a half is rounded away from zero."""
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
    """The number with at least this many digits after the point: 4.50 for 4.5."""
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


_MAX_WEIGHT: Final = 290
"""The natural logarithm of about 1E+126, the largest result of a power."""
_LOG10_E: Final = 0.434294481903252


def sqrt(number: Number) -> Decimal | None:
    """The root, as PostgreSQL rounds it (numeric.c, numeric_sqrt). None for a number below 0."""
    x = Decimal(number)
    if x < 0:
        return None
    weight = _leading(x)[0]
    return rounded(_precise(x).sqrt(x), _result_scale(weight * 2 + 1, x))


def sqrt_float(number: float) -> float | None:
    return in_range(math.sqrt(number)) if number >= 0 else None


def angle(run: Callable[..., float], most: float = math.inf) -> Callable[..., float | None]:
    """A function of the C library, as PostgreSQL calls it. None for an argument beyond `most`."""
    return lambda *numbers: in_range(run(*numbers)) if abs(numbers[0]) <= most else None


_DEGREE: Final = 0.0174532925199432957692
"""A degree in radians (float.c, RADIANS_PER_DEGREE)."""


def radians(degrees_: float) -> float | None:
    return in_range(degrees_ * _DEGREE)


def degrees(radians_: float) -> float | None:
    return in_range(radians_ / _DEGREE)


def ln(number: Number) -> Decimal | None:
    """The natural logarithm. None for a number that is not above 0."""
    x = Decimal(number)
    return rounded(_precise(x).ln(x), _result_scale(_ln_weight(x), x)) if x > 0 else None


def ln_float(number: float) -> float | None:
    return in_range(math.log(number)) if number > 0 else None


def log(*numbers: Number) -> Decimal | None:
    """The logarithm to base 10, or to the base that comes first. None where it does not exist."""
    base, x = map(Decimal, numbers if len(numbers) > 1 else (10, *numbers))
    if base <= 0 or x <= 0 or base == 1:
        return None
    precise = _precise(base, x)
    quotient = precise.divide(precise.ln(x), precise.ln(base))
    return rounded(quotient, _result_scale(_ln_weight(x) - _ln_weight(base), base, x))


def log_float(number: float) -> float | None:
    return in_range(math.log10(number)) if number > 0 else None


def exp(number: Number) -> Decimal | None:
    """e to the power of the number. None beyond 1E+126 and 1E-126."""
    x = Decimal(number)
    return rounded(_precise(x).exp(x), _result_scale(int(float(x) * _LOG10_E), x)) if abs(x) <= _MAX_WEIGHT else None


def exp_float(number: float) -> float | None:
    return in_range(math.exp(number)) if abs(number) <= _MAX_WEIGHT else None


def power(base: Number, exponent: Number) -> Decimal | None:
    """The power, as PostgreSQL rounds it (numeric.c, power_var). None where it does not exist, and beyond 1E+126 and 1E-126."""
    x, y = Decimal(base), Decimal(exponent)
    whole = y == y.to_integral_value()
    if not x:
        return None if y < 0 else rounded(int(not y), _result_scale(0, x, y) if whole else _MIN_SIGNIFICANT_DIGITS)
    precise = _precise(x, y)
    weight = precise.multiply(precise.ln(abs(x)), y)
    if (x < 0 and not whole) or abs(weight) > _MAX_WEIGHT:
        return None
    made = precise.power(abs(x), y)
    return rounded(negate(made) if x < 0 and y % 2 else made, _result_scale(int(float(weight) * _LOG10_E), x, y))


def power_floats(base: float, exponent: float) -> float | None:
    if base == 0:
        return None if exponent < 0 else float(exponent == 0)
    if (base < 0 and not exponent.is_integer()) or abs(exponent * math.log(abs(base))) > _MAX_WEIGHT:
        return None
    return in_range(math.pow(base, exponent))


def _precise(*numbers: Decimal) -> Context:
    digits = sum(abs(number.adjusted()) + _scale(number) for number in numbers)
    return Context(prec=250 + 2 * min(digits, _MAX_SCALE), Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def _result_scale(digits: int, *operands: Decimal) -> int:
    """The scale of a result with this many digits before its point: 16 significant digits, and the digits of all operands."""
    return min(max(_MIN_SIGNIFICANT_DIGITS - digits, *map(_scale, operands), 0), _MAX_SCALE)


def _ln_weight(x: Decimal) -> int:
    """About the digits of the natural logarithm before its point (numeric.c, estimate_ln_dweight)."""
    if Decimal("0.9") <= x <= Decimal("1.1"):
        weight, first = _leading(_EXACT.subtract(x, _WHOLE))
        return weight * 4 + int(math.log10(first)) if first else 0
    weight = _leading(x)[0]
    digits = int(x.scaleb(4 - 4 * weight, _EXACT))
    return int(math.log10(abs(math.log(digits) + (weight - 1) * 4 * math.log(10))))


NUMBER = r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?"
INTEGER = r"[+-]?[0-9]{1,40}"
_NUMBER, _INTEGER = re.compile(rf" *({NUMBER}) *"), re.compile(rf" *({INTEGER}) *")
_LOWER = {"\u0130": "i"}
LONGEST = 2**26
"""The most characters of a text that `replace` makes. A message has 8 MiB; Postgres itself refuses texts of 1 GB."""


def lower(text: str) -> str:
    return text.lower() if text.isascii() else "".join(map(_lower, text))


def upper(text: str) -> str:
    return text.upper() if text.isascii() else "".join(map(_upper, text))


def _lower(character: str) -> str:
    mapped = character.lower()
    return mapped if len(mapped) == 1 else _LOWER.get(character, character)


def _upper(character: str) -> str:
    for mapped in (character.upper(), character.title()):
        if len(mapped) == 1:
            return mapped
    return character


def _trimmed(text: str) -> str:
    return text.rstrip(" ")


FOLDS: Final[Mapping[str, Callable[[str], str]]] = {
    "ci": lower,
    "trimmed": _trimmed,
    "ci+trimmed": lambda text: lower(text).rstrip(" "),
}
"""The words of a comparison -> the folded text. Texts are equal if their folded texts are, and have the same order."""


def substring(text: str, start: int, length: int | None = None) -> str | None:
    """`length` characters from position `start`, which counts from 1. Positions below 1 count, but have no character."""
    if length is None:
        return text[max(start - 1, 0) :]
    if length < 0:
        return None
    return text[max(start - 1, 0) : max(start - 1 + length, 0)]


def left(text: str, count: int) -> str:
    return text[:count]


def right(text: str, count: int) -> str:
    return text[-count:] if count else ""


def position(text: str, part: str) -> int:
    return text.find(part) + 1


def strip(cut: Callable[[str, str], str], text: str) -> str:
    """The text without spaces at the ends that `cut` strips."""
    return cut(text, " ")


def replace(text: str, old: str, new: str) -> str:
    """Raises ValueError for a result beyond `LONGEST`: two columns of one row could ask for 40 GB."""
    if len(new) > len(old) > 0 and text.count(old) * (len(new) - len(old)) > LONGEST - len(text):
        raise ValueError(f"replace would make a text of more than {LONGEST:,} characters")
    return text.replace(old, new) if old else text


def split_part(text: str, separator: str, number: int) -> str | None:
    """The part with that number: from 1, or from the end (-1). Empty text if there is none, None for number 0."""
    if not number:
        return None
    parts = (text.split(separator) if separator else [text]) if text else []
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def joined(*parts: str | None) -> str:
    return "".join([part for part in parts if part is not None])


def joined_with(separator: str | None, *parts: str | None) -> str | None:
    return None if separator is None else separator.join([part for part in parts if part is not None])


def like(text: str, pattern: str, escape: str) -> bool:
    return _regex(pattern, escape).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _regex(pattern: str, escape: str) -> re.Pattern[str]:
    """The pattern as a regular expression. Each part between two `%` keeps the first place that it finds (an atomic group), so
    the time grows with the text, and not with a power of its length."""
    parts, signs = [""], iter(pattern)
    for sign in signs:
        if sign == escape:
            parts[-1] += re.escape(next(signs, ""))
        elif sign == "%":
            parts.append("")
        else:
            parts[-1] += "." if sign == "_" else re.escape(sign)
    first, *others = parts
    middle = "".join(f"(?>.*?{part})" for part in others[:-1] if part)
    return re.compile(first + middle + "".join(f".*{last}" for last in others[-1:]), re.DOTALL)


def number_text(number: Number) -> str:
    """The digits of the number, with those of its scale. Zero has no sign."""
    return str(number) if isinstance(number, int) else format(number if number else number.copy_abs(), "f")


def bool_text(value: bool) -> str:
    return "true" if value else "false"


def bool_letter(value: bool) -> str:
    return "t" if value else "f"


def clock_text(moment: str) -> str:
    return moment.replace("T", " ")


def timestamp_text(moment: str) -> str:
    return f"{clock_text(moment)}+00"


def int_of_text(text: str) -> int | None:
    match = _INTEGER.fullmatch(text)
    return int(match.group(1)) if match else None


def decimal_of_text(text: str) -> Decimal | None:
    match = _NUMBER.fullmatch(text)
    return without_exponent(Decimal(match.group(1))) if match else None


def padded_left(text: str, length: int, fill: str = " ") -> str | None:
    return _padded(text, length, fill, lambda missing: missing + text)


def padded_right(text: str, length: int, fill: str = " ") -> str | None:
    return _padded(text, length, fill, lambda missing: text + missing)


def _padded(text: str, length: int, fill: str, join: Callable[[str], str]) -> str | None:
    """The text with this length: cut, or joined with what is missing. None for more than `MOST_PADDED`, and below 32 bits."""
    if not -(2**31) <= length <= MOST_PADDED:
        return None
    missing = max(length, 0) - len(text)
    if missing <= 0 or not fill:
        return text[: max(length, 0)]
    return join((fill * (missing // len(fill) + 1))[:missing])


MOST_PADDED: Final = 1_000_000
"""The most characters of a text that `lpad` makes."""


def digest(name: str, text: str) -> str:
    """The hash of the text's UTF-8, as hex digits."""
    return hashlib.new(name, text.encode()).hexdigest()


_SECRETS: Final[dict[str, Callable[[], str]]] = {}
"""What gives this process the value of each secret. Definitions, plans and expressions have the name alone."""


def offer_secrets(values: Mapping[str, Callable[[], str]]) -> None:
    """Gives this process the secrets of its settings, in place of others. A task of a job gets them with its settings."""
    _SECRETS.clear()
    _SECRETS.update(values)


def take_names(names: Iterable[str]) -> list[str]:
    """Lets each of these secrets that has no value have its own name as its value, as tests of products expect. Returns those."""
    missing = sorted(set(names) - _SECRETS.keys())
    _SECRETS.update({name: partial(str, name) for name in missing})
    return missing


def missing_secrets(names: Collection[str]) -> str:
    """What is wrong, and the cure, where the settings lack these secrets."""
    listed, first = ", ".join(f"`:{name}`" for name in sorted(names)), min(names)
    return f'the settings have no {listed}: write `{first} = "env:NAME"` in the table [secrets] of the settings file'


def hmac_sha256(text: str, secret: str) -> str:
    """The keyed hash of the text's UTF-8, as hex digits. `secret`: its name in the settings. Raises SettingError without one."""
    if secret not in _SECRETS:
        raise SettingError(missing_secrets([secret]))
    return hmac.digest(_SECRETS[secret]().encode(), text.encode(), "sha256").hex()


def itself(value: Any) -> Any:
    return value


def is_any(convert: Callable[[Any], Any], value: Any, elements: Sequence[Any] | None) -> bool | None:
    """Whether an array has the value. An empty one has not even null. `convert`: from a stored element to its form during
    evaluation."""
    if not elements:
        return None if elements is None else False
    return is_in(value, *[None if element is None else convert(element) for element in elements])


def array_length(elements: Sequence[Any], dimension: int) -> int | None:
    """The length of an array, which has one dimension. None for another dimension, and for an empty array."""
    return len(elements) or None if dimension == 1 else None


_EPOCH: Final = datetime(1970, 1, 1)
_MICROSECOND: Final = timedelta(microseconds=1)
_UNIT_NAMES: Final = {
    "microsecond": (0, 0, 1), "millisecond": (0, 0, 1_000), "second": (0, 0, 10**6), "sec": (0, 0, 10**6), "s": (0, 0, 10**6),
    "minute": (0, 0, 60 * 10**6), "min": (0, 0, 60 * 10**6), "m": (0, 0, 60 * 10**6), "hour": (0, 0, 3_600 * 10**6),
    "h": (0, 0, 3_600 * 10**6), "day": (0, 1, 0), "d": (0, 1, 0), "week": (0, 7, 0), "w": (0, 7, 0), "month": (1, 0, 0),
    "mon": (1, 0, 0), "year": (12, 0, 0), "y": (12, 0, 0),
}  # fmt: skip
_INTERVAL: Final = re.compile(r"([+-]?\d{1,9}) *([A-Za-z]+) *|([+-]?)(\d{1,4}):(\d{2})(?::(\d{2}))? *")
Interval = tuple[int, int, int]
"""Months, days and microseconds."""


@lru_cache(maxsize=1024)
def read_interval(text: str) -> Interval:
    """The interval of a text, `1 month 7 days` or `1 day 02:30`. Raises ValueError for another text."""
    found, at = [0, 0, 0], 0
    text = text.strip()
    while at < len(text):
        match = _INTERVAL.match(text, at)
        if match is None:
            raise ValueError(text)
        number, unit, sign, hours, minutes, seconds = match.groups()
        if unit is None:
            time = int(hours) * 3_600 + int(minutes) * 60 + int(seconds or 0)
            found[2] += (-time if sign == "-" else time) * 10**6
        else:
            name = unit.lower()
            each = _UNIT_NAMES.get(name) or _UNIT_NAMES.get(name.removesuffix("s"))
            if each is None:
                raise ValueError(text)
            found = [have + int(number) * of for have, of in zip(found, each, strict=True)]
        at = match.end()
    if not text:
        raise ValueError(text)
    months, days, microseconds = found
    return months, days, microseconds


def later(moment: str, interval: str) -> str | None:
    """The moment after an interval in UTC: first its months, then its days, then its time. None outside the years 1 to 9999."""
    return _shifted(moment, read_interval(interval), 1)


def earlier(moment: str, interval: str) -> str | None:
    return _shifted(moment, read_interval(interval), -1)


def _shifted(moment: str, interval: Interval, sign: int) -> str | None:
    months, days, microseconds = (sign * one for one in interval)
    found = datetime.fromisoformat(moment)
    try:
        if months:
            year, month = divmod(found.year * 12 + found.month - 1 + months, 12)
            last = calendar.monthrange(year, month + 1)[1] if 1 <= year <= 9999 else 0
            found = found.replace(year=year, month=month + 1, day=min(found.day, last))
        return _moment_text(found + timedelta(days=days, microseconds=microseconds))
    except (ValueError, OverflowError):
        return None


def _moment_text(moment: datetime) -> str:
    text = moment.isoformat()
    return text.rstrip("0") if moment.microsecond else text


MOST_DAYS: Final = 4_000_000
"""More than the days from the year 0001 to 9999."""


def days_later(day: str, days: int) -> str | None:
    """The day after some days. None outside the years 0001 to 9999."""
    ordinal = date.fromisoformat(day).toordinal() + days
    return date.fromordinal(ordinal).isoformat() if 1 <= ordinal <= date.max.toordinal() else None


def days_earlier(day: str, days: int) -> str | None:
    return days_later(day, -days)


def epoch(moment: str) -> Decimal:
    """The seconds since 1970, with the six digits of PostgreSQL."""
    return _EXACT.scaleb(Decimal((datetime.fromisoformat(moment) - _EPOCH) // _MICROSECOND), -6)


def epoch_of_day(day: str) -> Decimal:
    return Decimal((date.fromisoformat(day) - _EPOCH.date()).days * 86_400)


def seconds_between(later: str, earlier: str) -> Decimal:
    """The seconds of the interval between two moments."""
    return _EXACT.subtract(epoch(later), epoch(earlier))


def seconds_of(moment: str) -> Decimal:
    found = datetime.fromisoformat(moment)
    return _EXACT.scaleb(Decimal(found.second * 10**6 + found.microsecond), -6)


def quarter(value: str) -> int:
    return (int(value[5:7]) + 2) // 3


def iso_year(value: str) -> int:
    return date.fromisoformat(value[:10]).isocalendar().year


def iso_week(value: str) -> int:
    return date.fromisoformat(value[:10]).isocalendar().week


def iso_weekday(value: str) -> int:
    return date.fromisoformat(value[:10]).isoweekday()


def weekday(value: str) -> int:
    """The day of the week, 0 for Sunday."""
    return date.fromisoformat(value[:10]).isoweekday() % 7


def day_of_year(value: str) -> int:
    return date.fromisoformat(value[:10]).timetuple().tm_yday


def week_begin(moment: str) -> str | None:
    """The Monday of a moment's week, at midnight. None before the year 0001."""
    day = date.fromisoformat(moment[:10]).toordinal()
    monday = day - (day - 1) % 7
    return f"{date.fromordinal(monday).isoformat()}T00:00:00" if monday >= 1 else None


def quarter_begin(moment: str) -> str:
    return f"{moment[:5]}{quarter(moment) * 3 - 2:02d}-01T00:00:00"


_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TimePart = Callable[[datetime], str]
_NUMBERS: Final[dict[str, TimePart]] = {
    "YYYY": lambda at: f"{at.year:04d}",
    "YY": lambda at: f"{at.year % 100:02d}",
    "IYYY": lambda at: f"{at.isocalendar().year:04d}",
    "IW": lambda at: f"{at.isocalendar().week:02d}",
    "MM": lambda at: f"{at.month:02d}",
    "DDD": lambda at: f"{at.timetuple().tm_yday:03d}",
    "DD": lambda at: f"{at.day:02d}",
    "ID": lambda at: str(at.isoweekday()),
    "Q": lambda at: str((at.month + 2) // 3),
    "HH24": lambda at: f"{at.hour:02d}",
    "HH12": lambda at: f"{(at.hour + 11) % 12 + 1:02d}",
    "HH": lambda at: f"{(at.hour + 11) % 12 + 1:02d}",
    "MI": lambda at: f"{at.minute:02d}",
    "SS": lambda at: f"{at.second:02d}",
    "MS": lambda at: f"{at.microsecond // 1000:03d}",
    "US": lambda at: f"{at.microsecond:06d}",
}
_WORDS: Final[dict[str, TimePart]] = {
    "Month": lambda at: f"{_MONTHS[at.month - 1]:9}",
    "Mon": lambda at: _MONTHS[at.month - 1][:3],
    "Day": lambda at: f"{_DAYS[at.weekday()]:9}",
    "Dy": lambda at: _DAYS[at.weekday()][:3],
    "AM": lambda at: "PM" if at.hour >= 12 else "AM",
    "PM": lambda at: "PM" if at.hour >= 12 else "AM",
}


def _cased(change: Callable[[str], str], write: TimePart) -> TimePart:
    return lambda at: change(write(at))


_PATTERNS: Final[dict[str, TimePart]] = {
    **_NUMBERS,
    **{name.lower(): write for name, write in _NUMBERS.items()},
    **{name.upper(): _cased(str.upper, write) for name, write in _WORDS.items()},
    **{name.lower(): _cased(str.lower, write) for name, write in _WORDS.items()},
    **_WORDS,
}
"""Of `to_char`. A number may be in small letters; a word has the case of its pattern."""
_PATTERN: Final = re.compile(
    rf'(FM)?({"|".join(sorted(_PATTERNS, key=len, reverse=True))})|"([^"\\]*)"|([^A-Za-z"\\]+)'
)


@lru_cache(maxsize=256)
def read_time_pattern(pattern: str) -> tuple[TimePart, ...]:
    """The parts of a pattern of `to_char`. Raises ValueError, which names the part that is not known."""
    parts: list[TimePart] = []
    at = 0
    while at < len(pattern):
        match = _PATTERN.match(pattern, at)
        if match is None:
            raise ValueError(pattern[at:])
        short, name, quoted, plain = match.groups()
        if name is None:
            parts.append(partial(_constant, quoted if quoted is not None else plain))
        else:
            parts.append(partial(_without_padding, _PATTERNS[name]) if short else _PATTERNS[name])
        at = match.end()
    return tuple(parts)


def _constant(text: str, _at: datetime) -> str:
    return text


def _without_padding(write: TimePart, at: datetime) -> str:
    text = write(at).rstrip()
    return text.lstrip("0") or "0" if text.isdecimal() else text


def to_char(moment: str, pattern: str) -> str:
    """The text of a moment, or of a day at midnight, in UTC."""
    at = datetime.fromisoformat(moment)
    return "".join(write(at) for write in read_time_pattern(pattern))
