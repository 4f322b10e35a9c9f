"""Where open changes are laid over index answers: which rows an index may lack under a key, or show too old.

The driver holds all places, in buckets by key, and sends them to its workers spelt bucket by bucket: a worker reads only the
buckets that its queries ask for, and the driver spells only those that changed since.
"""

import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from zlib import crc32

from statestore.keys import Key

BUCKETS = 256
Place = tuple[str, str]
"""(index, key)."""
_Bucket = dict[Place, dict[Key, None]]


class Places(Protocol):
    """Which rows to lay over an index answer; a plain map does as well."""

    def get(self, place: Place, default: Collection[Key], /) -> Collection[Key]:
        """The rows of a place."""


@dataclass(slots=True)
class HeldPlaces:
    """All places that a driver holds. `spelt`: each bucket as bytes, None where it changed since."""

    buckets: list[_Bucket] = field(default_factory=lambda: [{} for _ in range(BUCKETS)])
    spelt: list[bytes | None] = field(default_factory=lambda: [None] * BUCKETS)

    def get(self, place: Place, default: Collection[Key], /) -> Collection[Key]:
        """The rows of a place."""
        return self.buckets[_bucket(place)].get(place, default)

    def add(self, places: Iterable[Place], row: Key) -> None:
        """Lays a row over what the index shows at these places."""
        for place in places:
            n = _bucket(place)
            self.buckets[n].setdefault(place, {})[row] = None
            self.spelt[n] = None

    def remove(self, places: Iterable[Place], row: Key) -> None:
        """Takes that back."""
        for place in places:
            n = _bucket(place)
            rows = self.buckets[n][place]
            rows.pop(row, None)
            if not rows:
                del self.buckets[n][place]
            self.spelt[n] = None

    def spell(self) -> list[bytes]:
        """All buckets, for `SentPlaces`."""
        for n, bucket in enumerate(self.buckets):
            if self.spelt[n] is None:
                rows = {place: tuple(rows) for place, rows in bucket.items()}
                self.spelt[n] = pickle.dumps(rows) if rows else b""
        return [spelt or b"" for spelt in self.spelt]


class SentPlaces:
    """What a worker got of a driver's places; a bucket is read when it is asked for."""

    def __init__(self, spelt: Sequence[bytes]) -> None:
        self._spelt = spelt
        self._read: dict[int, Mapping[Place, Collection[Key]]] = {}

    def get(self, place: Place, default: Collection[Key], /) -> Collection[Key]:
        """The rows of a place."""
        n = _bucket(place)
        if not self._spelt[n]:
            return default
        if n not in self._read:
            self._read[n] = pickle.loads(self._spelt[n])
        return self._read[n].get(place, default)


def _bucket(place: Place) -> int:
    return crc32(place[1].encode()) % BUCKETS
