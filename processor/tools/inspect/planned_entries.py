"""The entities and products that an apply adds or changes, each with what changes in its definition.

`definition_changes` writes the differences between two definitions as lines for people: the place, and both values.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

from processor.text import shortened
from registry.edits.edit import Edit, find_product
from registry.model import ProductEntry, Snapshot

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


EntryAction = Literal["add", "change", "withdraw"]
"""`withdraw`: a version that waits is dropped, because the definition is that of the live version again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedEntry:
    """An entity or a product of an apply. `version`: of the product, 0 for an entity; `waits`: it goes live once its slots are
    full; `details`: what changes, of a changed entry."""

    kind: Literal["entity", "product"]
    name: str
    action: EntryAction
    version: int = 0
    waits: bool = False
    details: tuple[str, ...] = ()


def planned_entries(stored: Snapshot, change: Edit) -> Iterator[PlannedEntry]:
    """The entries of an edit that `registry.edits.apply` made, entities first."""
    known = {entity.name: entity for entity in stored.entities}
    for entity in change.entities:
        if old := known.get(entity.name):
            details = tuple(definition_changes(old.definition, entity.definition))
            yield PlannedEntry(kind="entity", name=entity.name, action="change", details=details)
        else:
            yield PlannedEntry(kind="entity", name=entity.name, action="add")
    for product in change.products:
        yield _product(stored, product, waits=False)
    for product in change.waiting:
        yield _product(stored, product, waits=True)
    put = {product.name for product in change.products}
    for one in stored.waiting:
        if one.name in change.withdrawn and one.name not in put:
            yield PlannedEntry(kind="product", name=one.name, action="withdraw", version=one.version)


def _product(stored: Snapshot, product: ProductEntry, *, waits: bool) -> PlannedEntry:
    old = find_product(stored.products, product.name) or find_product(stored.waiting, product.name)
    if old is None:
        return PlannedEntry(kind="product", name=product.name, action="add", version=product.version, waits=waits)
    details = tuple(definition_changes(old.definition, product.definition))
    if details and old.version == product.version:
        details = (*details, "the version stays, and no document goes out again")
    if old.retracted:
        details = (*details, f"version {old.version} is retracted")
    return PlannedEntry(
        kind="product",
        name=product.name,
        action="change",
        version=product.version,
        waits=waits,
        details=details or ("the entry of the registry differs from its definition",),
    )
