"""Writes dead letters as messages, and reads them. A message has the record's own bytes; its headers name the source, the
reason, and the job that refused it. Where the topic takes no message of that size, the message keeps a part of the bytes, and
the size and hash of all.

A repair from the source is a dead letter: it has no refused record, but the source's row in place of a stored one that differs.
Its position is its own: epoch 0, which no topic has, and a number. It names the version of the stored row that it repairs. The
replay writes directly behind that version, and only over it. So it overtakes no newer record of the stream, and every later
record is newer. Where there is no stored row, the repair is older than every record. A truncate that comes between the comparison
and such a repair may leave a row, which the next comparison finds.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import Final, NamedTuple

from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.reasons import ReasonCode, known_code
from processor.values.record import CutRecord, Message, Record, Rejected, Value

Headers = tuple[tuple[str, bytes | None], ...]
HEADER_PREFIX = "statestore.reject."
FIRST_FACT = f"{HEADER_PREFIX}reason"
REASON_CHARACTERS = 300
"""The reason of a cut dead letter ends here."""
SMALLEST_LIMIT = 4096
"""Every cut dead letter fits into this many bytes: its headers name a topic (at most 249 bytes), a reason, and some numbers."""


class RefusedBy(NamedTuple):
    """The job that refused a record: the release of statestore, and the version of the registry."""

    release: str
    registry_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter of the dead letter topic. `kept_since`: when the topic got it first; `last_seen`: when a job refused it
    last, both in seconds since 1970. `refused_by`: the job that did, None for a letter of a release that did not name itself.
    `refused_again`: the reason of the last replay that refused it, without values of the record. `former`: earlier epochs in
    which a job refused the same record."""

    rejected: Rejected
    kept_since: float
    last_seen: float = 0.0
    refused_by: RefusedBy | None = None
    refused_again: str = ""
    former: tuple[int, ...] = ()

    @property
    def place(self) -> tuple[str, int, int, int]:
        """The topic, epoch, partition and offset of the record."""
        record = self.rejected.record
        return record.topic, record.epoch, record.partition, record.offset


def reject_message(
    rejected: Rejected, topic: str, limit: int | None = None, refused_by: RefusedBy | None = None
) -> Message:
    """The message that keeps a refused record in the dead letter topic. `limit`: the most bytes of a message there. A larger
    message keeps only the beginning of its value, and if need be no headers and only the beginning of its key."""
    record = rejected.record
    facts = _facts(rejected, refused_by)
    message = _message(topic, record, facts)
    if limit is None or message_bytes(message) <= limit:
        return message
    size = sum(len(part or b"") for part in (record.key, record.value, *chain.from_iterable(_headers(record))))
    facts |= {"reason": facts["reason"][:REASON_CHARACTERS], "size": str(size), "sha256": record_hash(record)}
    bare = replace(record, value=record.value and b"")
    for parts, kept in (
        ("value", bare),
        ("value, headers", replace(bare, headers=())),
        ("value, headers, key", replace(bare, headers=(), key=record.key and b"")),
    ):
        message = _message(topic, kept, facts | {"cut": parts})
        room = limit - message_bytes(message)
        if room >= 0:
            break
    if kept.key != record.key:
        return message._replace(key=record.key and record.key[: max(room, 0)])
    return message._replace(value=record.value and record.value[:room])


def message_bytes(message: Message) -> int:
    """The most bytes that a message takes in a topic: as the only record of an uncompressed batch (61 bytes of its own)."""
    headers = sum(len(name.encode()) + len(value or b"") + 10 for name, value in message.headers)
    return 61 + 36 + len(message.key or b"") + len(message.value or b"") + headers


def record_hash(record: Record) -> str:
    """The SHA-256 of a record's key, value and headers, each with its length in 8 bytes (-1 for null) before it."""
    hashed = sha256()
    for part in (record.key, record.value, *chain.from_iterable(_headers(record))):
        hashed.update((-1 if part is None else len(part)).to_bytes(8, "big", signed=True))
        hashed.update(part or b"")
    return hashed.hexdigest()


class LetterGroup(NamedTuple):
    """The dead letters of a topic for one reason. `column`: that the reason names; empty where it names none."""

    topic: str
    code: str
    column: str

    def __str__(self) -> str:
        return f"{self.code} at {self.column}" if self.column else self.code


def letter_group(rejected: Rejected) -> LetterGroup:
    """The group of a refused record."""
    return LetterGroup(rejected.record.topic, rejected.code, column_of(rejected.reason))


_COLUMN: Final = re.compile(r"(?:column|key part) '([^']{1,200})'")


def column_of(reason: str) -> str:
    """The declared column that a reason names; empty where it names none."""
    found = _COLUMN.search(reason)
    return found[1] if found else ""


def mark_of(rejected: Rejected) -> str:
    """Tells the records apart that had one topic, partition and offset: a topic may be created again. A record has the same mark
    each time that a job refuses it, in whatever epoch. Tells nothing of the values."""
    whole = rejected.cut.sha256 if rejected.cut else record_hash(rejected.record)
    return sha256(f"{rejected.record.timestamp} {whole}".encode()).hexdigest()[:16]


def _headers(record: Record) -> list[tuple[bytes, bytes | None]]:
    return [(name.encode(), value) for name, value in record.headers]


