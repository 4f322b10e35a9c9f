"""Removes the dead letters of a row from their topic.

Kafka removes records only from the beginning of a partition. So the other dead letters go to the end of the topic, with their own
times, and then the broker removes all before them. A crash between the two leaves dead letters twice, and a reader counts each
once. A dead letter of a row is in the topic of the row's entity, and
    a. its Kafka key, its row, or both as decoded have the row's key, or
    b. neither can be decoded, and its bytes hold the text of every part of the key.
A dead letter in place of the row's document has the topic of a product, and the document's key.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from processor.errors import StatestoreError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.plan.root_key import root_of
from processor.progress.replays import end_replay
from processor.records import canonical_json
from processor.records.dead_letters import rejected_record
from processor.records.entity import Entity
from processor.records.message import Message
from processor.records.record import Change, Record, Value
from processor.settings.settings import Settings
from processor.steps.decode import decode
from statestore import keys
from statestore.store import Store

SHORTEST_TEXT = 6
"""Fewer characters of a key are in the bytes of too many other records by chance."""


class RemovedLetters(NamedTuple):
    """The records of the dead letters of a row. `refusal`: why the topic still holds them, else empty."""

    records: tuple[Record, ...] = ()
    refusal: str = ""


def erase_letters(
    settings: Settings, admin: Admin, store: Store, entity: Entity, key: tuple[Value, ...], documents: Collection[str]
) -> RemovedLetters:
    """Removes the dead letters of the row with this key. No replay takes them afterwards, even if the broker keeps them.
    `documents`: the topics of products whose root is the entity."""
    topic = settings.rejects_topic
    ends = admin.ends(topic)
    found = read_topic(settings.bootstrap_servers, dict(settings.kafka), topic)
    messages = [message for message in found if message.offset < ends[message.partition]]
    records = {id(message): _letter(message) for message in messages}
    letters = {
        at: record
        for at, record in records.items()
        if record and (is_letter_of(record, entity, key) or is_document_of(record, entity, key, documents))
    }
    if not letters:
        return RemovedLetters()
    for record in letters.values():
        store.write(end_replay(record, "superseded"))
    try:
        _rewrite(settings, admin, [message for message in messages if id(message) not in letters], ends)
    except StatestoreError as error:
        return RemovedLetters(tuple(letters.values()), str(error))
    return RemovedLetters(tuple(letters.values()))


def is_letter_of(record: Record, entity: Entity, key: tuple[Value, ...]) -> bool:
    """Whether the record of a dead letter is one of the row."""
    if record.topic != entity.topic:
        return False
    forms = (record, replace(record, value=None), replace(record, key=None))
    decoded = [change.key for change in (decode(form, entity) for form in forms) if isinstance(change, Change)]
    return key in decoded or (not decoded and _holds_text(record, key))


def _holds_text(record: Record, key: tuple[Value, ...]) -> bool:
    if not all(isinstance(part, str) for part in key) or sum(map(len, key)) < SHORTEST_TEXT:
        return False
    data = (record.key or b"") + b"\n" + (record.value or b"")
    return all(part.encode() in data or canonical_json.dumps(part)[1:-1].encode() in data for part in key)


def is_document_of(record: Record, entity: Entity, key: tuple[Value, ...], documents: Collection[str]) -> bool:
    """Whether the record of a dead letter takes the place of the row's document."""
    return record.topic in documents and root_of(entity, (record.key or b"").decode(errors="replace")) == keys.encode(
        key
    )


def _letter(message: Record) -> Record | None:
    """The record of the dead letter that a message is, if it is one."""
    kept = Message(topic=message.topic, key=message.key, value=message.value, headers=message.headers)
    try:
        return rejected_record(kept).record
    except (KeyError, ValueError):  # another program wrote to the topic
        return None


def _rewrite(settings: Settings, admin: Admin, kept: Sequence[Record], ends: dict[int, int]) -> None:
    """Sends these messages again, and removes all before `ends`."""
    topic = settings.rejects_topic
    config = admin.configs([topic]).get(topic, {})
    if config.get("message.timestamp.type") == "LogAppendTime":
        raise StatestoreError(
            f"topic {topic} keeps its own times (LogAppendTime), and a copy would make old dead letters new"
        )
    admin.delete_before(topic, admin.begins(topic))  # removes nothing: it asks for the right before the first copy
    outbox = KafkaOutbox(settings.bootstrap_servers, dict(settings.kafka))
    for message in kept:
        copy = Message(topic=topic, key=message.key, value=message.value, headers=message.headers)
        outbox.produce(copy, message.partition, message.timestamp)
    outbox.flush()
    admin.delete_before(topic, ends)
