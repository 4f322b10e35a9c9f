"""The attributes of the table's items, and how rows become items and back.

    PK, SK              `TABLE#star`, the encoded primary key
    _f                  the format version of the item (`statestore.item_format`)
    _v                  the row's version, `epoch.partition.offset` with fixed width, so that text order is version order: in one
                        epoch all versions of a row have the same partition; then a count, where a later write filled columns
                        (`statestore.versions`)
    _l                  the layout that the row's slots and edges follow
    _indexed            a map: the columns that the indexes show, in a row with slots. Of a row that they show whole, also `_more`
    _indexed_v          the version of the last change of `_indexed`, the slots or the edges, in an item with slots
    <column>            any other declared column; a name that could be one of these attributes has a leading `.`
    _more               the undeclared columns, as one JSON text, compressed where that pays
    GSI_k               the row's key in slot k, or its `no_key`: a slot of the row is never empty
    GSI_SK              the row's name in all indexes, which the store adds to a row with slots
    prev_k              the content of GSI_k before the last write; that write itself sets it
    _edges              the keys by which edges name the row, where the entity has edges: JSON of [fields, key] pairs
    _edges_before       the content of `_edges` before the last write; that write itself sets it
    _pending            former keys, left by writes of batches without a commit: [slot or fields, key, version] each
    _deleted, ttl       a delete marker, and the time after which DynamoDB may remove it (seconds since 1970)

`statestore.column_values` says how an attribute, or an entry of `_indexed`, holds a value.
Promises: one request writes a row and keeps its previous keys (rule 3 of docs/architecture.md). Does not send anything.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple

from statestore import keys
from statestore.attribute_values import fits
from statestore.column_values import (
    attribute,
    dumps,
    load_value,
    loads,
    named_attributes,
    pack_values,
    store_value,
    unpack_values,
)
from statestore.item_format import FORMAT
from statestore.keys import Key
from statestore.store import MAX_ITEM_BYTES, Absent, AbsentOrWithin, Condition, Equals, Item, Write
from statestore.table import ROW, TTL
from statestore.versions import version_prefixes

DELETED = "_deleted"
"""The attribute that makes an item a delete marker."""
_INDEXED, _INDEXED_VERSION, _MORE = "_indexed", "_indexed_v", "_more"


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
    another slot or other edges. `dropped`: columns whose attributes the write removes. `indexed`: the columns that the indexes
    show, None for whole rows; none without slots. `indexed_version`: that of the row in the table, where the write leaves alone
    all that the indexes show; empty where it does not."""

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
    indexed: frozenset[str] | None = frozenset()
    indexed_version: str = ""


class Row(NamedTuple):
    """A row as the table holds it. `columns` None: a delete marker. `since`, `layout`, `indexed`: as in `Image`.
    `indexed_version`: the version of the last change of all that the indexes show; empty where it is the row's own."""

    key: Key
    version: str
    columns: Mapping[str, Any] | None
    more: Mapping[str, Any]
    slots: Mapping[int, str]
    pending: tuple[PendingKey, ...]
    since: Mapping[str, str] = {}
    edges: frozenset[Edge] = frozenset()
    layout: int = 0
    indexed: frozenset[str] | None = frozenset()
    indexed_version: str = ""

    def version_in_indexes(self) -> str:
        """The version at which the indexes show the row in the end."""
        return self.indexed_version or self.version

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
    """The write of a change over a row `seen`. The store refuses it when the row is no longer `seen`. The former keys of `seen`
    with versions from `keep_from` on stay pending. An image with an `indexed_version` leaves alone all that the indexes show."""
    if image.indexed_version and seen is not None:
        return _write_unshown(image, seen)
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


def keep_indexed(image: Image, seen: Row) -> Image:
    """The image, which leaves alone all that the indexes show of `seen`, if that is the same before and after."""
    slots = {slot: key or keys.no_key(image.key) for slot, key in image.slots.items()}
    same = (
        slots
        and image.columns is not None
        and seen.columns is not None
        and (image.layout, image.indexed) == (seen.layout, seen.indexed)
        and slots.items() <= seen.slots.items()
        and (image.edges or frozenset()) == seen.edges
        and _indexed(image) == _indexed(image._replace(columns=seen.columns, since=seen.since, more=seen.more))
    )
    return image._replace(indexed_version=seen.version_in_indexes()) if same else image


def read_row(item: Item) -> Row:
    """The row that an item holds."""
    named = named_attributes(tuple(item))
    slots = {slot: item[name] for name, slot in named.slots}
    former: list[JoinKey] = [(slot, item[name]) for name, slot in named.former]
    edges = read_edges(item.get("_edges"))
    former += read_edges(item.get("_edges_before"))
    version = item["_v"]
    indexed_version = item.get(_INDEXED_VERSION, version)
    pending = tuple(_pending(item, {*slots.items(), *edges}, former, indexed_version))
    shown = item.get(_INDEXED, {})
    since = _since(item) if dict in map(type, item.values()) else {}
    return Row(
        key=Key(item["PK"], item["SK"]),
        version=version,
        columns=read_columns(item),
        more=read_more(item),
        slots=slots,
        pending=pending,
        since=since | _since(shown),
        edges=edges,
        layout=item.get("_l", 0),
        indexed=None if _MORE in shown else frozenset(column for _, column in named_attributes(tuple(shown)).columns),
        indexed_version="" if indexed_version == version else indexed_version,
    )