def _facts(rejected: Rejected, refused_by: RefusedBy | None) -> dict[str, str]:
    record = rejected.record
    facts = {
        "reason": rejected.reason,
        "code": rejected.code,
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "epoch": str(record.epoch),
        "timestamp": str(record.timestamp),
    }
    if rejected.entity:
        facts["entity"] = rejected.entity
    if refused_by is not None:
        facts |= {"release": refused_by.release, "registry_version": str(refused_by.registry_version)}
    return facts


def _message(topic: str, record: Record, facts: Mapping[str, str]) -> Message:
    headers = (*record.headers, *((HEADER_PREFIX + name, text.encode()) for name, text in facts.items()))
    return Message(topic=topic, key=record.key, value=record.value, headers=headers)


def rejected_record(message: Message) -> Rejected:
    """The refused record that a message keeps, or the part of it, with its reason. Raises KeyError or ValueError for a message
    that is no dead letter."""
    headers, facts = _split_headers(message)
    record = Record(
        topic=facts["topic"],
        partition=_natural(facts["partition"]),
        offset=_natural(facts["offset"]),
        epoch=_natural(facts["epoch"]),
        timestamp=int(facts["timestamp"]),
        key=message.key,
        value=message.value,
        headers=headers,
    )
    cut = None
    if "cut" in facts:
        cut = CutRecord(parts=facts["cut"], size=int(facts["size"]), sha256=facts["sha256"])
    return Rejected(
        record=record,
        reason=facts["reason"],
        code=known_code(facts.get("code", "")),
        entity=facts.get("entity", ""),
        cut=cut,
    )


def _refused_by(message: Message) -> RefusedBy | None:
    _, facts = _split_headers(message)
    if "release" not in facts or "registry_version" not in facts:
        return None
    return RefusedBy(facts["release"], _natural(facts["registry_version"]))


def _split_headers(message: Message) -> tuple[Headers, dict[str, str]]:
    """The headers of the record, and the facts that follow them. The reason is the first fact; a record that was a dead letter
    before, and came again, has such headers of its own. Raises KeyError for a message without a reason."""
    names = [name for name, _ in message.headers]
    if FIRST_FACT not in names:
        raise KeyError(FIRST_FACT)
    first = len(names) - 1 - names[::-1].index(FIRST_FACT)
    facts = {name.removeprefix(HEADER_PREFIX): (text or b"").decode() for name, text in message.headers[first:]}
    return message.headers[:first], facts


def _natural(text: str) -> int:
    """The number of a position. Raises ValueError for text that is not one."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(f"{text[:40]!r} is not a position")
    return int(text)


def read_dead_letters(records: Iterable[Record], foreign: list[Record] | None = None) -> list[DeadLetter]:
    """The dead letters among the records of their topic, in the order of their source positions. Each comes once, as it was
    refused last, with its earliest and its latest time. Records that are no dead letters are left out, and added to `foreign`.

    A record is one letter, however often a job refuses it: a batch that begins again writes its letters again, and a rebuild of
    the registry reads all records in a new epoch. A topic that was created again has other records at the same offsets."""
    found: dict[tuple[str, int, int], list[DeadLetter]] = {}
    for kept in records:
        message = Message(topic=kept.topic, key=kept.key, value=kept.value, headers=kept.headers)
        try:
            rejected, refused_by = rejected_record(message), _refused_by(message)
        except (KeyError, ValueError):  # another program wrote to the topic
            if foreign is not None:
                foreign.append(kept)
            continue
        source, at = rejected.record, kept.timestamp / 1000
        letter = DeadLetter(rejected=rejected, kept_since=at, last_seen=at, refused_by=refused_by)
        others = found.setdefault((source.topic, source.partition, source.offset), [])
        before = next((one for one in others if _is_same(one, letter)), None)
        if before is not None:
            others.remove(before)
            letter = _merged(before, letter)
        others.append(letter)
    letters = [letter for some in found.values() for letter in some]
    return sorted(letters, key=lambda letter: letter.place)


def _is_same(one: DeadLetter, other: DeadLetter) -> bool:
    """Whether two letters of one topic, partition and offset keep the same record."""
    return one.place == other.place or mark_of(one.rejected) == mark_of(other.rejected)


def _merged(before: DeadLetter, letter: DeadLetter) -> DeadLetter:
    """The letter of a record that a job refused twice: in its last epoch, as it was refused last there."""
    epochs = {before.rejected.record.epoch, letter.rejected.record.epoch, *before.former}
    last = max(letter, before, key=lambda one: (one.rejected.record.epoch, one.last_seen))
    return replace(
        last,
        kept_since=min(letter.kept_since, before.kept_since),
        former=tuple(sorted(epochs - {last.rejected.record.epoch})),
    )


REPAIR: Final[ReasonCode] = "source-differs"
SEEN: Final = "statestore.repair.seen"
"""The header with the version of the stored row; empty where there is none."""


def repair_record(
    entity: Entity, key: Mapping[str, Value], row: Mapping[str, Value] | None, seen: str, number: int
) -> Record:
    """The record of a repair. `row`: None deletes; `seen`: the version of the stored row. `number`: in microseconds since 1970,
    no other repair's."""
    return Record(
        topic=entity.topic,
        partition=0,
        offset=number,
        timestamp=number // 1000,
        key=canonical_json.encode(dict(key)),
        value=None if row is None else canonical_json.encode(dict(row)),
        headers=((SEEN, seen.encode()),),
    )


def seen_version(record: Record) -> str:
    """The version of the stored row that a repair compared; empty where there was none."""
    return (dict(record.headers).get(SEEN) or b"").decode()
