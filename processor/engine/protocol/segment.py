"""Segments: open changes as bytes (rule 5 of docs/architecture.md).

    OPEN#<nn>, <run>.<round>.<task>.<n>    rows: the open changes that a write task made, as JSON, compressed by zlib

An open change names the version that the indexes have yet to show (`Row.version_in_indexes`), the join keys that the row has now,
and its former keys, under which a late index may still show the row. A deleted row that has left the indexes has no slots.

The task that writes the rows makes the segments, up to `CHANGES_PER_ITEM` changes each, and the durable items of the same text.
The driver keeps, forwards and drops segments, and decodes none, so a write costs it the same at any rate. A task that looks a
join key up decodes the changes under this key (`protocol.overlay`), and a task that settles a segment decodes all.
"""

import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from json.encoder import encode_basestring
from typing import Any, NamedTuple
from zlib import crc32

from processor.engine.protocol.packed_text import pack, unpack
from statestore import keys
from statestore.items import JoinKey, Row, slot_name
from statestore.keys import Key
from statestore.store import Item, Read, Store, Write
from statestore.writes import write_note

PARTITIONS = tuple(keys.progress_partition("OPEN", f"{n:02d}") for n in range(16))
"""A checksum of the sort key chooses one for each durable item. A partition key takes 1,000 write units a second, and DynamoDB
does not split one whose sort keys rise. 50,000 changes a second cost 2,200 (docs/costs.md)."""
CHANGES_PER_ITEM = 500
"""Open changes in one item: some 30 bytes each when compressed, 110 before."""
BYTES_PER_ITEM = 390_000
"""The most bytes of an item before its compression, so that it never exceeds the 400 KB of an item."""

SAMPLE = 100
"""Of so many changes, settling takes one in full although nothing asks for it, so that corrections go on watching the overlay.
The change itself chooses, so a retried task chooses the same."""

IndexKey = tuple[str, str]
"""(index, join key): where an index query asks."""
SlotKey = tuple[int, str]
"""(slot, join key)."""
_scan = json.JSONDecoder().raw_decode


class OpenChange(NamedTuple):
    """An open change of a row. `slots`: the keys that its slots hold; `former`: join keys that it had, edges too. `seen`: the
    places that answers to live work showed; `again`: settling finds its roots again."""

    entity: str
    key: Key
    version: str
    slots: tuple[SlotKey, ...]
    former: frozenset[JoinKey]
    seen: frozenset[SlotKey] = frozenset()
    again: bool = False

    @property
    def places(self) -> tuple[SlotKey, ...]:
        """Where the indexes must show the change: in the slots. A row without any must be gone from where it was."""
        return self.slots or self.gone

    @property
    def gone(self) -> tuple[SlotKey, ...]:
        """Where no index shows the row in the end: of a row that has left them all, its former keys."""
        had = () if self.slots else self.former
        return tuple(sorted((slot, key) for slot, key in had if isinstance(slot, int) and not keys.is_no_key(key)))


def unproven_slots(change: OpenChange, slots: tuple[SlotKey, ...]) -> tuple[SlotKey, ...]:
    """The slots of a row now, for a change that no index has shown yet. Absence proves nothing of it, also where the row has left
    the indexes meanwhile: then the row's marker must be there."""
    return slots or tuple((slot, keys.no_key(change.key)) for slot, _ in change.slots)


class SettleOutcome(NamedTuple):
    """What settling an open change found: the version and slots of the row now, and whether every slot showed them."""

    change: OpenChange
    version: str
    slots: tuple[SlotKey, ...]
    shown: bool

    @property
    def left(self) -> OpenChange | None:
        """The change that stays open: of the row as it is now, under all keys that it has or had; None where every slot showed
        the change, and the row is the same."""
        change = self.change
        if self.shown and self.version == change.version:
            return None
        slots = self.slots if self.shown else unproven_slots(change, self.slots)
        former = (change.former | set(change.slots)) - set(slots)
        return OpenChange(change.entity, change.key, self.version, slots, former)


@dataclass(frozen=True, slots=True)
class Segment:
    """Open changes that lie in one durable item. `name`: the item's sort key; of changes that settling left, also the round.
    `size`: the number of changes; `asked`: their places in indexes, of all together; `width`: the most of one change. `sampled`:
    whether `SAMPLE` chose one.

    `text`: the changes as a JSON array; `ends`: where each ends in it. `places`: the checksum of each join key under which a row
    is open, and of the row's own key, above the number of its change, in order. `_decoded`: all changes in the task that opened
    them, elsewhere those that look-ups asked for."""

    name: str
    size: int
    asked: int
    width: int
    sampled: bool
    text: bytes
    ends: bytes
    places: bytes
    _decoded: dict[int, OpenChange] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __reduce__(self) -> tuple[type["Segment"], tuple[Any, ...]]:
        stored = (self.name, self.size, self.asked, self.width, self.sampled, self.text, self.ends, self.places)
        return Segment, stored

    def record(self, n: int) -> bytes:
        """The JSON text of a change."""
        ends = memoryview(self.ends).cast("I")
        return self.text[ends[n - 1] + 1 if n else 1 : ends[n]]

    def records(self) -> Iterator[bytes]:
        """The JSON texts of all changes."""
        ends = array("I", self.ends)
        return (self.text[start + 1 : end] for start, end in pairwise((0, *ends)))

    def change(self, n: int) -> OpenChange:
        """A change, which is decoded once."""
        if (change := self._decoded.get(n)) is None:
            change = self._decoded[n] = _decode(_scan(self.record(n).decode())[0])
        return change

    def changes(self) -> list[OpenChange]:
        """All changes."""
        if len(self._decoded) == self.size:
            return [self._decoded[n] for n in range(self.size)]
        return list(map(_decode, json.loads(self.text)))

    def write(self) -> Write:
        """The write that makes the segment durable."""
        return write_note(item_key(self.name), {"rows": pack(self.text)})


