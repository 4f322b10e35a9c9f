"""The versions of products, as a registry has them: which is live, which waits, and who made each. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from processor.pricing.planned_entries import PlannedEntry
from registry.model import HistoryEntry, Snapshot

_TABLES = ("products", "waiting_products")


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a product, with its edit."""

    number: int
    at: datetime
    who: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductVersions:
    """The versions of a product, the newest first. `states`: sentences about the live version, one that waits, and what these
    definitions would change."""

    states: tuple[str, ...]
    versions: tuple[Version, ...]


def product_versions(
    stored: Snapshot, planned: Iterable[PlannedEntry], history: Iterable[HistoryEntry], names: Iterable[str]
) -> Mapping[str, ProductVersions]:
    """The versions of these products. `planned`: what an apply of the definitions changes; `history`: of the registry, the newest
    entry first."""
    entries = {entry.name: entry for entry in planned if entry.kind == "product"}
    made: dict[str, dict[int, Version]] = {}
    for entry in history:
        row = entry.new or {}
        if entry.entry in _TABLES and "version" in row:
            version = Version(number=row["version"], at=entry.at, who=entry.who, why=entry.why or "")
            made.setdefault(row["name"], {})[version.number] = (
                version  # the last one is the oldest: it made the version
            )
    return {
        name: ProductVersions(
            states=tuple(_states(name, stored, entries.get(name))),
            versions=tuple(made.get(name, {})[number] for number in sorted(made.get(name, ()), reverse=True)),
        )
        for name in names
    }


def _states(name: str, stored: Snapshot, planned: PlannedEntry | None) -> Iterator[str]:
    live = [one for one in stored.products if one.name == name]
    for product in live:
        state = "is being removed" if product.retracted else "is paused" if product.paused else "is live"
        yield f"Version {product.version} {state}."
    for product in (one for one in stored.waiting if one.name == name):
        yield f"Version {product.version} waits until its slots are full."
    if planned and planned.action != "withdraw":
        details = f": {'; '.join(planned.details)}" if planned.details else ""
        does = "keeps" if any(product.version == planned.version for product in live) else "makes"
        yield f"These definitions are not applied yet. `apply` {does} version {planned.version}{details}."
