"""Durable notes of the roots that rounds have released: how old their last messages are, and which portions still name them.

    OPEN, released#<run>.<round>#begun    the roots of products with `every`, before the round publishes them
    OPEN, released#<run>.<round>#ended    the roots that are out, and of which a portion stays

A note names a root by a hash: it may outlive an erasure by seconds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from math import inf

from processor.plan.touch import Root
from processor.progress.backlog import PARTITION
from processor.progress.packed_text import pack, unpack
from statestore.item_attributes import key_of_item, write_note
from statestore.keys import Key
from statestore.store import Item, Write


@dataclass(slots=True, kw_only=True)
class ReleaseNotes:
    """The notes of a run, and of those before it."""

    run: int
    _published: dict[str, float] = field(default_factory=dict)
    _notes: dict[Key, float] = field(default_factory=dict)

    def reload(self, items: Iterable[Item], now: float, date: float) -> Mapping[str, str]:
        """Takes the notes of earlier runs; returns the place of the last release of each root."""
        released: dict[str, str] = {}
        for item in (item for item in items if "released" in item):
            key, at = key_of_item(item), now - max(0.0, date - float(item["at"]))
            self._notes[key] = at
            for digest in json.loads(unpack(item["released"])):
                self._published[digest] = max(at, self._published.get(digest, -inf))
                if item["ended"]:
                    released[digest] = max(_place(key), released.get(digest, ""))
        return released

    def published_at(self, root: Root) -> float:
        """When the last message of the root went out, on the job's clock; minus infinity where that is long ago."""
        return self._published.get(digest_of(root), -inf)

    def begin(self, spaced: Iterable[Root], round_: int, now: float, date: float) -> list[Write]:
        """Notes, before this round, that it publishes these roots, whose messages keep a distance."""
        digests = list(map(digest_of, spaced))
        self._published.update(dict.fromkeys(digests, now))
        return self._write(digests, "begun", round_, now, date)

    def end(self, kept: Iterable[Root], round_: int, now: float, date: float) -> list[Write]:
        """Notes that this round published these roots, of which a portion stays."""
        return self._write(list(map(digest_of, kept)), "ended", round_, now, date)

    def forget(self, before: float, oldest_portion: str) -> Iterator[Key]:
        """Forgets what happened before this moment. Yields the items of the notes that no portion needs."""
        for key, at in list(self._notes.items()):
            if at <= before and _place(key) < oldest_portion:
                del self._notes[key]
                yield key
        self._published = {digest: at for digest, at in self._published.items() if at > before}

    def _write(self, digests: Iterable[str], kind: str, round_: int, now: float, date: float) -> list[Write]:
        if not digests:
            return []
        key = Key(PARTITION, f"released#{self.run:010d}.{round_:010d}#{kind}")
        self._notes[key] = now
        text = json.dumps(sorted(digests)).encode()
        attributes = {"released": pack(text), "ended": kind == "ended", "at": Decimal(f"{date:.3f}")}
        return [write_note(key, attributes)]


def digest_of(root: Root) -> str:
    """A name of the root that shows no value of a row."""
    return sha256("\0".join(root).encode()).hexdigest()[:16]


def _place(key: Key) -> str:
    return key.sk.split("#")[1]
