"""Segments: open changes as bytes (rule 5 of docs/architecture.md).

    OPEN#<nn>, <run>.<round>.<task>.<n>    rows: the open changes that a write task made, as JSON, compressed by zlib

An open change names the version that the indexes have yet to show (`Row.version_in_indexes`), the join keys that the row has
now, and its former keys, under which a late index may still show the row. A deleted row that has left the indexes has no slots.

The task that writes the rows makes the segments, up to `CHANGES_PER_ITEM` changes each, and the durable items of the same text.
The driver keeps, forwards and drops segments, and decodes none, so a write costs it the same at any rate. A task that looks a
join key up decodes the changes under this key (`SegmentGroup`), and a task that settles a segment decodes all.

The overlay: which open rows the runner lays over an index answer, because the index may lack them or show them too
old.

A row may be open several times, in segments of several rounds. Each time has its own evidence, and closes by itself. Of all
that are open, the newest says whether the row has a key.

The segments that a round opened travel together, once to each worker, as a group. Spark sends a worker the groups that it
lacks, all of them to a new one.
"""

import json
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from json.encoder import encode_basestring
from typing import Any, NamedTuple, Protocol
from zlib import crc32

from processor.errors import StatestoreError
from statestore import keys
from statestore.items import JoinKey, Row, slot_name
from statestore.keys import Key
from statestore.store import Item, Read, Store, Write
from statestore.writes import write_note

MOST_BYTES = 2**26
"""The most bytes of a text. The job writes 390 KB, and more only for one row with many former keys. An item of 400 KB could
unpack to 400 MB."""


def pack(text: bytes) -> bytes:
    """The text, in UTF-8, as zlib's bytes."""
    return zlib.compress(text)


def unpack(packed: bytes) -> bytes:
    """The text in UTF-8. Raises StatestoreError for bytes that would unpack to more than MOST_BYTES."""
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(packed, MOST_BYTES)
    if unpacking.unconsumed_tail:
        raise StatestoreError(
            f"an item of the job unpacks to more than {MOST_BYTES:,} bytes, so another program wrote it: let only the job write "
            "the table"
        )
    return text


PARTITIONS = tuple(keys.progress_partition("OPEN", f"{n:02d}") for n in range(16))
"""A checksum of the sort key chooses one for each durable item. A partition key takes 1,000 write units a second, and DynamoDB
does not split one whose sort keys rise. 50,000 changes a second cost 2,200 (docs/costs.md)."""
CHANGES_PER_ITEM = 500
"""Open changes in one item: some 30 bytes each when compressed, 110 before."""
BYTES_PER_ITEM = 390_000
"""The most bytes of an item before its compression, so that it never exceeds the 400 KB of an item."""

