"""Finds the document that a topic has for a key, among the last messages of the topic: a page never reads a whole topic."""

from typing import Any, Final, NamedTuple

from processor.errors import KafkaError
from processor.kafka.reader import read_sample
from processor.records import canonical_json
from processor.settings.settings import Settings

MOST_MESSAGES: Final = 2_000


class PublishedMessage(NamedTuple):
    """The last message of a key. `found`: whether it is among those that were read; `value`: its document, None for a tombstone;
    `why`: the reason where it was not found."""

    found: bool
    value: Any = None
    why: str = ""


def published_message(settings: Settings, topic: str, key: bytes) -> PublishedMessage:
    """The last message of a key, among the last MOST_MESSAGES of its topic."""
    if not settings.bootstrap_servers:
        return PublishedMessage(False, why="give --bootstrap-servers, and the console looks for it in the topic")
    try:
        records = read_sample(settings.bootstrap_servers, dict(settings.kafka), topic, MOST_MESSAGES)
    except KafkaError as error:
        return PublishedMessage(False, why=str(error))
    mine = [record for record in records if record.key == key]
    if not mine:
        return PublishedMessage(False, why=f"it is not among the last {MOST_MESSAGES:,} messages of topic {topic}")
    value = mine[-1].value
    try:
        return PublishedMessage(True, None if value is None else canonical_json.loads(value))
    except ValueError:
        return PublishedMessage(False, why=f"topic {topic} has it in another format than JSON")
