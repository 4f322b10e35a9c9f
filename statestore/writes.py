"""The writes of items: the one write of a row with its columns, slots, edges and previous keys, the edges themselves, and items
that are no rows (`statestore.items` has the attributes).

Promises: one request writes a row and keeps its previous keys (rule 3 of docs/architecture.md). Does not send anything.

Totals are items of the table with the numbers of all rows that hold a key. The write of a row changes them in its own
transaction, by what the row contributes now less what `_totals` says that it has contributed. So each row counts once, whatever
repeats or overtakes the write: the condition of the row decides.

    PK      `TOTAL#<count>#<entity>#<fields>=<key>`: `TOTAL#7#star#username=octocat`
    SK      a shard of the key, `0` to `7`, by the sort key of the row
    <name>  a sum over the rows of the shard, as the plan names it
    _f      the format version

Edges are items of the table that name the rows which hold a join key. Reads of them are strongly consistent, and a row may hold
many keys.

    PK      `EDGE#<entity>#<fields>=<key>`: `EDGE#star#username=octocat`, `EDGE#team#member_ids[]=7`
    SK      the row's sort key
    row     the row's partition key
    _f, _v  the format version, and the last version of the row that named the key

An edge is a hint: the reader checks the row itself. The writer puts every edge of a row's new version before it writes the row.
The writer removes an edge only for a version of the row that does not name its key, after it has seen that version
(docs/correctness.md).
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from statestore import keys
from statestore.items import (
    DELETED,
    FORMAT,
    INDEXED,
    INDEXED_VERSION,
    MORE,
    REPLAYED,
    TOTALS,
    Contributions,
    Edge,
    Image,
    Numbers,
    PendingKey,
    Row,
    read_edges,
    read_totals,
    slot_name,
    store_totals,
    version_prefixes,
)
from statestore.keys import Key
from statestore.limits import is_slot
from statestore.store import (
    MAX_ITEM_BYTES,
    Absent,
    AbsentOrBelow,
    AbsentOrWithin,
    Condition,
    Delete,
    Equals,
    Item,
    Write,
)
from statestore.table import ROW, TTL, range_name
from statestore.values import attribute, dumps, fits, pack_values, store_value

ROWS = "n"
"""The number of totals that says how many rows they have."""
IsPublished = Callable[[str], bool]
"""Whether a batch has committed the record of this version."""


def never(_: str) -> bool:
    """No version is known to be published."""
    return False


def write_image(image: Image, *, below: str, since: str = "") -> Write:
    """The one write of a change. The store refuses it unless the version of the stored row is from `since` on, and below
    `below`: the versions of one epoch and partition that batches have committed. It also refuses it over a row that a replay
    wrote last. `since`: empty for all of them below `below`."""
    assert image.totals is None, "the write of a counted row names the row that it replaces"
    copy = _copied((*image.slots, *image.emptied), image.edges is not None)
    unset = (*_unset(image), "_pending", *_emptied(image.emptied))
    return Write(image.key, _sets(image), copy, unset, _committed(since, below))


def leaves_room(image: Image, write: Write) -> bool:
    """Whether the row's item has room for an update by an image of this size: the update also keeps a copy of the keys and edges
    that this write sets. So a write of a third of an item has room: next to it and the copy are three keys of 1 KB, and names."""
    if fits(write.set, MAX_ITEM_BYTES // 3):
        return True
    copies = _copied(tuple(image.slots), image.edges is not None)
    copied = {target: write.set[source] for target, source in copies.items() if source in write.set}
    names = {ROW, *map(range_name, map(slot_name, image.slots))} if image.slots else ()
    name = dict.fromkeys(names, keys.index_row(write.key))
    return fits({"PK": write.key.pk, "SK": write.key.sk, **name, **write.set, **copied}, MAX_ITEM_BYTES)


def merge_image(image: Image, seen: Row | None, *, published: IsPublished = never) -> Write:
    """The write of a change over a row `seen`. The store refuses it when the row is no longer `seen`. The former keys of `seen`
    stay pending, unless the write that replaced them is published. Of a row that a replay wrote last, all former keys become
    pending at the version of this write. An image with an `indexed_version` leaves alone all that the indexes show."""
    if image.totals and seen is not None and seen.totals and seen.totals.number > image.totals.number:
        image = image._replace(totals=None)  # a task of an older plan: the next write counts the row
    if image.indexed_version and seen is not None:
        return _write_unshown(image, seen)
    pending: list[PendingKey] = []
    replayed = seen is not None and seen.replayed
    if seen is not None and replayed:
        pending = [p._replace(version=image.version) for p in seen.pending]
    elif seen is not None:
        pending = [p for p in seen.pending if not published(p.version)]
    if seen is not None:
        present = {*image.slots.items(), *(image.edges or ())}
        pending += [PendingKey(*key, image.version) for key in sorted(seen.keys(), key=str) if key not in present]
    sets = _sets(image)
    if pending:
        sets["_pending"] = [list(p) for p in pending]
    former = _copied(tuple(image.slots), image.edges is not None)
    ended = (REPLAYED,) if replayed and not image.replayed else ()
    gone = (*_unset(image), *ended, *(() if pending else ("_pending",)), *former)
    when: Condition = Absent() if seen is None else Equals("_v", seen.version)
    return Write(key=image.key, set=sets, remove=gone, when=when, also=_counted(image, seen))


def put_back(marker: Row, slots: Iterable[int]) -> Write:
    """The write that shows a delete marker in indexes which its row has left."""
    sets = dict.fromkeys(map(slot_name, slots), keys.no_key(marker.key))
    return Write(marker.key, {**sets, INDEXED_VERSION: marker.version}, when=Equals("_v", marker.version))


def keep_indexed(image: Image, seen: Row) -> Image:
    """The image, which leaves alone all that the indexes show of `seen`, if that is the same before and after."""
    slots = {slot: key or keys.no_key(image.key) for slot, key in image.slots.items()}
    same = (
        slots
        and image.columns is not None
        and seen.columns is not None
        and (image.layout, image.indexed) == (seen.layout, seen.indexed)
        and slots.items() <= seen.slots.items()
        and all(seen.names.get(slot) == name for slot, name in image.names.items() if image.slots.get(slot))
        and (image.edges or frozenset()) == seen.edges
        and _attributes(image)[1]
        == _attributes(image._replace(columns=seen.columns, since=seen.since, more=seen.more))[1]
    )
    return image._replace(indexed_version=seen.version_in_indexes()) if same else image


def _write_unshown(image: Image, seen: Row) -> Write:
    """The write of the columns that no index shows."""
    sets = {"_f": FORMAT, "_v": image.version, **_attributes(image)[0], **_packed(image)}
    gone = () if MORE in sets or image.indexed is None else (MORE,)
    if image.totals is not None:
        sets[TOTALS] = store_totals(image.totals)
    return Write(
        image.key,
        sets,
        remove=(*map(attribute, image.dropped), *gone),
        when=Equals("_v", seen.version),
        also=_counted(image, seen),
    )


def _counted(image: Image, seen: Row | None) -> tuple[Write, ...]:
    """The writes of totals that go with the write of a row over `seen`."""
    if image.totals is None:
        return ()
    before = seen.totals.of if seen is not None and seen.totals and seen.totals.number == image.totals.number else {}
    return count_again(image.key, image.totals.number, before, image.totals.of)


def count_again(
    row: Key, count: int, before: Mapping[str, tuple[str, Numbers]], now: Mapping[str, tuple[str, Numbers]]
) -> tuple[Write, ...]:
    """The writes of totals that take back what a row has contributed before, and add what it contributes now."""
    deltas: dict[Key, dict[str, int | Decimal]] = {}
    for held, sign in ((before, -1), (now, 1)):
        for fields, (key, numbers) in held.items():
            total = keys.total_key(count, keys.entity_of(row.pk), fields, key, row.sk)
            delta = deltas.setdefault(total, {})
            for name, number in numbers.items():
                delta[name] = delta.get(name, 0) + sign * number
    changed = ((total, {n: v for n, v in delta.items() if v}) for total, delta in sorted(deltas.items()))
    return tuple(write_note(total, {})._replace(add=numbers) for total, numbers in changed if numbers)


def _sets(image: Image) -> dict[str, Any]:
    sets: dict[str, Any] = {"_f": FORMAT, "_v": image.version, "_l": image.layout}
    if image.edges is not None:
        sets["_edges"] = dumps(sorted(image.edges))
    unshown, indexed = _attributes(image)
    sets |= {DELETED: True, TTL: image.forget} if image.columns is None else unshown | _packed(image)
    for slot, key in image.slots.items():
        sets[slot_name(slot)] = key or keys.no_key(image.key)
        if key and slot in image.names:
            sets[range_name(slot_name(slot))] = image.names[slot]
    if image.replayed:
        sets[REPLAYED] = True
    if image.totals is not None:
        sets[TOTALS] = store_totals(image.totals)
    if image.slots or image.emptied:
        sets[INDEXED_VERSION] = image.version
        if image.columns is not None:
            sets[INDEXED] = indexed
    return sets


def _attributes(image: Image) -> tuple[dict[str, Any], dict[str, Any]]:
    """The attributes of the declared columns that no index shows, and the map of those that the indexes show."""
    unshown: dict[str, Any] = {}
    indexed: dict[str, Any] = {}
    shown, since = image.indexed, image.since
    for name, value in (image.columns or {}).items():
        held = indexed if shown is None or name in shown else unshown
        held[attribute(name)] = value if type(value) is str and not since else store_value(value, since.get(name))
    if shown is None:
        indexed[MORE] = dumps(image.more)
    return unshown, indexed


def _packed(image: Image) -> dict[str, Any]:
    """The attribute of the undeclared columns, where no index shows them."""
    return {MORE: pack_values(image.more)} if image.more and image.indexed is not None else {}


@lru_cache(maxsize=1024)
def _emptied(slots: tuple[int, ...]) -> tuple[str, ...]:
    """The attributes of these slots."""
    names = tuple(map(slot_name, slots))
    return (*names, *(own for own in map(range_name, names) if own != ROW))


@lru_cache(maxsize=4096)
def _copied(slots: tuple[int, ...], edges: bool) -> Mapping[str, str]:
    """The copies that keep the keys of these slots, and the edges, from before a write."""
    copies = {f"prev_{k}": slot_name(k) for k in slots}
    return MappingProxyType(copies | {"_edges_before": "_edges"} if edges else copies)


@lru_cache(maxsize=1024)
def _committed(since: str, below: str) -> Condition:
    return AbsentOrWithin("_v", since or version_prefixes(below)[1], below, lacks=REPLAYED)


def _unset(image: Image) -> tuple[str, ...]:
    """The attributes that a write removes: the row holds each value once, and some no more."""
    deleted, whole = image.columns is None, image.indexed is None
    gone = image.declared if deleted or image.indexed is None else image.indexed
    indexed = bool(image.slots or image.emptied)
    return _removed(deleted, whole, bool(image.more), indexed, gone, image.dropped)


@lru_cache(maxsize=1024)
def _removed(
    deleted: bool,
    whole: bool,
    more: bool,
    indexed: bool,
    gone: Collection[str],
    dropped: tuple[str, ...],
) -> tuple[str, ...]:
    own = [INDEXED] if deleted else [DELETED, TTL]
    if deleted or whole or not more:
        own.append(MORE)
    if not indexed:
        own += [INDEXED_VERSION] if deleted else [INDEXED, INDEXED_VERSION]
    columns = sorted(gone) if isinstance(gone, frozenset) else gone
    return (*own, *map(attribute, (*columns, *dropped)))


def empty_totals(item: Item) -> tuple[Delete, ...]:
    """The deletes of the totals that had the row of an item: they name its keys. The store refuses them where a row is left."""
    held = read_totals(item) if TOTALS in item else None
    totals = _totals_of(Key(item["PK"], item["SK"]), held) if held else ()
    return tuple(Delete(key=total, when=Equals(ROWS, 0)) for total in totals)


def former_totals(image: Image, seen: Row | None) -> tuple[Delete, ...]:
    """The deletes of the totals of an earlier count that had the row `seen`, once `image` is written. Nobody reads them."""
    if image.totals is None or seen is None or seen.totals is None or seen.totals.number >= image.totals.number:
        return ()
    return tuple(Delete(key=total) for total in _totals_of(image.key, seen.totals))


def _totals_of(row: Key, held: Contributions) -> Iterable[Key]:
    """The keys of the totals that have a row."""
    entity = keys.entity_of(row.pk)
    return (keys.total_key(held.number, entity, fields, key, row.sk) for fields, (key, _) in held.of.items())


def put_edge(row: Key, edge: Edge, version: str) -> Write:
    """Records that `version` of the row names the edge's key. The store refuses it where an edge as new or newer is there."""
    return write_note(_edge_key(row, edge), {"_v": version, "row": row.pk}, when=AbsentOrBelow("_v", version))


