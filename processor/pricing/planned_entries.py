"""The entities and products that an apply adds or changes, each with what changes in its definition."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from processor.definitions.definition_changes import definition_changes
from registry.edits.edit import Edit, find_product
from registry.model import ProductEntry, Snapshot

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