def read_columns(item: Item) -> dict[str, Any] | None:
    """The declared columns of the row that an item holds; None for a delete marker. A join needs no more of a row."""
    if DELETED in item:
        return None
    columns = {column: item[name] for name, column in named_attributes(tuple(item)).columns}
    if shown := item.get(_INDEXED):
        columns |= {column: shown[name] for name, column in named_attributes(tuple(shown)).columns}
    if dict in map(type, columns.values()):
        for column, value in columns.items():
            if type(value) is dict:
                columns[column] = load_value(value)
    return columns


def read_more(item: Item) -> dict[str, Any]:
    """The undeclared columns of the row that an item holds."""
    more = item.get(_MORE) or item.get(_INDEXED, {}).get(_MORE)
    return unpack_values(more) if more else {}


def written_row(image: Image, old: Row | None) -> Row:
    """The row after `write_image` or `merge_image` replaced `old`."""
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
    return Row(
        key=image.key,
        version=image.version,
        columns=columns,
        more=image.more,
        slots=slots,
        pending=pending,
        edges=edges,
        layout=image.layout,
        indexed=image.indexed,
        indexed_version=image.indexed_version,
    )


def read_edges(text: str | None) -> frozenset[Edge]:
    """The edges in an attribute of a row."""
    return frozenset((fields, key) for fields, key in loads(text)) if text else frozenset()


def _write_unshown(image: Image, seen: Row) -> Write:
    """The write of the columns that no index shows."""
    sets = {"_f": FORMAT, "_v": image.version, **_unshown(image)}
    gone = () if _MORE in sets or image.indexed is None else (_MORE,)
    return Write(image.key, sets, remove=(*map(attribute, image.dropped), *gone), when=Equals("_v", seen.version))


def _sets(image: Image) -> dict[str, Any]:
    sets: dict[str, Any] = {"_f": FORMAT, "_v": image.version, "_l": image.layout}
    if image.edges is not None:
        sets["_edges"] = dumps(sorted(image.edges))
    if image.columns is None:
        sets |= {DELETED: True, TTL: image.forget}
    else:
        sets |= _unshown(image)
    for slot, key in image.slots.items():
        sets[slot_name(slot)] = key or keys.no_key(image.key)
    if image.slots:
        sets[_INDEXED_VERSION] = image.version
        if image.columns is not None:
            sets[_INDEXED] = _indexed(image)
    return sets


def _unshown(image: Image) -> dict[str, Any]:
    """The attributes of the columns that no index shows."""
    if image.indexed is None:
        return {}
    found = _stored(image, [name for name in image.columns or () if name not in image.indexed])
    return found | {_MORE: pack_values(image.more)} if image.more else found


def _indexed(image: Image) -> dict[str, Any]:
    """The map of the columns that the indexes show."""
    columns = image.columns or {}
    if image.indexed is None:
        return _stored(image, columns) | {_MORE: dumps(image.more)}
    return _stored(image, [name for name in columns if name in image.indexed])


def _stored(image: Image, names: Iterable[str]) -> dict[str, Any]:
    """The attributes of these columns."""
    columns, since = image.columns or {}, image.since
    return {attribute(name): store_value(columns[name], since.get(name)) for name in names}


@lru_cache(maxsize=4096)
def _copied(slots: tuple[int, ...], edges: bool) -> Mapping[str, str]:
    """The copies that keep the keys of these slots, and the edges, from before a write."""
    copies = {f"prev_{k}": slot_name(k) for k in slots}
    return MappingProxyType(copies | {"_edges_before": "_edges"} if edges else copies)


@lru_cache(maxsize=1024)
def _older(version: str) -> Condition:
    return AbsentOrWithin("_v", *version_prefixes(version), version)


def _unset(image: Image) -> tuple[str, ...]:
    """The attributes that a write removes: the row holds each value once, and some no more."""
    deleted = image.columns is None
    gone = image.declared if deleted or image.indexed is None else image.indexed
    own = [_INDEXED] if deleted else [DELETED, TTL]
    if deleted or image.indexed is None or not image.more:
        own.append(_MORE)
    if not image.slots:
        own += [_INDEXED_VERSION] if deleted else [_INDEXED, _INDEXED_VERSION]
    return (*own, *_gone(gone, image.dropped))


@lru_cache(maxsize=1024)
def _gone(columns: Collection[str], dropped: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(attribute, (*(sorted(columns) if isinstance(columns, frozenset) else columns), *dropped)))


def _pending(item: Item, now: Collection[JoinKey], former: Iterable[JoinKey], version: str) -> Iterable[PendingKey]:
    for join_key in former:
        if join_key not in now and not keys.is_no_key(join_key[1]):
            yield PendingKey(*join_key, version)
    for k, key, since in item.get("_pending", ()):
        yield PendingKey(k if type(k) is str else int(k), key, since)


def _since(attributes: Mapping[str, Any]) -> dict[str, str]:
    columns = [(column, attributes[name]) for name, column in named_attributes(tuple(attributes)).columns]
    return {column: value["since"] for column, value in columns if type(value) is dict and "since" in value}
