"""PostgreSQL's functions over text. They count code points, and map each character to one upper or lower case character."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Final

from processor.language.product.expressions.arithmetic import Number, without_exponent

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
"""The words by which text compares -> the folded text. Texts are equal if their folded texts are, and have the same order."""


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


def to_int(text: str) -> int | None:
    match = _INTEGER.fullmatch(text)
    return int(match.group(1)) if match else None


def to_decimal(text: str) -> Decimal | None:
    match = _NUMBER.fullmatch(text)
    return without_exponent(Decimal(match.group(1))) if match else None
