"""The publish ledger and the runs: which messages tasks reserved, and which of them the broker acknowledged.

    LEDGER#<product>, <root>   seq (only rises, never expires), hash of the value, topic and version of the product, mark of
                               the reservation, the message's key; ttl, where the root is erased. The hash begins with
                               `large:` where the document does not fit its topic: then the message is a dead letter
    RUNS, <run>                through: the highest round that ended with every message acknowledged; attempts: which attempt of a
                               lane committed, where it was not the first

A reservation counts as acknowledged once the round that made it has ended, for the attempt whose transaction the broker
committed. Rounds of a run end in order. A run is one start of the job: its number is the lease's generation.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from statestore.item_attributes import write_note
from statestore.keys import Key, progress_partition
from statestore.store import Absent, Equals, Item, Write
from statestore.table import TTL

NO_DOCUMENT = ""
INVALIDATED = "?"
"""The hash of an invalidated entry: no document has it, so the next document is published."""
UNFIT = "large:"
"""The begin of the hash where a dead letter went out in place of a document that does not fit its topic: most are too large."""


class Mark(NamedTuple):
    """Who made a reservation: run, round, lane, attempt of the lane's task."""

    run: int
    round: int
    lane: int
    attempt: int

    def encode(self) -> str:
        return f"{self.run}.{self.round}.{self.lane}.{self.attempt}"


class LedgerEntry(NamedTuple):
    """The ledger's entry of a root. A root without an item has `mark` None. `version`: the product's, in the document; `topic`:
    of the product then. `expires`: DynamoDB may remove the item, because the root was erased."""

    seq: int = 0
    hash: str = NO_DOCUMENT
    mark: Mark | None = None
    key: str = ""
    version: int = 0
    topic: str = ""
    expires: bool = False

    def shows(self, digest: str, version: int, topic: str) -> bool:
        """Whether the root's last message shows a document with this hash, by this version of the product. No document is the
        same for every version, but another topic may still show an earlier document."""
        if digest == NO_DOCUMENT:
            return self.hash == digest and (self.mark is None or self.topic == topic)
        return self.hash == digest and self.version == version

    @property
    def unfit(self) -> bool:
        """Whether the root's last document did not fit its topic."""
        return self.hash.startswith(UNFIT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How far a run came. `attempts`: (round, lane) -> the attempt that committed, where it was not the first."""

    number: int
    through: int = -1
    attempts: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def acknowledges(self, mark: Mark) -> bool:
        """Whether the broker is known to have acknowledged the reservation's message."""
        return mark.round <= self.through and self.attempts.get((mark.round, mark.lane), 0) == mark.attempt


def entries_partition(product: str) -> str:
    """The partition of a product's ledger entries."""
    return progress_partition("LEDGER", product)


def entry_key(product: str, root: str) -> Key:
    """The key of a root's ledger entry."""
    return Key(entries_partition(product), root)


def run_key(number: int) -> Key:
    """The key of a run's item."""
    return Key(progress_partition("RUNS"), f"{number:010d}")


def read_entry(item: Item | None, earlier: int = 0) -> LedgerEntry:
    """The ledger entry that an item holds. `earlier`: the highest sequence of the product's topic before the table's first
    message. A root without an item has no document, acknowledged; but where the topic had messages, nobody knows its
    document, and its sequences go on above `earlier`."""
    if item is None:
        return LedgerEntry(seq=earlier, hash=INVALIDATED) if earlier else LedgerEntry()
    run, round_, lane, attempt = map(int, item["mark"].split("."))
    mark = Mark(run, round_, lane, attempt)
    return LedgerEntry(
        item["seq"], item["hash"], mark, item["key"], item["version"], item.get("topic", ""), TTL in item
    )


def read_run(number: int, item: Item | None) -> Run:
    """How far a run came, by its item."""
    if item is None:
        return Run(number=number)
    attempts = {(int(r), int(s)): int(a) for r, s, a in item.get("attempts", ())}
    return Run(number=number, through=item["through"], attempts=attempts)


def hash_of(value: bytes | None) -> str:
    """The hash of a document's encoded value; empty for no document."""
    return NO_DOCUMENT if value is None else hashlib.blake2b(value, digest_size=16).hexdigest()


def reserve(product: str, root: str, seen: LedgerEntry, entry: LedgerEntry) -> Write:
    """Reserves the next message of a root; refused when another publisher reserved one after `seen` was read."""
    values = {
        "seq": entry.seq,
        "hash": entry.hash,
        "mark": entry.mark.encode() if entry.mark else "",
        "key": entry.key,
        "version": entry.version,
        "topic": entry.topic,
    }
    remove = (TTL,) if seen.expires else ()
    when = Absent() if seen.mark is None else Equals("seq", seen.seq)
    return write_note(entry_key(product, root), values, remove=remove, when=when)


def retire_entry(product: str, root: str, seen: LedgerEntry, forget: int) -> Write:
    """Lets DynamoDB remove the entry of an erased root from `forget` on (seconds since 1970): not earlier, because a task of an
    earlier run may still reserve by what it read."""
    return write_note(entry_key(product, root), {"key": "", TTL: forget}, when=Equals("seq", seen.seq))


def end_round(run: Run, before: int) -> Write:
    """Records that the broker acknowledged every message of the run up to round `run.through`. `before`: the round that the run
    recorded last, -1 for none; refused where the table does not know that, because it went back to an earlier moment."""
    values: dict[str, object] = {"through": run.through}
    if run.attempts:
        values["attempts"] = [[r, s, a] for (r, s), a in sorted(run.attempts.items())]
    return write_note(run_key(run.number), values, when=Absent() if before < 0 else Equals("through", before))
