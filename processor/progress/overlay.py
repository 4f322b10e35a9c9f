"""The overlay: which open rows the runner lays over an index answer, because the index may lack them or show them too
old.

The driver holds the whole overlay, in buckets by join key, and broadcasts it to its workers encoded bucket by bucket. A
worker decodes only the buckets that its lookups ask for. The driver encodes only the buckets that changed since the
last round.
"""

import pickle
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from zlib import crc32

from statestore.keys import Key

BUCKETS = 256
IndexKey = tuple[str, str]
"""(index, join key): where an index query asks."""
_Bucket = dict[IndexKey, dict[Key, None]]


class Overlay(Protocol):
    """Which rows belong over the answer for an index key; a plain map does as well."""

    def get(self, index_key: IndexKey, default: Collection[Key], /) -> Collection[Key]:
        """The keys of the open rows that have, or had, this index key."""


@dataclass(slots=True)
class DriverOverlay:
    """The whole overlay, as a driver holds it. `encoded`: each bucket as bytes, None where it changed since."""

    buckets: list[_Bucket] = field(default_factory=lambda: [{} for _ in range(BUCKETS)])
    encoded: list[bytes | None] = field(default_factory=lambda: [None] * BUCKETS)

    def get(self, index_key: IndexKey, default: Collection[Key], /) -> Collection[Key]:
        """The keys of the open rows that have, or had, this index key."""
        return self.buckets[_bucket(index_key)].get(index_key, default)

    def add(self, index_keys: Iterable[IndexKey], row: Key) -> None:
        """Lays a row over the answers for these index keys."""
        for index_key in index_keys:
            n = _bucket(index_key)
            self.buckets[n].setdefault(index_key, {})[row] = None
            self.encoded[n] = None

    def remove(self, index_keys: Iterable[IndexKey], row: Key) -> None:
        """Takes a row off the answers for these index keys."""
        for index_key in index_keys:
            n = _bucket(index_key)
            rows = self.buckets[n][index_key]
            rows.pop(row, None)
            if not rows:
                del self.buckets[n][index_key]
            self.encoded[n] = None

    def encode(self) -> list[bytes]:
        """All buckets, for `WorkerOverlay`."""
        for n, bucket in enumerate(self.buckets):
            if self.encoded[n] is None:
                rows = {index_key: tuple(rows) for index_key, rows in bucket.items()}
                self.encoded[n] = pickle.dumps(rows) if rows else b""
        return [encoded or b"" for encoded in self.encoded]


class WorkerOverlay:
    """The overlay of a driver, as a worker received it. The worker decodes a bucket when a lookup asks for it."""

    def __init__(self, encoded: Sequence[bytes]) -> None:
        self._encoded = encoded
        self._decoded: dict[int, Mapping[IndexKey, Collection[Key]]] = {}

    def get(self, index_key: IndexKey, default: Collection[Key], /) -> Collection[Key]:
        """The keys of the open rows that have, or had, this index key."""
        n = _bucket(index_key)
        if not self._encoded[n]:
            return default
        if n not in self._decoded:
            self._decoded[n] = pickle.loads(self._encoded[n])
        return self._decoded[n].get(index_key, default)


def _bucket(index_key: IndexKey) -> int:
    return crc32(index_key[1].encode()) % BUCKETS
