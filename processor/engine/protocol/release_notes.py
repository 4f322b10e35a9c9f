"""Durable notes of the roots that rounds release, of products whose messages keep a distance (`every`).

    OPEN, released#<run>.<round>    `released`: the roots; `at`: the date, in seconds since 1970

The driver writes the note before the round, so a crash in between makes a message late, never early. A note names a root by a
hash: it may outlive an erasure.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from math import inf

from processor.engine.plan.touch import Root
from processor.engine.protocol.backlog import PARTITION
from processor.engine.protocol.packed_text import pack, unpack
from statestore.items import key_of_item
from statestore.keys import Key
from statestore.store import Item, Write
from statestore.writes import write_note


@dataclass(slots=True, kw_only=True)
class ReleaseNotes:
    """The notes of a run, and of those before it."""

    run: int
    _published: dict[str, float] = field(default_factory=dict)
    _notes: dict[Key, float] = field(default_factory=dict)

    def reload(self, items: Iterable[Item], now: float, date: float) -> None:
        """Takes the notes of earlier runs."""
        for item in (item for item in items if "released" in item):
            at = now - max(0.0, date - float(item["at"]))
            self._notes[key_of_item(item)] = at
            for digest in json.loads(unpack(item["released"])):
                self._published[digest] = max(at, self._published.get(digest, -inf))

    def published_at(self, root: Root) -> float:
        """When the last message of the root went out, on the job's clock; minus infinity where that is long ago."""
        return self._published.get(_digest(root), -inf)

    def begin(self, roots: Iterable[Root], round_: int, now: float, date: float) -> Write:
        """Notes, before this round, that it publishes these roots."""
        key = Key(PARTITION, f"released#{self.run:010d}.{round_:010d}")
        self._notes[key] = now
        text = json.dumps(sorted(map(_digest, roots))).encode()
        return write_note(key, {"released": pack(text), "at": Decimal(f"{date:.3f}")})

    def sent(self, roots: Iterable[Root], now: float) -> None:
        """Takes when the messages of these roots have gone out."""
        self._published.update((_digest(root), now) for root in roots)

    def forget(self, before: float) -> Iterator[Key]:
        """Forgets what happened before this moment. Yields the items of the notes."""
        old = [key for key, at in self._notes.items() if at <= before]
        for key in old:
            del self._notes[key]
            yield key
        if old:
            self._published = {digest: at for digest, at in self._published.items() if at > before}


def _digest(root: Root) -> str:
    """A name of the root that shows no value of a row."""
    return sha256("\0".join(root).encode()).hexdigest()[:16]