def drop_edge(row: Key, edge: Edge, version: str) -> Delete:
    """Removes an edge that `version` of the row does not name. The store refuses it where an edge as new or newer is there."""
    return Delete(key=_edge_key(row, edge), when=AbsentOrBelow("_v", version))


def row_of(edge: Item) -> Key:
    """The row that an edge item names."""
    return Key(edge["row"], edge["SK"])


def _edge_key(row: Key, edge: Edge) -> Key:
    return Key(keys.edge_partition(keys.entity_of(row.pk), *edge), row.sk)


def write_note(
    key: Key, values: Mapping[str, Any], *, remove: tuple[str, ...] = (), when: Condition | None = None
) -> Write:
    """The write of an item that is no row, such as a ledger entry or an edge: sets `values` and the item's format version, and
    removes the attributes of `remove`. The store refuses it unless `when` holds."""
    return Write(key, {"_f": FORMAT, **values}, remove=remove, when=when)


def write_bare_marker(marker: Image, item: Item) -> Write:
    """The write of a delete marker over `item` as seen, which keeps nothing else of it: no column of any plan, no former key, no
    slot that the entity has given up."""
    write = merge_image(marker._replace(totals=None), None)
    names = {range_name(name) for name in write.set if is_slot(name)}
    gone = item.keys() - {"PK", "SK", ROW, *names, *write.set}
    held = read_totals(item) if TOTALS in item else None
    also = count_again(marker.key, held.number, held.of, {}) if held else ()
    return write._replace(remove=tuple(sorted(gone)), when=Equals("_v", item["_v"]), also=also)


def version_in(write: Write) -> str:
    """The version that a write of a row sets."""
    version: str = write.set["_v"]
    return version


def edges_in(write: Write) -> frozenset[Edge] | None:
    """The edges that a write of a row names; None for a write that is of no row, or of an entity without edges."""
    return read_edges(write.set["_edges"]) if "_edges" in write.set else None