class DueSegment(NamedTuple):
    """A segment to settle. `seen`: what answers to live work showed, a bit for each place: the number of the change times
    `Segment.width`, and the number of the place in it. `again`, `samples`: settling finds the roots of all changes again, or of
    those that `SAMPLE` chose."""

    segment: Segment
    seen: int
    again: bool
    samples: bool

    def changes(self) -> Iterator[OpenChange]:
        """The changes to settle: not those that live work saw in every place, and that need nothing else."""
        width, seen = self.segment.width, self.seen
        for change, record in zip(self.segment.changes(), self.segment.records(), strict=True):
            bits, seen = seen & ((1 << width) - 1), seen >> width
            again = self.again or (self.samples and is_sampled(record))
            if again or bits.bit_count() < len(change.places):
                shown = frozenset(place for at, place in enumerate(change.places) if bits >> at & 1)
                yield change._replace(seen=shown, again=again)


def open_change(entity: str, row: Row, former_keys: frozenset[JoinKey]) -> OpenChange:
    """The change that a write of a row opens, also a refused write."""
    return OpenChange(entity, row.key, row.version_in_indexes(), tuple(sorted(row.slots.items())), former_keys)


def make_segment(name: str, changes: Iterable[OpenChange]) -> Segment:
    """The segment of these changes, of which there is one at least."""
    changes = list(changes)
    return _segment(name, changes, list(map(_record, changes)))


def make_segments(changes: Iterable[OpenChange], run: int, round_: int, task: str) -> Iterator[Segment]:
    """The changes in as few segments as fit into durable items. `task`: a name of its own in the round. A segment knows its
    changes until it travels, so the task that opened them decodes none."""
    portion: list[OpenChange] = []
    records: list[bytes] = []
    size = n = 0
    for change in changes:
        record = _record(change)
        if portion and (len(portion) == CHANGES_PER_ITEM or size + len(record) >= BYTES_PER_ITEM):
            yield _known_segment(changes_key(run, round_, task, n).sk, portion, records)
            portion, records, size, n = [], [], 0, n + 1
        portion.append(change)
        records.append(record)
        size += len(record) + 1
    if portion:
        yield _known_segment(changes_key(run, round_, task, n).sk, portion, records)


def changes_key(run: int, round_: int, task: str, n: int) -> Key:
    """The key of a durable item."""
    return item_key(f"{run:010d}.{round_:010d}.{task}.{n:06d}")


def item_key(name: str) -> Key:
    """The key of the durable item with this sort key."""
    return Key(PARTITIONS[crc32(name.encode()) % len(PARTITIONS)], name)


def open_items(store: Store) -> Iterator[Item]:
    """The durable items in the table, of all runs."""
    return chain.from_iterable(page.items for page in store.read([Read(pk) for pk in PARTITIONS]))


def write_changes(item: Key, changes: Iterable[OpenChange]) -> Write:
    """The write that puts changes into an item."""
    return write_note(item, {"rows": pack(_text(map(_record, changes)))})


def read_changes(item: Item) -> list[OpenChange]:
    """The open changes of an item; none of one without any."""
    return list(map(_decode, json.loads(unpack(item["rows"])))) if "rows" in item else []


def is_sampled(record: bytes) -> bool:
    """Whether `SAMPLE` chooses the change with this text."""
    return crc32(record) % SAMPLE == 0


@lru_cache(maxsize=4096)
def checksum(index_key: IndexKey) -> int:
    """The checksum of an index key: 32 bits."""
    return crc32("".join(index_key).encode())


def _known_segment(name: str, changes: list[OpenChange], records: list[bytes]) -> Segment:
    segment = _segment(name, changes, records)
    segment._decoded.update(enumerate(changes))
    return segment


def _segment(name: str, changes: list[OpenChange], records: list[bytes]) -> Segment:
    places = sorted(
        checksum(index_key) << 32 | n for n, change in enumerate(changes) for index_key in _index_keys(change)
    )
    asked = [len(change.places) for change in changes]
    return Segment(
        name=name,
        size=len(changes),
        asked=sum(asked),
        width=max(asked),
        sampled=any(map(is_sampled, records)),
        text=_text(records),
        ends=array("I", accumulate(len(record) + 1 for record in records)).tobytes(),
        places=array("Q", places).tobytes(),
    )


def _index_keys(change: OpenChange) -> Iterator[IndexKey]:
    """Where look-ups find a change: at its join keys in indexes, and at the key of its row."""
    yield change.key
    for slot, key in {*change.slots, *change.former}:
        if isinstance(slot, int) and not keys.is_no_key(key):
            yield slot_name(slot), key


def _text(records: Iterable[bytes]) -> bytes:
    return b"[" + b",".join(records) + b"]"


def _record(change: OpenChange) -> bytes:
    """The JSON text of a change. An encoder takes twice as long, because it sets itself up for each text."""
    names = ",".join(map(encode_basestring, (change.entity, *change.key, change.version)))
    return f"[{names},{_pairs(change.slots)},{_pairs(sorted(change.former, key=str))}]".encode()


def _pairs(join_keys: Iterable[JoinKey]) -> str:
    pairs = [
        f"[{at if isinstance(at, int) else encode_basestring(at)},{encode_basestring(key)}]" for at, key in join_keys
    ]
    return f"[{','.join(pairs)}]"


def _decode(values: list[Any]) -> OpenChange:
    entity, pk, sk, version, slots, former = values
    return OpenChange(entity, Key(pk, sk), version, tuple(map(tuple, slots)), frozenset(map(tuple, former)))
