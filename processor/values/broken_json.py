"""Reads as much as it can of JSON that `canonical_json` refuses: the beginning of a text, or text with one broken value.

An erasure asks this module which key a dead letter shows. No job decodes a row by it.
"""

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_CLOSERS: Final = {"{": "}", "[": "]"}
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*(?:"|$)|[{}\[\],]', re.DOTALL)
"""A whole text, or one that breaks off; a bracket; a comma."""
_MOST_CHARACTERS: Final = 1 << 20
"""Of a longer text that is broken, the rest is not read."""
_MOST_DIGITS: Final = 200
"""A longer number is part of no key: an item of the table keeps 38 digits."""


def read_beginning(data: bytes) -> Any:
    """The value of JSON text, up to the place where the text stops being JSON: with each member that is whole before that place.
    None where there is none. A byte that is not UTF-8 becomes U+FFFD, and a number of too many digits null."""
    text = data.decode(errors="replace").strip("\ufeff \t\r\n")
    for _ in range(2):
        try:
            return json.loads(text, parse_int=_int, parse_float=_decimal, parse_constant=lambda _: None)
        except json.JSONDecodeError as error:
            text = _closed(text[: error.pos])
        except RecursionError:
            return None
    return None


def _closed(text: str) -> str:
    """The beginning of JSON text without its last member, which may not be whole, and with all brackets closed."""
    text = text[:_MOST_CHARACTERS]
    opened, whole = 0, 0
    for token in _TOKENS.finditer(text):
        match token[0]:
            case "{" | "[":
                opened += 1
            case "}" | "]":
                opened -= 1
                if opened == 0:
                    return text[: token.end()]
            case ",":
                whole = token.start()
    text = text[:whole]
    brackets: list[str] = []
    for token in _TOKENS.finditer(text):
        if token[0] in _CLOSERS:
            brackets.append(_CLOSERS[token[0]])
        elif token[0] in "}]" and brackets:
            brackets.pop()
    return text + "".join(reversed(brackets))


def _int(text: str) -> int | None:
    return int(text) if len(text) <= _MOST_DIGITS else None


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text) if len(text) <= _MOST_DIGITS else None
    except InvalidOperation:
        return None
