"""The attributes of the table's items, and how rows become items and back.

    PK, SK              `TABLE#star`, the encoded primary key
    _f                  the format version of the item (`statestore.item_format`)
    _v                  the row's version, `epoch.partition.offset` with fixed width, so that text order is version order: in one
                        epoch all versions of a row have the same partition; then a count, where a later write filled columns
                        (`statestore.versions`)
    _l                  the layout that the row's slots and edges follow
    <column>            a declared column; a name that could be one of these attributes has a leading `.`
    _more               the undeclared columns, as one JSON text
    GSI_k               the row's key in slot k, or its `no_key`: a slot of the row is never empty
    GSI_SK              the row's name in all indexes, which the store adds to a row with slots
    prev_k              the content of GSI_k before the last write; that write itself sets it
    _edges              the keys by which edges name the row, where the entity has edges: JSON of [fields, key] pairs
    _edges_before       the content of `_edges` before the last write; that write itself sets it
    _pending            former keys, left by writes of batches without a commit: [slot or fields, key, version] each
    _deleted, ttl       a delete marker, and the time after which DynamoDB may remove it (seconds since 1970)

Text, booleans, nulls, and numbers that DynamoDB holds exactly are stored as such; other values as {"json": text}. A value that
is older than the row's version is {"value": as above, "since": its own version}.
Promises: one request writes a row and keeps its previous keys (rule 3 of docs/architecture.md). Does not send anything.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

import simplejson

from statestore import keys
from statestore.attribute_values import fits
from statestore.item_format import FORMAT
from statestore.keys import Key
from statestore.store import MAX_ITEM_BYTES, Absent, AbsentOrWithin, Condition, Equals, Item, Write
from statestore.table import ROW, TTL
from statestore.versions import version_prefixes

DELETED = "_deleted"
"""The attribute that makes an item a delete marker."""
MAX_COLUMNS = 300
"""The most declared columns of a row. One write sets all of them, two attributes per slot and the item's own, at most
`limits.MAX_CHANGES` together."""
_OWN = re.compile(r"PK|SK|GSI_SK|ttl|(GSI|prev)_\d+|[_.].*")
_SLOTS = re.compile(r"(GSI|prev)_(\d+)")
_MAX_NUMBER = 10**38


Edge = tuple[str, str]
"""A key by which edges (`statestore.edges`) name a row: (the fields in the form of `keys.field_names`, key)."""
JoinKey = tuple[int | str, str]
"""A join key of a row: (slot, key), or an edge."""


class PendingKey(NamedTuple):
    """A former key of a row in a slot, or by edges, and the version of the write that replaced it."""

    slot: int | str
    key: str
    version: str


class Image(NamedTuple):
    """The new content of a row. `columns` None: a delete marker that DynamoDB may remove at `forget` (seconds since 1970). A
    declared column that `columns` leaves out keeps its value. `slots`: slot -> encoded key, None for no key. `since`: column ->
    the version of its value, where that is older than `version`. `edges`: the keys by which edges name the row, None for an
    entity without edges. `layout`: the number of the layout that `slots` and `edges` follow. It rises when the entity gets
    another slot or other edges. `dropped`: columns whose attributes the write removes."""

    key: Key
    version: str
    columns: Mapping[str, Any] | None
    more: Mapping[str, Any]
    declared: tuple[str, ...]
    slots: Mapping[int, str | None]
    since: Mapping[str, str] = {}
    edges: frozenset[Edge] | None = None
    forget: int = 0
    layout: int = 0
    dropped: tuple[str, ...] = ()


class Row(NamedTuple):
    """A row as the table holds it. `columns` None: a delete marker. `since`, `layout`: as in `Image`."""

    key: Key
    version: str
    columns: Mapping[str, Any] | None
    more: Mapping[str, Any]
    slots: Mapping[int, str]
    pending: tuple[PendingKey, ...]
    since: Mapping[str, str] = {}
    edges: frozenset[Edge] = frozenset()
    layout: int = 0

    def keys(self) -> frozenset[JoinKey]:
        """The present join keys of the row."""
        in_slots = frozenset([(k, key) for k, key in self.slots.items() if not keys.is_no_key(key)])
        return in_slots | self.edges if self.edges else in_slots


@lru_cache(maxsize=64)
def slot_name(slot: int) -> str:
    return f"GSI_{slot}"


def write_image(image: Image, *, below: str) -> Write:
    """The one write of a change. The store refuses it unless the stored row is older than `below`, the first version of the
    batch in the partition of the change. The store refuses it over a row of the same epoch from another partition, too."""
    copy = _copied(tuple(image.slots), image.edges is not None)
    return Write(image.key, _sets(image), copy, (*_unset(image), "_pending"), _older(below))


def leaves_room(image: Image, write: Write) -> bool:
    """Whether the row's item has room for an update by an image of this size: the update also keeps a copy of the keys and edges
    that this write sets."""
    copies = _copied(tuple(image.slots), image.edges is not None)
    copied = {target: write.set[source] for target, source in copies.items() if source in write.set}
    name = {ROW: keys.index_row(write.key)} if image.slots else {}
    return fits({"PK": write.key.pk, "SK": write.key.sk, **name, **write.set, **copied}, MAX_ITEM_BYTES)


def merge_image(image: Image, seen: Row | None, *, keep_from: str) -> Write:
    """The second write of a change, over a row `seen` of an attempt that never committed. The store refuses it when the row is no
    longer `seen`. The former keys of `seen` with versions from `keep_from` on stay pending."""
    pending: list[PendingKey] = []
    if seen is not None:
        pending = [p for p in seen.pending if p.version >= keep_from]
        present = {*image.slots.items(), *(image.edges or ())}
        pending += [PendingKey(*key, image.version) for key in sorted(seen.keys(), key=str) if key not in present]
    sets = _sets(image)
    if pending:
        sets["_pending"] = [list(p) for p in pending]
    former = _copied(tuple(image.slots), image.edges is not None)
    gone = (*_unset(image), *(() if pending else ("_pending",)), *former)
    when: Condition = Absent() if seen is None else Equals("_v", seen.version)
    return Write(key=image.key, set=sets, remove=gone, when=when)


def read_row(item: Item) -> Row:
    """The row that an item holds."""
    layout = _layout(tuple(item))
    slots = {slot: item[name] for name, slot in layout.slots}
    former: list[JoinKey] = [(slot, item[name]) for name, slot in layout.former]
    edges = read_edges(item.get("_edges"))
    former += read_edges(item.get("_edges_before"))
    version = item["_v"]
    pending = tuple(_pending(item, {*slots.items(), *edges}, former, version))
    since = _since(item, layout) if dict in map(type, item.values()) else {}
    key = Key(item["PK"], item["SK"])
    return Row(key, version, read_columns(item), read_more(item), slots, pending, since, edges, item.get("_l", 0))


def read_columns(item: Item) -> dict[str, Any] | None:
    """The declared columns of the row that an item holds; None for a delete marker. A join needs no more of a row."""
    if DELETED in item:
        return None
    columns = {column: item[name] for name, column in _layout(tuple(item)).columns}
    if dict in map(type, columns.values()):
        for column, value in columns.items():
            if type(value) is dict:
                columns[column] = _loaded(value)
    return columns


def read_more(item: Item) -> dict[str, Any]:
    """The undeclared columns of the row that an item holds."""
    more = item.get("_more")
    return _loads(more) if more else {}


def written_row(image: Image, old: Row | None) -> Row:
    """The row after `write_image` replaced `old`."""
    columns = image.columns
    if columns is not None and len(columns) < len(image.declared) and old is not None and old.columns is not None:
        columns = {**old.columns, **columns}
    slots = {k: key or keys.no_key(image.key) for k, key in image.slots.items()}
    edges = image.edges or frozenset()
    pending: tuple[PendingKey, ...] = ()
    if old is not None:
        former: list[JoinKey] = [(k, key) for k, key in old.slots.items() if k in slots]
        former += old.edges
        pending = tuple(_pending({}, {*slots.items(), *edges}, former, image.version))
    return Row(image.key, image.version, columns, image.more, slots, pending, {}, edges, image.layout)


def read_edges(text: str | None) -> frozenset[Edge]:
    """The edges in an attribute of a row."""
    return frozenset((fields, key) for fields, key in _loads(text)) if text else frozenset()


@lru_cache(maxsize=65536)
def attribute(column: str) -> str:
    """The attribute that holds a column."""
    return "." + column if _OWN.fullmatch(column) else column


def store_value(value: Any) -> Any:
    """A column's value as an attribute's value."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return value
    plain = -_MAX_NUMBER < value < _MAX_NUMBER if kind is int else kind is Decimal and _fits(value)
    return value if plain else {"json": _json(value)}


