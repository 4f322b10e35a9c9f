"""Texts of the registry: JSON as it stores it, and the fields of slots and edges. Pure.

The JSON keeps the order of members, since a document's members come in the product's order. A field is a column (`code`), the
elements of one (`ids[]`, `inner[].id::number`), or text of either that compares in its own way (`code::ci`,
`tags[]::ci+trimmed`).
"""

import json
import re
from collections.abc import Mapping
from typing import Any


def json_text(value: Any) -> str:
    """The one text of a JSON value. Mappings of any kind become objects, in their own order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain, allow_nan=False)


def same_json(one: Any, other: Any) -> bool:
    """True when two JSON values are the same, the order of members included."""
    return json_text(one) == json_text(other)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON value: {value!r}")


_ELEMENTS = re.compile(r"(.+?)\[\](?:\..+?)?(?:::[\w+]+)?")
_COMPARED = re.compile(r"(.+)::(?:ci|trimmed|ci\+trimmed)")


def column_of(field: str) -> str:
    """The column of a field."""
    if "::" not in field and "[]" not in field:
        return field
    found = _ELEMENTS.fullmatch(field) or _COMPARED.fullmatch(field)
    return found.group(1) if found else field
