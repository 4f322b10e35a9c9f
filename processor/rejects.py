"""Dead letters as messages: the record's own bytes, with where it came from and why it was refused in the headers."""

from processor.model.change import Record, Rejected
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
