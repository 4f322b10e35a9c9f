"""What flows from the source to the table: records, and what decoding makes of each.

Values of a row are canonical per declared type: int -> int; string -> str; float, decimal -> Decimal (a float's shortest
decimal form); bool -> bool; date -> `YYYY-MM-DD`; timestamp -> RFC 3339 in UTC with `Z` and no trailing zeros in the fraction;
json -> as parsed (numbers int or Decimal); `T[]` -> list of such values; null -> None. Undeclared columns are as parsed.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

Value = Any
"""str | int | Decimal | bool | None, or lists and maps of these (json, arrays, undeclared columns)."""


class Unavailable(enum.Enum):
    """The type of `UNAVAILABLE`: a value that the source did not send because it did not change (PostgreSQL's TOAST)."""

    UNAVAILABLE = "unavailable"


UNAVAILABLE: Final = Unavailable.UNAVAILABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One Kafka record as it was read. `timestamp` in milliseconds; `epoch`: of its topic incarnation, partition and offset."""

    topic: str
    partition: int
    offset: int
    epoch: int = 0
    timestamp: int = 0
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Change(NamedTuple):
    """One change of one row: `row` is the whole new image (values may be UNAVAILABLE), None for a delete. `since`: of columns
    that an earlier change filled, (epoch, offset) of the one that brought the value."""

    entity: str
    key: tuple[Value, ...]
    row: Mapping[str, Value] | None
    record: Record
    since: Mapping[str, tuple[int, int]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that breaks its contract: a dead letter with its reason."""

    record: Record
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A record that is no change of a row: a control (transaction, heartbeat, truncate without rows), or of an unknown topic."""

    record: Record
    why: Literal["control", "unknown topic"]


Decoded = Change | Rejected | Ignored
