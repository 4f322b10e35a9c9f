"""Replays of dead letters, as the table remembers them: one item per dead letter.

    REPLAYS, <topic>/<partition>/<offset>/<epoch>    rows: the join keys of its row, in the form of an open change; then ttl;
                                                     outcome: how the replay ended, once its documents are published;
                                                     who, why, at: of the person who dropped it, in place of a replay
                                                     refused_at, refused_for: of the last replay that refused it
    REPLAYS, .../<index>                             rows, ttl: the same of another row of a record that has several

A replay notes the keys before it writes the row. A task that Spark gave up may write the row long after the driver
closed the open change, and the next write of the row forgets those keys. The next replay of the dead letter finds them
here, or the erasure of the row. The keys expire with the delete markers of their time: after that no such task is left, and each
replay refuses the letter. How a replay ended never expires.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from processor.engine.protocol.segment import OpenChange, read_changes, write_changes
from processor.values.record import Record
from registry.model import LetterPosition
from statestore import keys
from statestore.item_attributes import key_of_item, write_note
from statestore.items import JoinKey
from statestore.keys import Key
from statestore.store import Item, Write
from statestore.table import TTL

PARTITION = keys.progress_partition("REPLAYS")
DROPPED = "dropped"
ReplayOutcome = Literal["applied", "superseded", "ignored", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """How the replay of a dead letter ended; `reason`: why it was refused again, `plain`: the same without values of the record.
    `opened`: the changes that it opened, each with the key of the durable item that holds it."""

    record: Record
    outcome: ReplayOutcome
    reason: str = ""
    plain: str = ""
    opened: tuple[tuple[Key, OpenChange], ...] = ()


def letter_position(record: Record) -> LetterPosition:
    """The position of the record that a dead letter keeps."""
    return LetterPosition(record.topic, record.partition, record.offset, record.epoch)


def replay_key(record: Record) -> Key:
    """The key of the item that remembers the replay of a record."""
    return note_key(letter_position(record))


def note_key(place: LetterPosition, index: int = 0) -> Key:
    """The key of the item that remembers the replay of the record at this position. `index`: of a change of the record; the item
    of the first also remembers how the replay ended."""
    return Key(PARTITION, "/".join(map(str, (*place, index) if index else place)))


def noted_keys(item: Item | None) -> frozenset[JoinKey]:
    """The join keys that earlier attempts of the replay noted."""
    changes = read_changes(item) if item is not None else []
    noted = {key for change in changes for key in (*change.slots, *change.former)}
    return frozenset((slot, key) for slot, key in noted if not keys.is_no_key(key))


def note_keys(note: Key, change: OpenChange, forget: int) -> Write:
    """Notes the join keys of a row before a replay writes the row. `forget`: when the table may drop them, in seconds since
    1970."""
    write = write_changes(note, [change])
    return write._replace(set={**write.set, TTL: forget})


def notes_of_row(items: Iterable[Item], row: Key) -> list[Item]:
    """The items among those of `PARTITION` that hold join keys of a row."""
    return [item for item in items if any(change.key == row for change in read_changes(item))]


def end_replay(record: Record, outcome: ReplayOutcome) -> Write:
    """Records that the replay of a dead letter ended, for good."""
    return end_note(replay_key(record), outcome)


def end_note(note: Key, outcome: ReplayOutcome) -> Write:
    """Records that the replay ended whose item has this key."""
    return write_note(note, {"outcome": outcome}, remove=("rows", TTL))


def forget_letter(record: Record) -> Write:
    """Ends the replay of a dead letter of an erased row, without the words of a person who dropped it."""
    write = end_replay(record, "superseded")
    return write._replace(remove=(*write.remove, "who", "why", "at", "refused_at", "refused_for"))


def refuse_replay(report: ReplayReport, at: datetime) -> Write:
    """Records when and why a replay refused a dead letter again: without values, which an erasure would have to find here."""
    values = {"refused_at": at.isoformat(timespec="seconds"), "refused_for": report.plain or report.reason}
    return write_note(replay_key(report.record), values)


def drop(record: Record, *, who: str, why: str, at: datetime) -> Write:
    """Records that a person dropped a dead letter, for good: no replay takes it."""
    values = {"outcome": DROPPED, "who": who, "why": why, "at": at.isoformat(timespec="seconds")}
    return write_note(replay_key(record), values, remove=("rows", TTL))


def ended_replays(items: Iterable[Item]) -> dict[Key, str]:
    """The outcomes of the replays that ended, among the items of `PARTITION`; of a dropped dead letter with who, when and why."""
    return {key_of_item(item): _outcome(item) for item in items if has_ended(item)}


def refused_replays(items: Iterable[Item]) -> dict[Key, tuple[datetime, str]]:
    """When and why the last replay refused a dead letter again, among the items of `PARTITION`."""
    return {
        key_of_item(item): (datetime.fromisoformat(item["refused_at"]), item["refused_for"])
        for item in items
        if "refused_at" in item
    }


def _outcome(item: Item) -> str:
    if item["outcome"] == DROPPED:
        return f"{DROPPED} by {item['who']} at {item['at']}: {item['why']}"
    return str(item["outcome"])


def has_ended(item: Item | None) -> bool:
    """Whether the item says that the replay ended."""
    return item is not None and "outcome" in item
