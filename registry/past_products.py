"""Where the products of earlier versions published: the history keeps each definition that was ever live. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from registry.model import HistoryEntry


class PastProduct(NamedTuple):
    """A product as it once was: its name, its root, and the topic that it published to."""

    name: str
    root: str
    topic: str


def past_products(history: Iterable[HistoryEntry], entity: str) -> tuple[PastProduct, ...]:
    """The products that ever showed rows of an entity, by the history, the newest entry first, and each with every topic that it
    had. Leaves out a product that went after its tombstones."""
    found: dict[PastProduct, None] = {}
    for entry in reversed([one for one in history if one.entry == "products"]):
        for row in (entry.old, entry.new):
            if row is not None and _names(row["definition"], entity):
                found[PastProduct(row["name"], row["root"], row["topic"])] = None
        if entry.operation == "delete" and entry.old is not None and entry.old["retracted"]:
            found.pop(PastProduct(entry.old["name"], entry.old["root"], entry.old["topic"]), None)
    return tuple(sorted(found))


def _names(value: Any, entity: str) -> bool:
    """Whether a definition names the entity."""
    if isinstance(value, Mapping):
        return any(_names(one, entity) for one in value.values())
    if isinstance(value, list | tuple):
        return any(_names(one, entity) for one in value)
    return bool(value == entity)