def _sets(image: Image) -> dict[str, Any]:
    sets: dict[str, Any] = {"_f": FORMAT, "_v": image.version, "_l": image.layout}
    if image.edges is not None:
        sets["_edges"] = _json(sorted(image.edges))
    if image.columns is None:
        sets |= {DELETED: True, TTL: image.forget}
    else:
        for name, value in image.columns.items():
            sets[attribute(name)] = value if type(value) is str else store_value(value)
        for name in image.since.keys() & image.columns.keys():
            sets[attribute(name)] = {"value": sets[attribute(name)], "since": image.since[name]}
        if image.more:
            sets["_more"] = _json(image.more)
    for slot, key in image.slots.items():
        sets[slot_name(slot)] = key or keys.no_key(image.key)
    return sets


@lru_cache(maxsize=4096)
def _copied(slots: tuple[int, ...], edges: bool) -> Mapping[str, str]:
    """The copies that keep the keys of these slots, and the edges, from before a write."""
    copies = {f"prev_{k}": slot_name(k) for k in slots}
    return MappingProxyType(copies | {"_edges_before": "_edges"} if edges else copies)


@lru_cache(maxsize=1024)
def _older(version: str) -> Condition:
    return AbsentOrWithin("_v", *version_prefixes(version), version)


def _unset(image: Image) -> tuple[str, ...]:
    gone = tuple(map(attribute, image.dropped)) if image.dropped else ()
    if image.columns is None:
        return ("_more", *map(attribute, image.declared), *gone)
    return (DELETED, TTL, *gone) if image.more else (DELETED, TTL, "_more", *gone)


