"""The reason why a value does not fit its column: short, in one line, and the same for equal values.

The reason shows the value, for the dead letter. Its plain form does not, for log lines."""

from decimal import Decimal
from typing import Any, Final

from processor.values.reject_reasons import ReasonCode

SHOWN_CHARACTERS: Final = 60
"""A reason shows at most so many characters of the value."""

_READABLE_BITS: Final = 4096


class Mismatch(ValueError):
    """A value does not fit. `plain`: the reason without the value; `code`: its kind."""

    def __init__(self, reason: str, code: ReasonCode, plain: str | None = None) -> None:
        super().__init__(reason)
        self.plain, self.code = reason if plain is None else plain, code


def unexpected(expected: object, value: Any, why: str = "", code: ReasonCode = "column-type") -> Mismatch:
    """The error `expected int, found text 'abc'`, followed by `why` in parentheses."""
    found, kind = describe_value(value), _kind(value)
    end = f" ({why})" if why else ""
    return Mismatch(f"expected {expected}, found {found}{end}", code, f"expected {expected}, found {kind}{end}")


def beyond(expected: object, value: Any, limit: str) -> Mismatch:
    """The same error for a number or a time that its column cannot hold."""
    return unexpected(expected, value, limit, "column-range")


def within(place: str, error: ValueError, code: ReasonCode | None = None) -> Mismatch:
    """The error, with the place of the value before it, and with another code if given."""
    return Mismatch(f"{place}: {error}", code or reason_code(error), f"{place}: {plain_reason(error)}")


def reason_code(error: ValueError) -> ReasonCode:
    """The code of the reason; `other` for an error that carries none."""
    return error.code if isinstance(error, Mismatch) else "other"


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
