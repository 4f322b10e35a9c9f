"""The transactions that the job has forgotten, of whose records a portion still names some.

    OPEN, closed    `closed`: the topic and the id of each

Without this note, a start would take such a transaction for an open one: its other portions are gone.
"""

import json
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from processor.engine.protocol.backlog import PARTITION
from processor.engine.protocol.held_portion import Held, TransactionName
from processor.engine.protocol.packed_text import pack, unpack
from statestore.keys import Key
from statestore.store import Delete, Item, Write
from statestore.writes import write_note

NOTE = Key(PARTITION, "closed")


@dataclass(slots=True, kw_only=True)
class ClosedTransactions:
    """`portions`: of each, those that name it."""

    portions: dict[TransactionName, set[Key]] = field(default_factory=dict)
    _noted: frozenset[TransactionName] = frozenset()

    def reload(self, items: Iterable[Item]) -> None:
        """Takes the note of an earlier run."""
        for item in (item for item in items if "closed" in item):
            self._noted = frozenset((topic, name) for topic, name in json.loads(unpack(item["closed"])))
            self.portions = {name: set() for name in self._noted}

    def left_out(self, item: Key, held: Held) -> Held:
        """What a portion of an earlier run says, without those transactions."""
        for name in held.seen.keys() & self.portions.keys():
            self.portions[name].add(item)
        return replace(held, seen={name: seen for name, seen in held.seen.items() if name not in self.portions})

    def update(self, used: AbstractSet[Key]) -> list[Write | Delete]:
        """Forgets those that no portion names any more. `used`: the portions that stay. Returns the requests that change the
        note."""
        left = {name: portions & used for name, portions in self.portions.items()}
        self.portions = {name: portions for name, portions in left.items() if portions}
        if self._noted == self.portions.keys():
            return []
        self._noted = frozenset(self.portions)
        text = json.dumps(sorted(self.portions)).encode()
        return [write_note(NOTE, {"closed": pack(text)})] if self.portions else [Delete(key=NOTE)]
