"""Writes dead letters as messages, and reads them. A message has the record's own bytes; its headers name the source and the
reason. Where the topic takes no message of that size, the message keeps a part of the bytes, and the size and hash of all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import chain

from processor.records.message import Message
from processor.records.record import CutRecord, Record, Rejected

HEADER_PREFIX = "statestore.reject."
REASON_CHARACTERS = 300
"""The reason of a cut dead letter ends here."""
SMALLEST_LIMIT = 4096
"""Every cut dead letter fits into so many bytes: its headers name a topic (at most 249 bytes), a reason, and some numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter of the dead letter topic. `kept_since`: when the topic got it, in seconds since 1970."""

    rejected: Rejected
    kept_since: float


def reject_message(rejected: Rejected, topic: str, limit: int | None = None) -> Message:
    """The message that keeps a refused record in the dead letter topic. `limit`: the most bytes of a message there. A larger
    message keeps only the beginning of its value, and if need be no headers and only the beginning of its key."""
    record = rejected.record
    facts = _facts(rejected)
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


def _headers(record: Record) -> list[tuple[bytes, bytes | None]]:
    return [(name.encode(), value) for name, value in record.headers]


def _facts(rejected: Rejected) -> dict[str, str]:
    record = rejected.record
    return {
        "reason": rejected.reason,
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "epoch": str(record.epoch),
        "timestamp": str(record.timestamp),
    }


def _message(topic: str, record: Record, facts: Mapping[str, str]) -> Message:
    headers = (*record.headers, *((HEADER_PREFIX + name, text.encode()) for name, text in facts.items()))
    return Message(topic=topic, key=record.key, value=record.value, headers=headers)


def rejected_record(message: Message) -> Rejected:
    """The refused record that a message keeps, or the part of it, with its reason. Raises KeyError or ValueError for a message
    that is no dead letter."""
    facts = {
        name[len(HEADER_PREFIX) :]: (text or b"").decode()
        for name, text in message.headers
        if name.startswith(HEADER_PREFIX)
    }
    record = Record(
        topic=facts["topic"],
        partition=_natural(facts["partition"]),
        offset=_natural(facts["offset"]),
        epoch=_natural(facts["epoch"]),
        timestamp=int(facts["timestamp"]),
        key=message.key,
        value=message.value,
        headers=tuple(header for header in message.headers if not header[0].startswith(HEADER_PREFIX)),
    )
    cut = None
    if "cut" in facts:
        cut = CutRecord(parts=facts["cut"], size=int(facts["size"]), sha256=facts["sha256"])
    return Rejected(record=record, reason=facts["reason"], cut=cut)


def _natural(text: str) -> int:
    """The number of a position. Raises ValueError for text that is not one."""
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(f"{text[:40]!r} is not a position")
    return int(text)


def read_dead_letters(records: Iterable[Record], foreign: list[Record] | None = None) -> list[DeadLetter]:
    """The dead letters among the records of their topic, in the order of their source positions. Each comes once, with its
    earliest time. Records that are no dead letters are left out, and added to `foreign`."""
    found: dict[tuple[str, int, int, int], DeadLetter] = {}
    for message in records:
        try:
            rejected = rejected_record(
                Message(topic=message.topic, key=message.key, value=message.value, headers=message.headers)
            )
        except (KeyError, ValueError):  # another program wrote to the topic
            if foreign is not None:
                foreign.append(message)
            continue
        source = rejected.record
        position = (source.topic, source.epoch, source.partition, source.offset)
        if position not in found or message.timestamp / 1000 < found[position].kept_since:
            found[position] = DeadLetter(rejected=rejected, kept_since=message.timestamp / 1000)
    return [found[position] for position in sorted(found)]
