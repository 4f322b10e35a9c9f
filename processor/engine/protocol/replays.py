"""Replays of dead letters, as the table remembers them: one item per dead letter.

    REPLAYS, <topic>/<partition>/<offset>/<epoch>    rows: the join keys of its row, in the form of an open change; then ttl;
                                                     outcome: how the replay ended, once its documents are published;
                                                     who, why, at: of the person who dropped it, in place of a replay
                                                     refused_at, refused_for: of the last replay that refused it
    REPLAYS, .../<index>                             rows, ttl: the same of another row of a record that has several

A replay notes the keys before it writes the row. A task that Spark gave up may write the row long after the driver closed the
open change, and the next write of the row forgets those keys. The next replay of the dead letter finds them here, or the
erasure of the row. The keys expire with the delete markers of their time: after that no such task is left, and each replay
refuses the letter. How a replay ended never expires.

The step `replay` replays one change that was a dead letter, at any time after the changes around it.

    1. Read the row by key, and the keys that earlier attempts noted. Stop if an earlier attempt has ended.
    2. Note every key that the row has, had, and will have, and open the change. Both are durable before the step writes
       the row.
    3. Write under the version seen, and drop no pending key: a batch that never committed may have written the row. An
       older row becomes the image of the change. A newer row only gets the columns that later changes did not send.
       Refused: again from 2, with the row that the refusal returned.

The step finds no roots and publishes nothing: the driver settles the change that it opens like every other.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import declared_row, filled_image, image_of, refuse_stray, version_of
from processor.engine.plan.step import OVERSIZED, RowKeys, Step
from processor.engine.protocol.segments import OpenChange, open_change, read_changes, write_changes
from processor.values.dead_letters import column_of, mark_of
from processor.values.record import Change, Record, Rejected
from registry.model import DROPPED, KeptLetter, LetterPosition
from statestore import keys
from statestore.items import Image, JoinKey, Row, key_of_item, written_row
from statestore.keys import Key
from statestore.store import Item, Refused, TooLarge, Write
from statestore.table import TTL
from statestore.writes import leaves_room, merge_image, write_note

PARTITION = keys.progress_partition("REPLAYS")
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


def kept_letter(rejected: Rejected, at: float) -> KeptLetter:
    """A dead letter as the registry accounts for it. `at`: when a job refused it, in seconds since 1970."""
    return KeptLetter(
        place=letter_position(rejected.record),
        mark=mark_of(rejected),
        code=rejected.code,
        column=column_of(rejected.reason),
        entity=rejected.entity,
        at=at,
    )


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
    return drop_at(letter_position(record), who=who, why=why, at=at)


def drop_at(place: LetterPosition, *, who: str, why: str, at: datetime) -> Write:
    """As `drop`, by the position of the record."""
    values = {"outcome": DROPPED, "who": who, "why": why, "at": at.isoformat(timespec="seconds")}
    return write_note(note_key(place), values, remove=("rows", TTL))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedChange:
    """How a replay ended, and the change that it opened, if any. `row`: the row as it is in the table now, None where an
    earlier attempt had ended the replay. `reason`: why the step refused the change."""

    outcome: Literal["applied", "superseded", "refused"]
    opened: OpenChange | None
    row: Row | None = None
    reason: str = ""

    @property
    def row_keys(self) -> RowKeys | None:
        """The row and its former keys."""
        return (self.row, self.opened.former) if self.row is not None and self.opened is not None else None


def replay(change: Change, plan: EntityPlan, *, note: Key, opens: Key, expires_at: int) -> Step[ReplayedChange]:
    """Replays `change`. `note`: the key of the item that remembers the replay; `opens`: the key of the durable item for
    the change that it opens. `expires_at`: when DynamoDB may drop a delete marker, and the note, in seconds since 1970."""
    sk = keys.encode(change.key)
    if sk is None:
        raise ValueError(f"a {change.entity} without a key reached the table")
    key, version = plan.key(sk), version_of(change)
    stored, noted = yield (key, note)
    if has_ended(noted):
        return ReplayedChange(outcome="superseded", opened=None)
    former = noted_keys(noted)
    opened = None
    while True:
        seen = declared_row(stored, plan) if stored is not None else None
        if refused := refuse_stray(change, seen):
            return ReplayedChange(outcome="refused", opened=opened, reason=refused.reason)
        image: Image | None
        if seen is None or seen.version < version:
            image = image_of(change, plan, key, seen, expires_at)._replace(replayed=True)
            row = written_row(image, seen)
        elif (fills := filled_image(change, plan, seen)) is None:
            image, row = None, seen
        else:
            image = fills._replace(replayed=True)
            row = written_row(image, seen)
        is_own = seen is not None and seen.version == version  # an earlier attempt wrote it, and the answer was lost
        if image is None and not (former or is_own):
            return ReplayedChange(outcome="superseded", opened=opened)
        if seen is not None:
            former |= seen.keys() | {(p.slot, p.key) for p in seen.pending}
        opened = open_change(change.entity, row, former - row.keys())
        yield (note_keys(note, opened, expires_at), write_changes(opens, [opened]))
        if image is None:
            return ReplayedChange(outcome="superseded", opened=opened, row=row)
        write = merge_image(image, seen)
        if not leaves_room(image, write):
            return ReplayedChange(outcome="refused", opened=opened, reason=OVERSIZED)
        (outcome,) = yield (write,)
        match outcome:
            case TooLarge():
                return ReplayedChange(outcome="refused", opened=opened, reason=OVERSIZED)
            case Refused(current):
                stored, former = current, former | row.keys()
            case _:
                return ReplayedChange(
                    outcome="applied" if image.version == version else "superseded", opened=opened, row=row
                )