def _pending(item: Item, now: Collection[JoinKey], former: Iterable[JoinKey], version: str) -> Iterable[PendingKey]:
    for join_key in former:
        if join_key not in now and not keys.is_no_key(join_key[1]):
            yield PendingKey(*join_key, version)
    for k, key, since in item.get("_pending", ()):
        yield PendingKey(k if type(k) is str else int(k), key, since)


def _since(item: Item, layout: "_Layout") -> dict[str, str]:
    columns = [(column, item[name]) for name, column in layout.columns]
    return {column: value["since"] for column, value in columns if type(value) is dict and "since" in value}


class _Layout(NamedTuple):
    """The meaning of an item's attributes: pairs of the attribute's name and the column or slot that it holds."""

    columns: tuple[tuple[str, str], ...]
    slots: tuple[tuple[str, int], ...]
    former: tuple[tuple[str, int], ...]


@lru_cache(maxsize=4096)
def _layout(names: tuple[str, ...]) -> _Layout:
    """The layout of items with these attributes. The rows of an entity have few different layouts."""
    columns = [(name, name.removeprefix(".")) for name in names if name.startswith(".") or not _OWN.fullmatch(name)]
    numbered = [(name, match[1], int(match[2])) for name in names if (match := _SLOTS.fullmatch(name))]
    slots = tuple((name, k) for name, kind, k in numbered if kind == "GSI")
    former = tuple((name, k) for name, kind, k in numbered if kind == "prev")
    return _Layout(tuple(columns), slots, former)


def _fits(value: Decimal) -> bool:
    _, digits, exponent = value.as_tuple()
    return isinstance(exponent, int) and len(digits) <= 38 and exponent >= -130 and len(digits) + exponent <= 126


def _loaded(stored: Any) -> Any:
    if type(stored) is not dict:
        return stored
    return _loaded(stored["value"]) if "since" in stored else _loads(stored["json"])


def _json(value: Any) -> str:
    return str(simplejson.dumps(value, use_decimal=True, ensure_ascii=False, separators=(",", ":")))


def _loads(text: str) -> Any:
    return simplejson.loads(text, use_decimal=True)
