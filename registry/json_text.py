"""JSON as the registry stores it: text that keeps the order of members, since a document's members come in the product's
order."""

import json
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
