"""The publish ledger and the runs: what was promised to be sent, and which promises were kept.

    LEDGER#<product>, <root>   seq (only rises, never expires), hash of the value, mark of the reservation, the message's key
    RUNS, <run>                through: the highest round that ended with every message acknowledged; slots: where a later
                               attempt of a task did it, which one

A reservation counts as acknowledged once the round that made it has ended, for the attempt whose transaction was committed.
Rounds of a run end in order. A run is one start of the job: its number is the lease's generation.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from statestore.keys import Key
from statestore.store import Absent, AbsentOrBelow, Equals, Item, Write

FORMAT = 1
NO_DOCUMENT = ""
DOUBTED = "?"
"""Stands for the hash where what was published is not believed: no document has it."""


class Mark(NamedTuple):
    """Who made a reservation: run, round, publish slot, attempt of the slot's task."""

    run: int
    round: int
    slot: int
    attempt: int

    def spell(self) -> str:
        return f"{self.run}.{self.round}.{self.slot}.{self.attempt}"


class Entry(NamedTuple):
    """What the ledger says of a root: `mark` None and `seq` 0 where it says nothing, which means no document, acknowledged."""

    seq: int = 0
    hash: str = NO_DOCUMENT
    mark: Mark | None = None
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How far a run came. `attempts`: (round, slot) -> the attempt that was committed, where it was not the first."""

    number: int
    through: int = -1
    attempts: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def kept(self, mark: Mark) -> bool:
        """Whether the reservation's message is known to be acknowledged."""
        return mark.round <= self.through and self.attempts.get((mark.round, mark.slot), 0) == mark.attempt


def entry_key(product: str, root: str) -> Key:
    return Key(f"LEDGER#{product}", root)


def run_key(number: int) -> Key:
    return Key("RUNS", f"{number:010d}")


def read_entry(item: Item | None) -> Entry:
    if item is None:
        return Entry()
    run, round_, slot, attempt = map(int, item["mark"].split("."))
    return Entry(item["seq"], item["hash"], Mark(run, round_, slot, attempt), item["key"])


def read_run(number: int, item: Item | None) -> Run:
    if item is None:
        return Run(number=number)
    attempts = {(int(r), int(s)): int(a) for r, s, a in item.get("attempts", ())}
    return Run(number=number, through=item["through"], attempts=attempts)


def hash_of(value: bytes | None) -> str:
    """The hash by which equal documents are known; that of no document is empty."""
    return NO_DOCUMENT if value is None else hashlib.blake2b(value, digest_size=16).hexdigest()


def reserve(product: str, root: str, seen: Entry, entry: Entry) -> Write:
    """Promises the next message of a root: refused when somebody else did since `seen` was read."""
    sets = {
        "_f": FORMAT,
        "seq": entry.seq,
        "hash": entry.hash,
        "mark": entry.mark.spell() if entry.mark else "",
        "key": entry.key,
    }
    return Write(key=entry_key(product, root), set=sets, when=Equals("seq", seen.seq) if seen.seq else Absent())


def end_round(run: Run) -> Write:
    """Says that every message of the run up to round `run.through` was acknowledged."""
    sets: dict[str, object] = {"_f": FORMAT, "through": run.through}
    if run.attempts:
        sets["attempts"] = [[r, s, a] for (r, s), a in sorted(run.attempts.items())]
    return Write(key=run_key(run.number), set=sets, when=AbsentOrBelow("through", run.through))
