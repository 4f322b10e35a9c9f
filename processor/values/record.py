"""The values that flow: records from the source, the result of decoding each, and messages for Kafka topics.

Values of a row are canonical per declared type: int -> int; string -> str; float, decimal -> Decimal (a float's shortest
decimal form); bool -> bool; date -> `YYYY-MM-DD`; timestamp -> RFC 3339 in UTC with `Z` and no trailing zeros in the fraction;
json -> as parsed (numbers int or Decimal); `T[]` -> list of such values; null -> None. Undeclared columns stay as parsed.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from processor.values.entity import DecimalForm
from processor.values.reasons import ReasonCode
from processor.values.source_transaction import SourceTransaction

Value = Any
"""str | int | Decimal | bool | None, or lists and maps of these (json, arrays, undeclared columns)."""


class Unavailable(enum.Enum):
    """The type of `UNAVAILABLE`: a value that the source did not send because it did not change (PostgreSQL's TOAST)."""

    UNAVAILABLE = "unavailable"


UNAVAILABLE: Final = Unavailable.UNAVAILABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One Kafka record, unchanged. `timestamp`: in milliseconds. `epoch`: the epoch of its topic incarnation, partition and
    offset."""

    topic: str
    partition: int
    offset: int
    epoch: int = 0
    timestamp: int = 0
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class AbsentColumns(NamedTuple):
    """The declared columns that a record lacks. `sure`: its table, or its schema, lacks them too; else a plain row may have left
    them out."""

    columns: tuple[str, ...]
    sure: bool


class Change(NamedTuple):
    """One change of one row. `row`: the whole new image (values may be UNAVAILABLE), None for a delete. `since`: for each
    column that an earlier change filled, the (epoch, offset) of that change. `shows`: the forms of decimals that the record
    shows, of columns whose form is not settled. `seen`: of a repair from the source, the version of the stored row that differs,
    empty where there is none; None for every other change. `transaction`: of the record, where its entity has such records.
    `absent`: the declared columns that the record lacks, if any. `former`: the key that a row had before, where the record
    moves it to another key. `others`: the record's changes of other rows, the deletes of former keys too. `part`: the place
    among the changes of the record. Each has the record's version, and the record counts by the first. `nulled`: the columns
    with a value that their type cannot hold, which is null in `row`."""

    entity: str
    key: tuple[Value, ...]
    row: Mapping[str, Value] | None
    record: Record
    since: Mapping[str, tuple[int, int]] = {}
    shows: Mapping[str, DecimalForm] = {}
    seen: str | None = None
    transaction: SourceTransaction | None = None
    absent: AbsentColumns | None = None
    former: tuple[Value, ...] | None = None
    others: "tuple[Change, ...]" = ()
    part: int = 0
    nulled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CutRecord:
    """What a dead letter knows of a record that it keeps in part. `parts`: the parts that it cut. `size`: the bytes of key, value
    and headers before; `sha256`: their hash (`processor.values.dead_letters.record_hash`)."""

    parts: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that breaks its contract: a dead letter, with the reason. `code`: the kind of the reason; `entity`: the entity of
    the record, if known. `plain`: the reason without values of the record, where it differs; `cut`: set where `record` is only a
    part of it."""

    record: Record
    reason: str
    code: ReasonCode = "other"
    entity: str = ""
    plain: str = ""
    cut: CutRecord | None = None
    transaction: SourceTransaction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ignored:
    """A record that changes no row: a control (transaction, heartbeat), a truncate of an entity that ignores it, or a record of
    an unknown topic, or of another table than the entity's `table`."""

    record: Record
    why: Literal["control", "truncate", "unknown topic", "other table"]
    transaction: SourceTransaction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """A record that says that the source emptied the table of an entity. The entity refuses it, or the job deletes the rows."""

    record: Record
    entity: str
    transaction: SourceTransaction | None = None


Decoded = Change | Rejected | Ignored | Truncated


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
