"""The dead letters of the dead letter topic, each with what became of it, as the notes of replays in the table say it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from processor.engine.protocol.replays import ended_replays, refused_replays, replay_key
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record
from statestore.store import Item

LetterFate = tuple[DeadLetter, str]
"""A dead letter, and what became of it; empty while it waits."""


def with_fates(letters: Sequence[DeadLetter], notes: Iterable[Item]) -> list[LetterFate]:
    """The letters, each with the outcome of its replay or drop, and with its last refusal. `notes`: the items of the replays."""
    items = list(notes)
    ended, refused = ended_replays(items), refused_replays(items)
    found = []
    for letter in letters:
        key = replay_key(letter.rejected.record)
        if key in refused:
            at, why = refused[key]
            letter = replace(letter, last_seen=max(at.timestamp(), letter.last_seen), refused_again=why)
        found.append((letter, ended.get(key, "")))
    return found


def age(since: float) -> str:
    """How long ago a time (in seconds since 1970) is, in its largest unit."""
    seconds = max(0, int(datetime.now(UTC).timestamp() - since))
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def record_position(record: Record) -> str:
    """The topic, partition, offset and epoch of a record, for a person."""
    return f"{record.topic}/{record.partition} offset {record.offset} epoch {record.epoch}"
