"""The overlay: which open rows the runner lays over an index answer, because the index may lack them or show them too
old.

The driver holds the whole overlay, in buckets by join key, and broadcasts it to its workers encoded bucket by bucket. A
worker decodes only the buckets that its lookups ask for. The driver encodes only the buckets that changed since the
last round.
"""

import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from zlib import crc32

from statestore.keys import Key

BUCKETS = 256
IndexKey = tuple[str, str]
"""(index, join key): where an index query asks."""
OpenRow = tuple[str, bool]
"""An open row at an index key: its version, and whether it has the key now, or only had it."""
OpenRows = Mapping[Key, OpenRow]


class Overlay(Protocol):
    """Which rows belong over the answer for an index key; a plain map does as well."""

    def get(self, index_key: IndexKey, default: OpenRows, /) -> OpenRows:
        """The open rows that have, or had, this index key."""


@dataclass(slots=True)
class DriverOverlay:
    """The whole overlay, as a driver holds it. `encoded`: each bucket as bytes, None where it changed since."""

    buckets: list[dict[IndexKey, dict[Key, OpenRow]]] = field(default_factory=lambda: [{} for _ in range(BUCKETS)])
    encoded: list[bytes | None] = field(default_factory=lambda: [None] * BUCKETS)

    def __bool__(self) -> bool:
        return any(self.buckets)

    def get(self, index_key: IndexKey, default: OpenRows, /) -> OpenRows:
        """The open rows that have, or had, this index key."""
        return self.buckets[_bucket(index_key)].get(index_key, default)

    def add(self, row: Key, places: Iterable[tuple[IndexKey, OpenRow]]) -> None:
        """Lays a row over the answers for these index keys."""
        for index_key, open_row in places:
            n = _bucket(index_key)
            self.buckets[n].setdefault(index_key, {})[row] = open_row
            self.encoded[n] = None

    def remove(self, row: Key, places: Iterable[tuple[IndexKey, OpenRow]]) -> None:
        """Takes a row off the answers for these index keys."""
        for index_key, _ in places:
            n = _bucket(index_key)
            rows = self.buckets[n].get(index_key, {})
            rows.pop(row, None)
            if not rows:
                self.buckets[n].pop(index_key, None)
            self.encoded[n] = None

    def encode(self) -> list[bytes]:
        """All buckets, for `WorkerOverlay`."""
        for n, bucket in enumerate(self.buckets):
            if self.encoded[n] is None:
                self.encoded[n] = pickle.dumps(bucket) if bucket else b""
        return [encoded or b"" for encoded in self.encoded]


class WorkerOverlay:
    """The overlay of a driver, as a worker received it. The worker decodes a bucket when a lookup asks for it."""

    def __init__(self, encoded: Sequence[bytes]) -> None:
        self._encoded = encoded
        self._decoded: dict[int, Mapping[IndexKey, OpenRows]] = {}

    def get(self, index_key: IndexKey, default: OpenRows, /) -> OpenRows:
        """The open rows that have, or had, this index key."""
        n = _bucket(index_key)
        if not self._encoded[n]:
            return default
        if n not in self._decoded:
            self._decoded[n] = pickle.loads(self._encoded[n])
        return self._decoded[n].get(index_key, default)


def _bucket(index_key: IndexKey) -> int:
    return crc32(index_key[1].encode()) % BUCKETS
