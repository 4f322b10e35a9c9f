"""Replays of dead letters, as the table remembers them: one item a dead letter, which never expires.

    REPLAYS, <topic>/<partition>/<offset>/<epoch>    rows: the keys that its row had, as an open change has them;
                                                     outcome: how it ended, once its documents are published

The keys are noted before the row is written. An attempt that was given up may write its row long after the change that it opened
was closed, and what is written to the row after that forgets them: the next attempt finds them here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from processor.model.change import Record, Rejected
from processor.model.open_changes import Entry, read_durable
from statestore import keys
from statestore.items import FORMAT, Held
from statestore.keys import Key
from statestore.store import Item, Write

PARTITION = "REPLAYS"
Outcome = Literal["applied", "superseded", "ignored", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A dead letter as its topic keeps it. `kept`: since when, in seconds since 1970."""

    rejected: Rejected
    kept: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """How the replay of a dead letter ended; where it was refused again, why. `opened`: the changes that it opened, by the
    durable item that holds them."""

    record: Record
    outcome: Outcome
    reason: str = ""
    opened: tuple[Key, tuple[Entry, ...]] | None = None


def replay_key(record: Record) -> Key:
    """The item that remembers the replay of a record."""
    return Key(PARTITION, f"{record.topic}/{record.partition}/{record.offset}/{record.epoch}")


def noted_keys(item: Item | None) -> frozenset[Held]:
    """The keys of the row that earlier attempts noted."""
    entries = read_durable(item) if item is not None else []
    noted = {key for entry in entries for key in (*entry.slots, *entry.former)}
    return frozenset((slot, key) for slot, key in noted if not keys.is_no_key(key))


def end_replay(record: Record, outcome: Outcome) -> Write:
    """Says that the dead letter is replayed, for good."""
    return Write(key=replay_key(record), set={"_f": FORMAT, "outcome": outcome}, remove=("rows",))


def ended_replays(items: Iterable[Item]) -> dict[Key, str]:
    """Of the items of `PARTITION`, the replays that ended, and how."""
    return {Key(item["PK"], item["SK"]): item["outcome"] for item in items if has_ended(item)}


def has_ended(item: Item | None) -> bool:
    """Whether the item says so."""
    return item is not None and "outcome" in item
