"""The reason why a value does not fit its column: short, one line, the same for the same value."""

from decimal import Decimal
from typing import Any, Final

SHOWN: Final = 60
"""Characters of the value that a reason shows."""

_READABLE_BITS: Final = 4096


def unexpected(expected: object, value: Any, why: str = "") -> ValueError:
    """`expected int, found text 'abc'`, with `why` in parentheses behind it."""
    return ValueError(f"expected {expected}, found {describe(value)}" + (f" ({why})" if why else ""))


def describe(value: Any) -> str:
    """What a JSON value is: `text 'abc'`, `number 42`, `true`, `null`, `an array`, `an object`."""
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
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
