"""The attributes of a row's item, its version, and how items become rows. No other package spells a name of an attribute.

    PK, SK              `TABLE#star`, the encoded primary key
    _f                  the format version of the item (`check_format`)
    _v                  the row's version, `epoch.partition.offset` with fixed width, so that text order is version order: in one
                        epoch all versions of a row have the same partition; then a count, where a later write filled columns
    _l                  the layout that the row's slots and edges follow
    _indexed            a map: the columns that the indexes show, in a row with slots. Of a row that they show whole, also `_more`
    _indexed_v          the version of the last change of `_indexed`, the slots or the edges, in an item with slots
    <column>            any other declared column; a name that could be one of these attributes has a leading `.`
    _more               the undeclared columns, as one JSON text, compressed where that pays
    GSI_k               the row's key in slot k, or its `no_key`: only a delete marker may leave all its slots empty
    GSI_SK              the row's name in the indexes, which the store adds to a row with slots
    GSI_SK_17 ..        its name in each index that may have an order, where the row has the slot
    prev_k              the content of GSI_k before the last write; that write itself sets it
    _edges              the keys under which edges name the row, where the entity has edges: JSON of [fields, key] pairs
    _edges_before       the content of `_edges` before the last write; that write itself sets it
    _totals             what the totals have of the row (`statestore.writes`), where products count its rows
    _pending            former keys, left by writes of batches without a commit: [slot or fields, key, version] each
    _replayed           a replay of a dead letter wrote the row, and no write has merged over it since
    _deleted, ttl       a delete marker, and the time after which DynamoDB may remove it (seconds since 1970)

`statestore.values` says how an attribute, or an entry of `_indexed`, holds a value; `statestore.writes` writes a row.

Text order of versions is their order. Between two partitions of one epoch no order exists, and `are_comparable` says so.

Rows, edges and the job's progress have one format version. The doorways to DynamoDB and Postgres check each item that they read,
so a release never takes an item of a newer format for one of its own. "Upgrade" in docs/operate.md says when a release may write
another format. The memory store needs no check: it keeps nothing that another release wrote.
"""

from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

from statestore import keys
from statestore.keys import Key
from statestore.limits import is_slot
from statestore.store import Item, NewerFormat, Page, Query
from statestore.table import ROW, TTL, shown
from statestore.values import (
    item_size,
    load_value,
    loads,
    named_attributes,
    unpack_values,
)

_EPOCH, _PARTITION, _VERSION = 6, 13, 33
"""Characters up to the end of the epoch, of the partition, and of the offset."""


def encode_version(epoch: int, partition: int, offset: int) -> str:
    """The version of a change."""
    return f"{str(epoch).zfill(6)}.{str(partition).zfill(6)}.{str(offset).zfill(19)}"


def decode_version(version: str) -> tuple[int, int, int]:
    """The epoch, the partition and the offset of the change that made a version; without the count of fills."""
    epoch, partition, offset = map(int, version[:_VERSION].split("."))
    return epoch, partition, offset


def version_prefixes(version: str) -> tuple[str, str]:
    """The beginnings that all versions of the same epoch have, and all of the same epoch and partition."""
    return version[:_EPOCH], version[:_PARTITION]


def are_comparable(version: str, other: str) -> bool:
    """Whether the order of two versions is the order of delivery: in one epoch, only the offsets of one partition are."""
    (epoch, partition), (other_epoch, other_partition) = version_prefixes(version), version_prefixes(other)
    return epoch != other_epoch or partition == other_partition


def next_fill(version: str) -> str:
    """The version of a row after an older change filled columns of it: above the row's own, below that of every later change."""
    own, fills = version[:_VERSION], version[_VERSION + 1 :]
    return f"{own}.{int(fills or 0) + 1:06d}"


FORMAT = 1
"""The format version of the items that this release writes, and the highest that it reads."""


def check_format(item: Mapping[str, Any]) -> None:
    """Raises NewerFormat for an item of a newer release. Part of an item, without `_f`, passes."""
    found = item.get("_f")
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormat(
            f"{item.get('PK')} / {item.get('SK')}: the item has format {found}, and this release of statestore reads formats up "
            f"to {FORMAT}: a newer release wrote it. Stop this job, and install that release"
        )


