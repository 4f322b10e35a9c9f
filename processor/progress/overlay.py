"""The overlay: which open rows the runner lays over an index answer, because the index may lack them or show them too
old.

A row may be open several times, in segments of several rounds. Each time has its own evidence, and closes by itself. Of all that
are open, the newest says whether the row has a key.

The segments that a round opened travel together, once to each worker, as a group. Spark sends a worker the groups that it lacks,
all of them to a new one.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple, Protocol

from processor.progress.segment import IndexKey, OpenChange, Segment, checksum
from statestore.items import slot_name
from statestore.keys import Key


class OpenRow(NamedTuple):
    """An open row at an index key: its version, and whether it has the key now, or only had it. `segment`: the name of that
    segment; `place`: which slot of the segment it is, as the bits of `DueSegment.seen`."""

    version: str
    has: bool
    segment: str = ""
    place: int = 0


class Sight(NamedTuple):
    """What index answers to live work showed of a segment. `seen`: the slots that they showed at their version or newer, as in
    `DueSegment.seen`. `late`: how many rows an index lacked, or showed too old."""

    segment: str
    seen: int
    late: int = 0


class Overlay(Protocol):
    """Which rows belong over the answer for an index key."""

    def rows(self, index_key: IndexKey) -> Iterable[tuple[Key, OpenRow]]:
        """The open rows that have, or had, this index key."""


@dataclass(slots=True)
class SegmentGroup:
    """Segments that travel together. Only the segments cross to a worker, which then makes the index: the places of all
    segments in order, eight bytes each."""

    segments: tuple[Segment, ...]
    _places: "array[int] | None" = None
    _first: list[int] = field(default_factory=list)
    _decoded: dict[int, OpenChange] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type["SegmentGroup"], tuple[tuple[Segment, ...]]]:
        return SegmentGroup, (self.segments,)

    @property
    def size(self) -> int:
        """The number of changes."""
        return sum(segment.size for segment in self.segments)

    def rows(self, index_key: IndexKey) -> Iterator[tuple[Key, OpenRow]]:
        """The open rows that have, or had, this index key."""
        places = self._places if self._places is not None else self._index()
        first = checksum(index_key) << 32
        start = bisect_left(places, first)
        for place in places[start : bisect_left(places, first + (1 << 32), start)] if start < len(places) else ():
            yield from self._rows_of(place & 0xFFFFFFFF, index_key)

    def _rows_of(self, n: int, index_key: IndexKey) -> Iterator[tuple[Key, OpenRow]]:
        """The row of a change at this index key; none where another key has the same checksum."""
        at = bisect_right(self._first, n) - 1
        segment, n_there = self.segments[at], n - self._first[at]
        if n not in self._decoded:
            self._decoded[n] = segment.change(n_there)
        change, (index, value) = self._decoded[n], index_key
        for place, (slot, key) in enumerate(change.slots):
            if key == value and slot_name(slot) == index:
                yield change.key, OpenRow(change.version, True, segment.name, n_there * segment.width + place)
                return
        if any(key == value and isinstance(slot, int) and slot_name(slot) == index for slot, key in change.former):
            yield change.key, OpenRow(change.version, False, segment.name)

    def _index(self) -> "array[int]":
        """Merges the places of the segments, and numbers their changes through."""
        self._first = [0, *accumulate(segment.size for segment in self.segments)][:-1]
        merged: list[int] = []
        for first, segment in zip(self._first, self.segments, strict=True):
            own = array("Q", segment.places)
            merged += [place + first for place in own] if first else own
        merged.sort()
        self._places = array("Q", merged)
        return self._places


def sights_of(
    seen: Mapping[tuple[Key, str], str], rows: Mapping[tuple[Key, str], Iterable[OpenRow]]
) -> Iterator[Sight]:
    """What answers showed of each segment. `seen`: row and index -> the version that answers showed, "" where they lacked the
    row; `rows`: the same -> the open rows that the overlay had there."""
    bits: dict[str, int] = {}
    late: dict[str, int] = {}
    for place, version in seen.items():
        for row in rows[place]:
            if row.has and row.version <= version:
                bits[row.segment] = bits.get(row.segment, 0) | 1 << row.place
        newest = max(rows[place])
        if newest.version > version:
            late[newest.segment] = late.get(newest.segment, 0) + 1
    return (Sight(name, bits.get(name, 0), late.get(name, 0)) for name in dict.fromkeys((*bits, *late)))
