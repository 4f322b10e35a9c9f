"""Erasures, as the table remembers them: one item for each erased row. It never expires and has no value of the row.

    ERASED, <SHA-256 of entity and key>    new: [partition, version] pairs: from this version on, a record of the row counts as
                                           new; sequences: [ledger number, sequence of the root's tombstone]
                                           pairs

A record before that version never brings the row back, however late it comes. So the item outlives the delete marker. The
sequences outlive the ledger's entries, so the sequence of a root that comes again still rises.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import NamedTuple

from statestore import keys
from statestore.item_attributes import key_of_item, write_note
from statestore.keys import Key
from statestore.store import Item, Write
from statestore.versions import decode_version, encode_version, next_fill

PARTITION = keys.progress_partition("ERASED")
_NAME = 16
Erased = frozenset[str]
"""The erased rows: the first 16 hex digits of each hash, few enough to travel to every task. Who finds a row here reads its
erasure, so two rows with the same digits cost a read."""


class Erasure(NamedTuple):
    """The erasure of a row. `new`: partition -> the version from which on its records count as new; `sequences`: ledger number of
    a product -> the sequence of the root's tombstone."""

    new: Mapping[int, str]
    sequences: Mapping[int, int] = {}

    def covers(self, version: str) -> bool:
        """Whether a record with this version came before the erasure. A partition that is not in `new` came later, with a higher
        epoch, or belonged to the topic before it was created again, with a lower one."""
        _, partition, _ = decode_version(version)
        return bool(self.new) and version < self.new.get(partition, max(self.new.values())[:6])

    def marker_version(self, seen: str) -> str:
        """The version of the delete marker over a row of version `seen`: above those of all its records before the erasure. It
        stays in the epoch of the row: in the next one the row's records may come from another partition."""
        epoch, partition, _ = decode_version(seen)
        new_epoch, _, offset = decode_version(self.new.get(partition, seen))
        return max(next_fill(seen), encode_version(epoch, partition, max(offset - 1, 0)) if new_epoch == epoch else "")


def erasure_key(entity: str, sk: str) -> Key:
    """The key of the item that remembers the erasure of the row with this encoded primary key."""
    return Key(PARTITION, sha256(f"{entity}#{sk}".encode()).hexdigest())


def erased_in(items: Iterable[Item]) -> Erased:
    """The erased rows, by the items of `PARTITION`."""
    return frozenset(name_of(key_of_item(item)) for item in items)


def name_of(erasure: Key) -> str:
    """The name of an erased row in `Erased`, by the key of its erasure."""
    return erasure.sk[:_NAME]


def may_be_erased(erased: Erased, entity: str, sk: str) -> bool:
    """Whether the row may be among the erased ones: its erasure says so."""
    return bool(erased) and name_of(erasure_key(entity, sk)) in erased


def read_erasure(item: Item | None) -> Erasure:
    """The erasure that an item holds. Without an item it covers no record."""
    if item is None:
        return Erasure({})
    return Erasure(dict(json.loads(item["new"])), dict(json.loads(item["sequences"])))


def write_erasure(key: Key, erasure: Erasure) -> Write:
    """The write that remembers an erasure."""
    new = json.dumps(sorted(erasure.new.items()))
    return write_note(key, {"new": new, "sequences": json.dumps(sorted(erasure.sequences.items()))})
