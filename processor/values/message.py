"""Messages for Kafka topics."""

from collections.abc import Mapping
from typing import Final, NamedTuple

MAX_MESSAGE_BYTES = 8 * 1024 * 1024


class Message(NamedTuple):
    """A message for a Kafka topic; `value` None is a tombstone."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


HIGHEST_SEQUENCE = 2**53 - 1
"""The highest sequence of a message that can be ours: a root has at most one message in each batch. JSON of every language holds
it exactly, and a landing in an index has the ten bits above it for itself."""


def read_sequence(header: bytes | None) -> int | None:
    """The sequence in a header `statestore.sequence`; None for a text that no job wrote."""
    if not header or len(header) > 16 or not header.isdigit():
        return None
    sequence = int(header)
    return sequence if 0 < sequence <= HIGHEST_SEQUENCE else None


HEADERS: Final = tuple(
    f"statestore.{name}" for name in ("product", "product_version", "sequence", "registry_version", "batch")
)
"""The headers that a job gives each message."""


def sequence_of(headers: Mapping[str, bytes | None]) -> int | None:
    """The sequence of a message of a product's topic; None for a message that no job wrote."""
    return read_sequence(headers["statestore.sequence"]) if all(map(headers.get, HEADERS)) else None