DELETED = "_deleted"
"""The attribute that makes an item a delete marker."""
INDEXED, INDEXED_VERSION, MORE, REPLAYED = "_indexed", "_indexed_v", "_more", "_replayed"
TOTALS = "_totals"


Edge = tuple[str, str]
"""A key under which edges (`statestore.writes`) name a row: (the fields in the form of `keys.field_names`, key)."""
JoinKey = tuple[int | str, str]
"""A join key of a row: (slot, key), or an edge."""


class PendingKey(NamedTuple):
    """A former key of a row in a slot, or by edges, and the version of the write that replaced it."""

    slot: int | str
    key: str
    version: str


Numbers = Mapping[str, int | Decimal]
"""What a row adds to totals, by the name of the number."""


class Contributions(NamedTuple):
    """What the totals of its keys have of a row. `number`: of the count; `version`: that of the row then. `of`: the
    fields of a key, in the form of `keys.field_names` -> the key and the numbers."""

    number: int
    version: str
    of: Mapping[str, tuple[str, Numbers]]


class Image(NamedTuple):
    """The new content of a row."""

    key: Key
    version: str
    columns: Mapping[str, Any] | None
    """None for a delete marker. A declared column that `columns` leaves out keeps its value."""
    more: Mapping[str, Any]
    """The undeclared columns."""
    declared: tuple[str, ...]
    slots: Mapping[int, str | None]
    """Slot -> encoded key, None for no key."""
    since: Mapping[str, str] = {}
    """Column -> the version of its value, where that is older than `version`."""
    edges: frozenset[Edge] | None = None
    """The keys of the edges that name the row, None for an entity without edges."""
    forget: int = 0
    """When DynamoDB may remove a delete marker, in seconds since 1970."""
    layout: int = 0
    """The number of the layout of `slots` and `edges`, which rises when the entity gets another slot or other edges."""
    dropped: tuple[str, ...] = ()
    """Columns whose attributes the write removes."""
    indexed: frozenset[str] | None = frozenset()
    """The columns that the indexes show, None for whole rows; none without slots."""
    indexed_version: str = ""
    """That of the row in the table, where the write leaves alone all that the indexes show; empty where it does not."""
    emptied: tuple[int, ...] = ()
    """The slots that a delete marker does not fill, so that no index shows the row any more; it has no other slots."""
    replayed: bool = False
    """A replay of a dead letter writes it, or a fill of a row that a replay wrote."""
    names: Mapping[int, str] = {}
    """Slot with an order -> the row's name there."""
    totals: Contributions | None = None
    """None where no product counts rows of the entity."""


class Row(NamedTuple):
    """A row as the table holds it; see `Image`."""

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
    """The version of the last change of all that the indexes show; empty where it is the row's own."""
    replayed: bool = False
    """A replay wrote it last: perhaps a task that outlived its run, whose change no later run holds open. So its documents and
    those of its former keys may be unpublished, whatever its version."""
    names: Mapping[int, str] = {}
    """Slot with a range key of its own -> the row's name there, of a row that was read."""
    totals: Contributions | None = None
    forget: int = 0

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
        names={slot: item[name] for name, slot in named.names} if named.names else {},
        totals=read_totals(item) if TOTALS in item else None,
        forget=item.get(TTL, 0),
    )


def read_totals(item: Item) -> Contributions:
    """What the totals have of the row that an item holds."""
    held = item[TOTALS]
    return Contributions(held["count"], held["v"], {fields: (key, n) for fields, (key, n) in held["of"].items()})


def store_totals(totals: Contributions) -> dict[str, Any]:
    """The attribute of a row with its contributions."""
    of = {fields: [key, dict(numbers)] for fields, (key, numbers) in totals.of.items()}
    return {"count": totals.number, "v": totals.version, "of": of}


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
        totals=image.totals,
        forget=image.forget,
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
    """The version of the last change of what the indexes show of a row, by its item or by an index. Empty for a leftover
    index entry, whose entity has given up its slots."""
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


def readable_attributes(item: Item) -> dict[str, Any]:
    """The attributes of an item in the order for people: the key, the slots, the others by name; not the format version,
    the layout and the name in the indexes."""
    names = [name for name in item if name not in ("_f", "_l", ROW) and not name.startswith(f"{ROW}_")]
    names.sort(key=lambda name: (name not in ("PK", "SK"), not name.startswith("GSI_"), name))
    return {name: item[name] for name in names}
