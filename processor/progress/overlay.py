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

    def rows(self, index_key: IndexKey) -> Sequence[tuple[Key, OpenRow]]:
        """The open rows that have, or had, this index key."""


@dataclass(slots=True)
class SegmentGroup:
    """Segments that travel together. Only the segments cross to a worker, which then makes the index: the places of all
    segments in order, eight bytes each. `_found`: the rows at the index keys that look-ups asked for, if there are any."""

    segments: tuple[Segment, ...]
    _places: "array[int] | None" = None
    _first: list[int] = field(default_factory=list)
    _decoded: dict[int, OpenChange] = field(default_factory=dict)
    _found: dict[IndexKey, Sequence[tuple[Key, OpenRow]]] = field(default_factory=dict)

    def __reduce__(self) -> tuple[type["SegmentGroup"], tuple[tuple[Segment, ...]]]:
        return SegmentGroup, (self.segments,)

    @property
    def size(self) -> int:
        """The number of changes."""
        return sum(segment.size for segment in self.segments)

    def rows(self, index_key: IndexKey) -> Sequence[tuple[Key, OpenRow]]:
        """The open rows that have, or had, this index key."""
        if (found := self._found.get(index_key)) is not None:
            return found
        places = self._places if self._places is not None else self._index()
        first = checksum(index_key) << 32
        start = bisect_left(places, first)
        if start == len(places) or places[start] >> 32 != first >> 32:
            return ()
        numbers = [place & 0xFFFFFFFF for place in places[start : bisect_left(places, first + (1 << 32), start)]]
        found = self._found[index_key] = [row for n in numbers for row in self._rows_of(n, index_key)]
        return found

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
    seen: Mapping[tuple[Key, str], str], opened: Mapping[IndexKey, Iterable[tuple[Key, OpenRow]]]
) -> Iterator[Sight]:
    """What answers showed of each segment. `seen`: row and index -> the version that answers showed, "" where they lacked the
    row; `opened`: the open rows at each index key that look-ups asked for."""
    bits: dict[str, int] = {}
    newest: dict[tuple[Key, str], OpenRow] = {}
    for (index, _), rows in opened.items():
        for key, row in rows:
            version = seen.get((key, index))
            if version is None:
                continue
            if row.version > version:
                newest[key, index] = max(row, newest.get((key, index), row))
            elif row.has:
                bits[row.segment] = bits.get(row.segment, 0) | 1 << row.place
    late = Counter(row.segment for row in newest.values())
    return (Sight(name, bits.get(name, 0), late[name]) for name in dict.fromkeys((*bits, *late)))
