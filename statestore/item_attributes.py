"""The attributes of items, for the other packages: they never spell an attribute name of the table themselves."""

from collections.abc import Iterable, Mapping
from typing import Any

from statestore import keys
from statestore.attribute_values import item_size
from statestore.item_format import FORMAT
from statestore.items import Edge, Image, read_edges
from statestore.keys import Key
from statestore.limits import is_slot
from statestore.row_writes import merge_image
from statestore.store import Condition, Equals, Item, Page, Query, Write
from statestore.table import ROW, shown


def write_note(
    key: Key, values: Mapping[str, Any], *, remove: tuple[str, ...] = (), when: Condition | None = None
) -> Write:
    """The write of an item that is no row, such as a ledger entry or an edge: sets `values` and the item's format version, and
    removes the attributes of `remove`. The store refuses it unless `when` holds."""
    return Write(key, {"_f": FORMAT, **values}, remove=remove, when=when)


def write_bare_marker(marker: Image, item: Item) -> Write:
    """The write of a delete marker over `item` as seen, which keeps nothing else of it: no column of any plan, no former key, no
    slot that the entity has given up."""
    write = merge_image(marker, None)
    gone = item.keys() - {"PK", "SK", ROW, *write.set}
    return write._replace(remove=tuple(sorted(gone)), when=Equals("_v", item["_v"]))


def key_of_item(item: Item) -> Key:
    """The primary key of any item of the table."""
    return Key(item["PK"], item["SK"])


def by_key(items: Iterable[Item]) -> dict[tuple[str, str], Item]:
    """The items by their primary keys. A `Key` equals such a pair, and takes ten times as long to make."""
    return {(item["PK"], item["SK"]): item for item in items}


def entity_of_item(item: Item) -> str:
    """The entity of the row that an item holds."""
    return keys.entity_of(item["PK"])


def version_of_item(item: Item) -> str:
    """The version of the row that an item holds."""
    version: str = item["_v"]
    return version


def version_shown(item: Item) -> str:
    """The version of the last change of what the indexes show of a row, by its item or by an index. Empty for an index entry that
    nobody keeps: the entity has given up its slots."""
    version: str = item.get("_indexed_v") or item.get("_v", "")
    return version


def entry_size(item: Item) -> int | None:
    """The bytes of what an index shows of a row, in the mean over its slots; None for a row without slots."""
    sizes = [item_size(shown(item, slot)) for slot in filter(is_slot, item)]
    return round(sum(sizes) / len(sizes)) if sizes else None


def shows(probe: Query, page: Page, version: str) -> bool:
    """Whether the answer to a query of one row shows the row at this version in indexes, or at a newer one."""
    return any((item["PK"], item["SK"]) == probe.row and version_shown(item) >= version for item in page.items)


def replace_older(items: Iterable[Item], rows: Mapping[Key, Item | None]) -> list[Item]:
    """The items of an index answer, with rows that were read by key in their places: the higher version wins, and a row that
    is gone (None) takes its item with it."""
    answer = by_key(items)
    for key, row in rows.items():
        if row is None:
            answer.pop(key, None)
        elif key not in answer or version_shown(answer[key]) <= version_shown(row):
            answer[key] = row
    return list(answer.values())


def version_in(write: Write) -> str:
    """The version that a write of a row sets."""
    version: str = write.set["_v"]
    return version


def edges_in(write: Write) -> frozenset[Edge] | None:
    """The edges that a write of a row names; None for a write that is of no row, or of an entity without edges."""
    return read_edges(write.set["_edges"]) if "_edges" in write.set else None


def readable_attributes(item: Item) -> dict[str, Any]:
    """The attributes of an item in the order for people: the key, the slots, the others by name; not the format version,
    the layout and the name in the indexes."""
    shown = [name for name in item if name not in ("_f", "_l", ROW)]
    shown.sort(key=lambda name: (name not in ("PK", "SK"), not name.startswith("GSI_"), name))
    return {name: item[name] for name in shown}
