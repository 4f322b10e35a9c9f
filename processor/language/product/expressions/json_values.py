"""PostgreSQL's operators of jsonb in Python: parts of a value, its text, and what it contains. Pure.

A value is as `canonical_json` reads it. JSON's own null is a value, `JSON_NULL`, and not SQL's null: `data -> 'a'` gives it where
the member is null, and `data ->> 'a'` gives SQL's null then. A part that does not exist is SQL's null.

A scalar at the top counts as an array of itself for `->` and `?`, as in PostgreSQL (captured from 18.4, 2026-11-27).
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from processor.language.product.expressions.functions import number_text, without_exponent
from processor.values import canonical_json


class _JsonNull:
    def __repr__(self) -> str:
        return "JSON_NULL"


JSON_NULL: Final = _JsonNull()


def parse_json(text: str) -> Any:
    """The value of a literal. Raises ValueError."""
    return _value(canonical_json.loads(text))


def document_form(value: Any) -> Any:
    """The value as documents have it."""
    return None if value is JSON_NULL else value


def _value(value: Any) -> Any:
    return JSON_NULL if value is None else value


def _part(value: Any, key: str | int) -> Any:
    """The member or element as a value; SQL's null if there is none."""
    if isinstance(key, str):
        return _value(value[key]) if isinstance(value, dict) and key in value else None
    if isinstance(value, list) and -len(value) <= key < len(value):
        return _value(value[key])
    return None


def get(value: Any, key: str | int) -> Any:
    """The operator `->`."""
    if isinstance(key, int) and not isinstance(value, dict | list):
        return value if key in (0, -1) else None
    return _part(value, key)


def get_text(value: Any, key: str | int) -> str | None:
    """The operator `->>`."""
    return _unquoted(get(value, key))


def get_path(value: Any, path: str) -> Any:
    """The operator `#>`. `path`: an array of texts, as PostgreSQL writes it."""
    for step in read_path(path):
        is_index = isinstance(value, list) and _INDEX.fullmatch(step)
        value = _part(value, int(step) if is_index else step)
        if value is None:
            return None
    return value


def get_path_text(value: Any, path: str) -> str | None:
    """The operator `#>>`."""
    return _unquoted(get_path(value, path))


_INDEX: Final = re.compile(r" *[+-]?[0-9]{1,9}")
_PATH: Final = re.compile(r'\{(?:[^\s"\\{},]+(?:,[^\s"\\{},]+)*)?\}')


@lru_cache(maxsize=1024)
def read_path(text: str) -> tuple[str, ...]:
    """The steps of a path, `{a,0,b}`. Raises ValueError for another text, and for steps in quotes."""
    if not _PATH.fullmatch(text) or "null" in text[1:-1].lower().split(","):
        raise ValueError(text)
    return tuple(text[1:-1].split(",")) if text != "{}" else ()


def has_key(value: Any, key: str) -> bool:
    """The operator `?`: a member of an object, or a text of an array."""
    if isinstance(value, dict):
        return key in value
    return key in [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def contains(value: Any, part: Any) -> bool:
    """The operator `@>`."""
    value, part = document_form(value), document_form(part)
    if isinstance(value, list) and not isinstance(part, dict | list):
        return any(canonical_json.equal(one, part) for one in value)
    return _contains(value, part)


def _contains(value: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return isinstance(value, dict) and all(
            name in value and _contains(value[name], one) for name, one in part.items()
        )
    if isinstance(part, list):
        return isinstance(value, list) and all(any(_contains(mine, one) for mine in value) for one in part)
    return canonical_json.equal(value, part)


def contained(part: Any, value: Any) -> bool:
    """The operator `<@`."""
    return contains(value, part)


def equal(one: Any, other: Any) -> bool:
    return canonical_json.equal(document_form(one), document_form(other))


def differ(one: Any, other: Any) -> bool:
    return not equal(one, other)


def array_length(value: Any) -> int | None:
    """None for another value than an array."""
    return len(value) if isinstance(value, list) else None


def type_name(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case str():
            return "string"
        case int() | Decimal():
            return "number"
        case list():
            return "array"
        case dict():
            return "object"
    return "null"


def number_of(value: Any) -> int | Decimal | None:
    """A JSON number as a decimal; None for another value."""
    return value if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def bool_of(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _unquoted(value: Any) -> str | None:
    if value is None or value is JSON_NULL:
        return None
    return value if isinstance(value, str) else text_of(value)


def text_of(value: Any) -> str:
    """The text of jsonb: members by the length of their name, then by its bytes."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _quoted(value)
        case int():
            return str(value)
        case Decimal():
            return number_text(without_exponent(value))
        case list():
            return f"[{', '.join(map(text_of, value))}]"
        case dict():
            names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
            return "{" + ", ".join(f"{_quoted(name)}: {text_of(value[name])}" for name in names) + "}"
    return "null"


_ESCAPED: Final = {
    **{chr(n): f"\\u{n:04x}" for n in range(32)},
    "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '\\"', "\\": "\\\\",
}  # fmt: skip
_SPECIAL: Final = re.compile(r'[\x00-\x1f"\\]')


def _quoted(text: str) -> str:
    return f'"{_SPECIAL.sub(lambda found: _ESCAPED[found[0]], text)}"'
