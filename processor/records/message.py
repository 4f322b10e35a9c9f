"""Messages for Kafka topics."""

from typing import NamedTuple

MAX_MESSAGE_BYTES = 8 * 1024 * 1024


class Message(NamedTuple):
    """A message for a Kafka topic; `value` None is a tombstone."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
