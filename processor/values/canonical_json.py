"""Reads and writes JSON: exact numbers, members in their order, one compact form.

Integers become int, other numbers Decimal, with every digit of the text. A value that is read and written again stays equal,
and compact text mostly gives the same bytes. The standard library reads, because its scanner is faster; simplejson writes,
because it knows Decimal. This module does not sort members and does not change digits: 1.50 stays 1.50.

`read_beginning` reads as much as it can of JSON that `loads` refuses: the beginning of a text, or text with one broken value. An
erasure asks it which key a dead letter shows. No job decodes a row by it.
"""

import json
import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

import simplejson
from simplejson.encoder import encode_basestring

from processor.values.reasons import Mismatch

MAX_DEPTH: Final = 200
"""How deep arrays and objects may be nested. Python's own stack limit depends on the caller; this limit does not."""

_BLANKS: Final = " \t\r\n"

_CONSTANTS: Final = {None: "null", True: "true", False: "false"}
_ENCODER: Final = simplejson.JSONEncoder(
    ensure_ascii=False,
    separators=(",", ":"),
    use_decimal=True,
    allow_nan=False,
    check_circular=False,
    namedtuple_as_object=False,
)


def dumps(value: Any) -> str:
    """Compact JSON of str, int, Decimal, bool, None, and lists and dicts of them.

    Raises ValueError for NaN, infinities and text with half a surrogate pair, TypeError for a type that JSON lacks.
    """
    kind = type(value)
    if kind is str:
        text: str = encode_basestring(value)
    elif kind is int or (kind is Decimal and value.is_finite()):
        return str(value)
    elif kind is bool or value is None:
        return _CONSTANTS[value]
    else:
        text = _ENCODER.encode(value)
    if not text.isascii():
        text.encode()  # refuses half a surrogate pair, which UTF-8 cannot hold
    return text


def dumps_flat(members: Mapping[str, Any]) -> str:
    """`dumps` of an object without nested values. A single value needs no set-up of the encoder."""
    return "{" + ",".join([f"{dumps(name)}:{dumps(value)}" for name, value in members.items()]) + "}"


def dumps_indented(value: Any) -> str:
    """JSON text for people: each member and each element has its own line."""
    text: str = simplejson.dumps(value, indent=2, ensure_ascii=False, use_decimal=True)
    return text


def encode(value: Any) -> bytes:
    """`dumps` as UTF-8."""
    text: str = _ENCODER.encode(value)
    return text.encode()


def loads(text: str | bytes) -> Any:
    """The value of JSON text, or of its UTF-8 bytes. The last of repeated members wins.

    Raises ValueError with a short reason in one line for any other input, and never another error.
    """
    return _loads(text, _DECODER)


def loads_typed(text: str | bytes) -> Any:
    """`loads` of what a person typed: refuses repeated members too, because it is unclear which of them the person means."""
    return _loads(text, _STRICT_DECODER)


def _loads(text: str | bytes, decoder: json.JSONDecoder) -> Any:
    try:
        if not isinstance(text, str):
            text = text.decode()
        text = text.strip(_BLANKS)
        value, end = decoder.raw_decode(text)
        if end != len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except UnicodeDecodeError as error:
        raise Mismatch(f"not UTF-8 at byte {error.start + 1}", "not-utf8") from None
    except json.JSONDecodeError as error:
        raise Mismatch(f"not JSON: {_lower(error.msg)} at character {error.pos + 1}", "not-json") from None
    except InvalidOperation:
        raise Mismatch("not JSON: a number with too large an exponent", "number-too-long") from None
    except Mismatch:
        raise
    except ValueError:  # Python reads integers of at most 4,300 digits by default
        raise Mismatch("not JSON: a number of too many digits", "number-too-long") from None
    except RecursionError:
        raise _too_deep() from None
    if len(text) > 2 * MAX_DEPTH and text.count("[") + text.count("{") > MAX_DEPTH:
        check_depth(value)
    if "\\u" in text and ("\\ud" in text or "\\uD" in text):
        _check_surrogates(value)
    return value


def equal(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. Numbers compare by value, true differs from 1, member order does not count."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def check_depth(value: Any) -> None:
    """Raises ValueError for arrays and objects that are nested too deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        members = [x for outer in level for x in (outer.values() if isinstance(outer, dict) else outer)]
        level = [x for x in members if isinstance(x, list | dict)]
        if not level:
            return
    raise _too_deep()


def _check_surrogates(value: Any) -> None:
    try:
        encode(value)
    except UnicodeEncodeError:
        raise Mismatch("not Unicode: half of a surrogate pair", "half-surrogate") from None


def _too_deep() -> Mismatch:
    return Mismatch(f"nested more than {MAX_DEPTH} levels", "too-deep")


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:].removesuffix(" at")


def _refuse_constant(name: str) -> NoReturn:
    """Python reads NaN, Infinity and -Infinity; JSON does not have them."""
    raise Mismatch(f"not JSON: {name}", "not-json")


_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


def _unique(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise Mismatch(f"not clear: the member {dumps(twice)} is there twice; write it once", "not-json")
    return found


_STRICT_DECODER: Final = json.JSONDecoder(
    parse_float=Decimal, parse_constant=_refuse_constant, object_pairs_hook=_unique
)


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
