"""Erasures: the step that erases a row, and the notes of the table: one item for each erased row. It never expires and has no
value of the row.

    ERASED, <SHA-256 of entity and key>    ends: incarnation of a topic -> partition -> offset: from this offset on, a record of
                                           the row counts as new; new: [partition, version] pairs: the same as versions;
                                           sequences: [ledger number, sequence of the root's tombstone] pairs

A record before its offset never brings the row back, however late it comes, and under every epoch: a new registry gives new
epochs to old records, and so may an operator. A broker that lost no record never gives another one the same incarnation,
partition and offset. One that lost its last records does: `statestore epoch` records where the partitions end then, and from
there on a record of that epoch is new. So the item outlives the delete marker. The sequences outlive the ledger's entries, so
the sequence of a root that comes again still rises.

The step `erase` leaves a delete marker without any value but the key in place of one row.

    1. Read the row and its erasure. Note from which versions on its records count as new: from then on no batch applies an older
       one.
    2. Note every join key that the row has or had, and open the change. Both are durable before the step writes the row.
    3. Write the marker under the version seen. It keeps no former keys, because the open change has them. Refused: again from 2,
       with the row that the refusal returned.

The marker is above every record before the erasure, so a task of an earlier run that still sleeps cannot write the row again.
Like a replay, the step finds no roots and publishes nothing: the driver settles the change that it opens.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from types import MappingProxyType
from typing import NamedTuple

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import deleted_image
from processor.engine.plan.step import RowKeys, Step
from processor.engine.protocol.epochs import UNKNOWN, Incarnation
from processor.engine.protocol.segments import OpenChange, open_change, write_changes
from statestore import keys
from statestore.items import (
    Image,
    JoinKey,
    Row,
    decode_version,
    encode_version,
    key_of_item,
    next_fill,
    read_row,
    written_row,
)
from statestore.keys import Key
from statestore.store import Item, Refused, Write
from statestore.writes import empty_totals, write_bare_marker, write_note

Ends = Mapping[str, Mapping[int, int]]
"""The id of a topic's incarnation -> partition -> the offset from which on records are new."""

PARTITION = keys.progress_partition("ERASED")
_NAME = 16
Erased = frozenset[str]
"""The erased rows: the first 16 hex digits of each hash, few enough to travel to every task. Who finds a row here reads its
erasure, so two rows with the same digits cost a read."""


class Erasure(NamedTuple):
    """The erasure of a row. `new`: partition of the topic that the entity read -> the version from which on its records count as
    new; `sequences`: ledger number of a product -> the sequence of the root's tombstone; `ends`: of every topic that the entity
    had read."""

    new: Mapping[int, str]
    sequences: Mapping[int, int] = MappingProxyType({})
    ends: Ends = MappingProxyType({})

    def covers(self, version: str, topic: Incarnation = UNKNOWN) -> bool:
        """Whether a record with this version came before the erasure. `topic`: the incarnation of its topic.

        In an incarnation that the erasure knows, the offset decides; a partition that it does not know was added later. Where
        the partition ended earlier when a later epoch began, the broker has lost records: from that offset on, the records
        of this epoch are new. In another incarnation the version decides: that came later, with a higher epoch, or was gone
        before, with a lower one."""
        epoch, partition, offset = decode_version(version)
        if topic.id in self.ends:
            later = (end for began, end in topic.ends.get(partition, ()) if self.new and self.epoch < began <= epoch)
            return offset < min([self.ends[topic.id].get(partition, 0), *later])
        return bool(self.new) and version < self.new.get(partition, max(self.new.values())[:6])

    def after(self, earlier: "Erasure") -> "Erasure":
        """This erasure of a row that was erased before: covers what that erasure covered, and keeps its sequences."""
        return Erasure(self.new, earlier.sequences, {**earlier.ends, **self.ends})

    @property
    def epoch(self) -> int:
        """The highest epoch of a version; 0 without one."""
        return max((decode_version(version)[0] for version in self.new.values()), default=0)

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
    ends = {topic_id: dict(pairs) for topic_id, pairs in json.loads(item["ends"]).items()}
    return Erasure(dict(json.loads(item["new"])), dict(json.loads(item["sequences"])), ends)


def write_erasure(key: Key, erasure: Erasure) -> Write:
    """The write that remembers an erasure."""
    new = json.dumps(sorted(erasure.new.items()))
    ends = json.dumps({topic_id: sorted(offsets.items()) for topic_id, offsets in sorted(erasure.ends.items())})
    return write_note(key, {"new": new, "ends": ends, "sequences": json.dumps(sorted(erasure.sequences.items()))})


_NO_VERSION = encode_version(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRow:
    """An erased row. `before`: as it was, None where the table had none. `opened`: the change that the step opened, and that
    settling closes. `row`: as it is in the table now."""

    before: Row | None
    row: Row
    opened: OpenChange

    @property
    def row_keys(self) -> RowKeys:
        """The row and its former keys."""
        return self.row, self.opened.former


def erase(
    key: Key, plan: EntityPlan, erasure: Erasure, *, former: frozenset[JoinKey], opens: Key, expires_at: int
) -> Step[ErasedRow]:
    """Erases the row with this key. `erasure`: which records it covers. `former`: the join keys of an open change of the row.
    `opens`: the key of the durable item for the change that the step opens. `expires_at`: when DynamoDB may drop the marker,
    in seconds since 1970."""
    note = erasure_key(plan.name, key.sk)
    stored, noted = yield (key, note)
    erasure = erasure.after(read_erasure(noted))
    yield (write_erasure(note, erasure),)
    before = read_row(stored) if stored is not None else None
    while True:
        if stored is None:
            row = Row(key=key, version=_NO_VERSION, columns=None, more={}, slots={}, pending=())
        else:
            seen = read_row(stored)
            former |= seen.keys() | {(p.slot, p.key) for p in seen.pending}
            marker = _marker(seen, plan, erasure, expires_at)
            row = written_row(marker, None)
        opened = open_change(plan.name, row, former - row.keys())
        yield (write_changes(opens, [opened]),)
        if stored is None:
            return ErasedRow(before=before, row=row, opened=opened)
        (outcome,) = yield (write_bare_marker(marker, stored),)
        if not isinstance(outcome, Refused):
            if emptied := empty_totals(stored):
                yield emptied
            return ErasedRow(before=before, row=row, opened=opened)
        stored = outcome.current


def _marker(seen: Row, plan: EntityPlan, erasure: Erasure, expires_at: int) -> Image:
    marker = deleted_image(plan, seen.key, erasure.marker_version(seen.version), expires_at)
    return marker._replace(layout=max(plan.layout, seen.layout))
