"""The overlay: which open rows the runner lays over an index answer, because the index may lack them or show them too
old.

A row may be open several times, in segments of several rounds. Each time has its own evidence, and closes by itself. Of all that
are open, the newest says whether the row has a key.

The segments that a round opened travel together, once to each worker, as a group. Spark sends a worker the groups that it lacks,
all of them to a new one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, Protocol

from processor.engine.protocol.segment import IndexKey, OpenChange, Segment, checksum
from statestore.items import slot_name
from statestore.keys import Key


class OpenRow(NamedTuple):
    """An open row at an index key: its version, and whether it has the key now, or only had it. `segment`: the name of that
    segment; `place`: where an answer is evidence, as the bits of `DueSegment.seen`, -1 where none is."""

    version: str
    has: bool
    segment: str = ""
    place: int = -1


class Sight(NamedTuple):
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


def sights_of(
    seen: Mapping[tuple[Key, str], str],
    opened: Mapping[IndexKey, Iterable[tuple[Key, OpenRow]]],
    dropped: Mapping[tuple[Key, IndexKey], bool],
) -> Iterator[Sight]:
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
    return (Sight(name, bits.get(name, 0), late[name], lost.get(name, 0)) for name in names)
