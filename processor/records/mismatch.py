"""The reason why a value does not fit its column: short, in one line, and the same for equal values."""

from decimal import Decimal
from typing import Any, Final

SHOWN_CHARACTERS: Final = 60
"""A reason shows at most so many characters of the value."""

_READABLE_BITS: Final = 4096


def unexpected(expected: object, value: Any, why: str = "") -> ValueError:
    """The error `expected int, found text 'abc'`, followed by `why` in parentheses."""
    return ValueError(f"expected {expected}, found {describe_value(value)}" + (f" ({why})" if why else ""))


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


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
