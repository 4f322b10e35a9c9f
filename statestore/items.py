"""The attributes of a row's item, and how items become rows.

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
    GSI_k               the row's key in slot k, or its `no_key`: only a delete marker may leave all its slots empty
    GSI_SK              the row's name in all indexes, which the store adds to a row with slots
    prev_k              the content of GSI_k before the last write; that write itself sets it
    _edges              the keys by which edges name the row, where the entity has edges: JSON of [fields, key] pairs
    _edges_before       the content of `_edges` before the last write; that write itself sets it
    _pending            former keys, left by writes of batches without a commit: [slot or fields, key, version] each
    _replayed           a replay of a dead letter wrote last what the indexes show of the row, in an item with slots
    _deleted, ttl       a delete marker, and the time after which DynamoDB may remove it (seconds since 1970)

`statestore.column_values` says how an attribute, or an entry of `_indexed`, holds a value;
`statestore.row_writes` writes a row. Does not send anything.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from statestore import keys
from statestore.column_values import (
    load_value,
    loads,
    named_attributes,
    unpack_values,
)
from statestore.keys import Key
from statestore.store import Item

DELETED = "_deleted"
"""The attribute that makes an item a delete marker."""
INDEXED, INDEXED_VERSION, MORE, REPLAYED = "_indexed", "_indexed_v", "_more", "_replayed"


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
    all that the indexes show; empty where it does not. `emptied`: the slots that a delete marker does not fill, so that no index
    shows the row any more; it has no other slots. `replayed`: a replay of a dead letter writes it."""

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
    emptied: tuple[int, ...] = ()
    replayed: bool = False


class Row(NamedTuple):
    """A row as the table holds it. `columns` None: a delete marker. `since`, `layout`, `indexed`: as in `Image`.
    `indexed_version`: the version of the last change of all that the indexes show; empty where it is the row's own. `replayed`: a
    replay wrote that last: perhaps a task that outlived its run, whose change no later run holds open."""

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
    replayed: bool = False

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


def read_row(item: Item) -> Row:
    """The row that an item holds."""
    named = named_attributes(tuple(item))
    slots = {slot: item[name] for name, slot in named.slots}
    former: list[JoinKey] = [(slot, item[name]) for name, slot in named.former]
    edges = read_edges(item.get("_edges"))
    former += read_edges(item.get("_edges_before"))
    version = item["_v"]
    indexed_version = item.get(INDEXED_VERSION, version)
    pending = tuple(_pending(item, {*slots.items(), *edges}, former, indexed_version))
    shown = item.get(INDEXED, {})
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
        indexed=None if MORE in shown else frozenset(column for _, column in named_attributes(tuple(shown)).columns),
        indexed_version="" if indexed_version == version else indexed_version,
        replayed=REPLAYED in item,
    )


def read_columns(item: Item) -> dict[str, Any] | None:
    """The declared columns of the row that an item holds; None for a delete marker. A join needs no more of a row."""
    if DELETED in item:
        return None
    columns: dict[str, Any] = {}
    for held in (item, item.get(INDEXED)):
        if held:
            for name, column in named_attributes(tuple(held)).columns:
                value = held[name]
                columns[column] = load_value(value) if type(value) is dict else value
    return columns


def read_more(item: Item) -> dict[str, Any]:
    """The undeclared columns of the row that an item holds."""
    more = item.get(MORE) or item.get(INDEXED, {}).get(MORE)
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
        former: list[JoinKey] = [(k, key) for k, key in old.slots.items() if k in slots or k in image.emptied]
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
        replayed=image.replayed,
    )


def read_edges(text: str | None) -> frozenset[Edge]:
    """The edges in an attribute of a row."""
    return frozenset((fields, key) for fields, key in loads(text)) if text else frozenset()


def _pending(item: Item, now: Collection[JoinKey], former: Iterable[JoinKey], version: str) -> Iterable[PendingKey]:
    for join_key in former:
        if join_key not in now and not keys.is_no_key(join_key[1]):
            yield PendingKey(*join_key, version)
    for k, key, since in item.get("_pending", ()):
        yield PendingKey(k if type(k) is str else int(k), key, since)


def _since(attributes: Mapping[str, Any]) -> dict[str, str]:
    columns = [(column, attributes[name]) for name, column in named_attributes(tuple(attributes)).columns]
    return {column: value["since"] for column, value in columns if type(value) is dict and "since" in value}