SAMPLE = 100
"""Of this many changes, settling takes one in full although nothing asks for it, so that corrections still watch the overlay.
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


class OpenRow(NamedTuple):
    """An open row at an index key: its version, and whether it has the key now, or only had it. `segment`: the name of that
    segment; `place`: where an answer is evidence, as the bits of `DueSegment.seen`, -1 where none is."""

    version: str
    has: bool
    segment: str = ""
    place: int = -1


class IndexObservation(NamedTuple):
    """What index answers to live work showed of a segment. `seen`: the places where they showed it, or a newer version, as in
    `DueSegment.seen`. `late`: how many rows an index lacked, or showed too old. `lost`: the places where an index still showed a
    row that has left it: they are no evidence, whatever another answer lacked."""

    segment: str
    seen: int
    late: int = 0
    lost: int = 0


class Overlay(Protocol):
    """Which rows belong over the answer for an index key."""

    def lacks(self, check: int) -> bool:
        """Whether no open row has, or had, an index key with this checksum: quick, and False for some that none has."""

    def rows(self, index_key: IndexKey) -> Sequence[tuple[Key, OpenRow]]:
        """The open rows that have, or had, this index key."""

    def is_open(self, key: Key) -> bool:
        """Whether the row is open; perhaps also for another row, whose key has the same checksum."""


def open_rows(overlays: Iterable[Overlay], index_key: IndexKey) -> list[tuple[Key, OpenRow]]:
    """The open rows of all overlays that have, or had, this index key. A look-up asks some ten overlays, and two have rows."""
    check = checksum(index_key)
    found: list[tuple[Key, OpenRow]] = []
    for overlay in overlays:
        if not overlay.lacks(check):
            found += overlay.rows(index_key)
    return found


@dataclass(slots=True)
class SegmentGroup:
    """Segments that travel together. Only the segments cross to a worker, which then makes the index: the places of all
    segments in order, eight bytes each. `_marks`: as many bytes, which say at once of most other keys that the group lacks them;
    `_found`: the rows that look-ups found, or none, for the keys that have a mark."""

    segments: tuple[Segment, ...]
    _places: "array[int] | None" = None
    _marks: bytearray = field(default_factory=bytearray)
    _first: list[int] = field(default_factory=list)
    _found: dict[IndexKey, Sequence[tuple[Key, OpenRow]]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type["SegmentGroup"], tuple[tuple[Segment, ...]]]:
        return SegmentGroup, (self.segments,)

    @property
    def size(self) -> int:
        """The number of changes."""
        return sum(segment.size for segment in self.segments)

    def lacks(self, check: int) -> bool:
        """Whether no open row has, or had, an index key with this checksum: quick, and False for some that none has."""
        marks = self._marks or self._index()[0]
        return not marks[check % len(marks)]

    def rows(self, index_key: IndexKey) -> Sequence[tuple[Key, OpenRow]]:
        """The open rows that have, or had, this index key."""
        found = self._found.get(index_key)
        if found is None:
            _, places = self._index()
            numbers = _numbers(places, checksum(index_key))
            found = [row for n in numbers if (row := self._row_of(n, index_key)) is not None]
            self._found[index_key] = found
        return found

    def is_open(self, key: Key) -> bool:
        """Whether the row is open; perhaps also for another row, whose key has the same checksum."""
        check = checksum(key)
        return not self.lacks(check) and bool(_numbers(self._index()[1], check))

    def changes(self, index_key: IndexKey) -> list[OpenChange]:
        """The open changes at an index key, or at the key of a row; perhaps some of another key with its checksum."""
        _, places = self._index()
        return [segment.change(n) for segment, n in map(self._place, _numbers(places, checksum(index_key)))]

    def _place(self, n: int) -> tuple[Segment, int]:
        """The segment of a change, and its number there."""
        at = bisect_right(self._first, n) - 1
        return self.segments[at], n - self._first[at]

    def _row_of(self, n: int, index_key: IndexKey) -> tuple[Key, OpenRow] | None:
        """The row of a change at this index key; None where another key has the same checksum."""
        segment, n_there = self._place(n)
        change, (index, value) = segment.change(n_there), index_key
        for place, (slot, key) in enumerate(change.places):
            if key == value and slot_name(slot) == index:
                has, at = place < len(change.slots), n_there * segment.width + place
                return change.key, OpenRow(change.version, has, segment.name, at)
        if any(key == value and isinstance(slot, int) and slot_name(slot) == index for slot, key in change.former):
            return change.key, OpenRow(change.version, False, segment.name)
        return None

    def _index(self) -> "tuple[bytearray, array[int]]":
        """The marks and the places. Merges those of the segments at first, and numbers their changes through."""
        if self._places is not None:
            return self._marks, self._places
        self._first = [0, *accumulate(segment.size for segment in self.segments)][:-1]
        merged: list[int] = []
        for first, segment in zip(self._first, self.segments, strict=True):
            own = array("Q", segment.places)
            merged += [place + first for place in own] if first else own
        merged.sort()
        marks = bytearray(8 * len(merged) or 1)
        for place in merged:
            marks[(place >> 32) % len(marks)] = 1
        self._marks, self._places = marks, array("Q", merged)  # whole, for threads that share the group
        return marks, self._places


@lru_cache(maxsize=8)
def group_of(segments: tuple[Segment, ...]) -> SegmentGroup:
    """The group of these segments. The stages of a round and the driver share it in one process, so its index is made once."""
    return SegmentGroup(segments)


def _numbers(places: "array[int]", check: int) -> list[int]:
    """The numbers of the changes under a checksum: few."""
    found: list[int] = []
    for n in range(bisect_left(places, check << 32), len(places)):
        if places[n] >> 32 != check:
            break
        found.append(places[n] & 0xFFFFFFFF)
    return found


def observations_of(
    seen: Mapping[tuple[Key, str], str],
    opened: Mapping[IndexKey, Iterable[tuple[Key, OpenRow]]],
    dropped: Mapping[tuple[Key, IndexKey], bool],
) -> Iterator[IndexObservation]:
    """What answers showed of each segment. `seen`: row and index -> the version that answers showed, "" where they lacked a row
    that has the key; `opened`: the open rows at each index key that look-ups asked for; `dropped`: row and index key -> whether
    all answers lacked the row, of rows that have left the index."""
    bits: dict[str, int] = {}
    lost: dict[str, int] = {}
    newest: dict[tuple[Key, str], OpenRow] = {}
    for (index, value), rows in opened.items():
        for key, row in rows:
            version = seen.get((key, index))
            if version is not None and row.version > version:
                newest[key, index] = max(row, newest.get((key, index), row))
            if row.place < 0:
                continue
            if row.has:
                shown = version is not None and row.version <= version
            elif (key, (index, value)) in dropped:  # absence under one key says nothing of another key
                shown = dropped[key, (index, value)]
                lost[row.segment] = lost.get(row.segment, 0) | (not shown) << row.place
            else:
                shown = False
            if shown:
                bits[row.segment] = bits.get(row.segment, 0) | 1 << row.place
    late = Counter(row.segment for row in newest.values())
    names = dict.fromkeys((*bits, *late, *(name for name, places in lost.items() if places)))
    return (IndexObservation(name, bits.get(name, 0), late[name], lost.get(name, 0)) for name in names)
