"""Dead letters as messages: the record's own bytes, with where it came from and why it was refused in the headers."""

from collections.abc import Iterable

from processor.model.change import Record, Rejected
from processor.model.replays import Letter
from processor.model.step import Message

PREFIX = "statestore.reject."


def reject_message(rejected: Rejected, topic: str) -> Message:
    """The dead letter of a record, for the dead letter topic."""
    record = rejected.record
    facts = {
        "reason": rejected.reason,
        "topic": record.topic,
        "partition": str(record.partition),
        "offset": str(record.offset),
        "epoch": str(record.epoch),
        "timestamp": str(record.timestamp),
    }
    headers = (*record.headers, *((PREFIX + name, text.encode()) for name, text in facts.items()))
    return Message(topic=topic, key=record.key, value=record.value, headers=headers)


def rejected_record(message: Message) -> Rejected:
    """The record that a dead letter keeps, with its reason."""
    facts = {name[len(PREFIX) :]: (text or b"").decode() for name, text in message.headers if name.startswith(PREFIX)}
    record = Record(
        topic=facts["topic"],
        partition=int(facts["partition"]),
        offset=int(facts["offset"]),
        epoch=int(facts["epoch"]),
        timestamp=int(facts["timestamp"]),
        key=message.key,
        value=message.value,
        headers=tuple(header for header in message.headers if not header[0].startswith(PREFIX)),
    )
    return Rejected(record=record, reason=facts["reason"])


def letters(records: Iterable[Record]) -> list[Letter]:
    """The dead letters among the records of their topic, each once, as it was kept first, in the order of their positions."""
    found: dict[tuple[str, int, int, int], Letter] = {}
    for message in records:
        if not any(name == PREFIX + "reason" for name, _ in message.headers):
            continue
        rejected = rejected_record(
            Message(topic=message.topic, key=message.key, value=message.value, headers=message.headers)
        )
        source = rejected.record
        at = (source.topic, source.epoch, source.partition, source.offset)
        if at not in found or message.timestamp / 1000 < found[at].kept:
            found[at] = Letter(rejected=rejected, kept=message.timestamp / 1000)
    return [found[at] for at in sorted(found)]
