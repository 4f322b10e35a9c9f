"""The differences between two definitions of an entity or a product, as lines for people: the place, and both values."""

import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from processor.wording.first_of import shortened

LONGEST = 60
"""Characters of a value in a line."""


def definition_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """The lines, such as `embed.stars.limit: 10 -> 20`. Both definitions as `describe_entity` and `describe_product` write them.
    No line: the definitions are the same."""
    yield from _changes("", old, new)


def _changes(place: str, old: Any, new: Any) -> Iterator[str]:
    one, other = _members(place, old), _members(place, new)
    if one is None or other is None:
        if old != new:
            yield f"{place}: {_text(old)} -> {_text(new)}"
        return
    for name in {**one, **other}:
        at = f"{place}.{name}" if place else name
        if name not in one:
            yield f"{at}: added, {_text(other[name])}"
        elif name not in other:
            yield f"{at}: removed, was {_text(one[name])}"
        else:
            yield from _changes(at, one[name], other[name])
    kept = zip_longest((name for name in one if name in other), (name for name in other if name in one))
    if place and any(before != after for before, after in kept):
        yield f"{place}: in another order"


def _members(place: str, value: Any) -> Mapping[str, Any] | None:
    """The members of a mapping, and of a list of `fields`, in which each column has its own name; None for other values."""
    if isinstance(value, list | tuple) and place.rpartition(".")[2] == "fields":
        return {name: name for name in value}
    return value if isinstance(value, Mapping) else None


def _text(value: Any) -> str:
    return shortened(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), LONGEST)
