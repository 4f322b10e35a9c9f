"""The values that flow: records from the source, the result of decoding each, and messages for Kafka topics.

Values of a row are canonical per declared type: int -> int; string -> str; float, decimal -> Decimal (a float's shortest
decimal form); bool -> bool; date -> `YYYY-MM-DD`; timestamp -> RFC 3339 in UTC with `Z` and no trailing zeros in the fraction;
json -> as parsed (numbers int or Decimal); `T[]` -> list of such values; null -> None. Undeclared columns stay as parsed.

What Debezium says of transactions, where the connector has `provide.transaction.metadata=true`:

    a record       "transaction": {"id": "760:24322744", "total_order": 3, "data_collection_order": 2}
    flattened      "__transaction_id": "760:24322744", "__transaction_data_collection_order": 2
    transaction    {"status": "END", "id": "760:24323472", "event_count": 4,
    topic           "data_collections": [{"data_collection": "public.users", "event_count": 4}]}

Records of a snapshot name no transaction, and an end counts no tombstones. Nothing here raises for what a record says.
"""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final, Literal, NamedTuple, Protocol

from processor.values.entity import DecimalForm
from processor.values.reasons import ReasonCode

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


class SourceTransaction(NamedTuple):
    """The transaction of a record. `collection`: its table, as the end of the transaction names it. `order`: the place of the
    record among those of this table in the transaction, from 1."""

    id: str
    collection: str
    order: int


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

    def __str__(self) -> str:
        return f"{self.parts}, of {self.size:,} bytes"


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
    """A message for a Kafka topic; `value` None is a tombstone. `partition`: -1 for the one of its key."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int = -1


_MURMUR: Final = 0x5BD1E995
_BITS: Final = 0xFFFFFFFF


def partition_of_key(key: bytes, partitions: int) -> int:
    """The partition that the default partitioner of Java's clients gives a key: murmur2 of the key, without its sign
    (github.com/apache/kafka: Utils.murmur2, BuiltInPartitioner, read on 2026-11-27)."""
    length = len(key)
    found = 0x9747B28C ^ length
    whole = length & ~3
    for at in range(0, whole, 4):
        mixed = int.from_bytes(key[at : at + 4], "little") * _MURMUR & _BITS
        found = (found * _MURMUR & _BITS) ^ ((mixed ^ mixed >> 24) * _MURMUR & _BITS)
    if whole < length:
        found = (found ^ int.from_bytes(key[whole:], "little")) * _MURMUR & _BITS
    found = (found ^ found >> 13) * _MURMUR & _BITS
    return ((found ^ found >> 15) & 0x7FFFFFFF) % partitions


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


_POSTGRES_ID: Final = re.compile(r"([0-9]+):[0-9]+")
"""Postgres puts the position of each record behind the number of the transaction: only the number names it."""
TABLE_PLACE: Final = ("db", "schema", "table")
"""The words of Debezium's `source` that name the table of a record."""


class TransactionEnd(NamedTuple):
    """The end of a transaction. `counts`: how many records of each table it has; `time`: Kafka's, in seconds since 1970, infinite
    where it is not known."""

    id: str
    counts: Mapping[str, int]
    time: float = inf


class TransactionFeed(Protocol):
    """The ends of transactions, as their topics bring them."""

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        """The next ends in a topic, at most some thousand; empty where the topic has no more now. `since`: Kafka's time of the
        oldest record whose transaction has no end yet, in seconds since 1970; an earlier one than before may repeat ends. Never
        raises."""

    def close(self) -> None:
        """Ends the connections of the feed."""


class NoTransactionFeed:
    """The feed of a job that reads no transaction topic."""

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        return []

    def close(self) -> None:
        return None


def read_transaction_end(payload: Any) -> TransactionEnd | None:
    """The end in the value of a record of the transaction topic. None: the value is no end."""
    if type(payload) is not dict or payload.get("status") != "END":
        return None
    name, collections = _transaction_id(payload.get("id")), payload.get("data_collections")
    if not name or type(collections) not in (list, type(None)):
        return None
    counts: dict[str, int] = {}
    for one in collections or ():
        if (
            type(one) is not dict
            or type(one.get("data_collection")) is not str
            or not _is_count(one.get("event_count"))
        ):
            return None
        counts[one["data_collection"]] = one["event_count"]
    return TransactionEnd(name, counts)


def named_transaction(name: Any, order: Any, source: Mapping[str, Any]) -> SourceTransaction | None:
    """The transaction of a record: its id, the place of the record in it, and Debezium's `source`. None: they name none."""
    known, collection = _transaction_id(name), _collection(source)
    return SourceTransaction(known, collection, order) if known and collection and _is_count(order) else None


def _transaction_id(name: Any) -> str:
    """The id that all records of a transaction and its end share; empty where there is none."""
    if type(name) is not str:
        return ""
    found = _POSTGRES_ID.fullmatch(name)
    return found[1] if found else name


def _collection(source: Mapping[str, Any]) -> str:
    """The table, as ends name it: with its schema in Postgres, with its database in MariaDB and MySQL."""
    place = TABLE_PLACE[1:] if source.get("connector") == "postgresql" else TABLE_PLACE
    names = [name for part in place if type(name := source.get(part)) is str and name]
    return ".".join(names) if source.get("table") else ""


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0
