"""The reason why a value does not fit its column: short, in one line, and the same for equal values.

The reason shows the value, for the dead letter. Its plain form does not, for log lines."""

from decimal import Decimal
from typing import Any, Final

SHOWN_CHARACTERS: Final = 60
"""A reason shows at most so many characters of the value."""

_READABLE_BITS: Final = 4096


class Mismatch(ValueError):
    """A value does not fit. `plain`: the reason without the value."""

    def __init__(self, reason: str, plain: str) -> None:
        super().__init__(reason)
        self.plain = plain


def unexpected(expected: object, value: Any, why: str = "") -> Mismatch:
    """The error `expected int, found text 'abc'`, followed by `why` in parentheses."""
    found, kind = describe_value(value), _kind(value)
    end = f" ({why})" if why else ""
    return Mismatch(f"expected {expected}, found {found}{end}", f"expected {expected}, found {kind}{end}")


def within(place: str, error: ValueError) -> Mismatch:
    """The error, with the place of the value before it."""
    return Mismatch(f"{place}: {error}", f"{place}: {plain_reason(error)}")


def plain_reason(error: ValueError) -> str:
    """The reason without values of the record."""
    return error.plain if isinstance(error, Mismatch) else str(error)


def describe_value(value: Any) -> str:
    """A JSON value in words: `text 'abc'`, `number 42`, `true`, `null`, `an array`, `an object`."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"text {_shown(value)!r}"
        case int() if value.bit_length() > _READABLE_BITS:
            return "a number of more than 1,000 digits"
        case int() | float() | Decimal():
            return f"number {_shown(str(value))}"
        case list():
            return "an array"
        case dict():
            return "an object"
    return f"a {type(value).__name__}"


def _kind(value: Any) -> str:
    """The same words without the value."""
    match value:
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float() | Decimal():
            return "a number"
    return describe_value(value)


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
