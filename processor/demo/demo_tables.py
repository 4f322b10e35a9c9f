"""The demo's five tables, and the recorded lines (docs/formats.md) that a change of their rows makes.

Changes of `user`, `repo` and `pull_request` are Debezium envelopes without schema. Changes of `payment_info` are flattened
(ExtractNewRecordState), and those of `star` are plain rows.
Promises: pure; every topic has `TOPIC_PARTITIONS` partitions, and a key stays in one of them.
Does not: hold rows; `processor.demo.source_database` holds them.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

DemoRow = dict[str, Any]
RecordedLine = dict[str, Any]
"""One recorded Kafka record: topic, partition, key, value, timestamp."""

SOURCE_NAME = "github"
TOPIC_PARTITIONS = 2
TRANSACTION_TOPIC = f"{SOURCE_NAME}.transaction"
HEARTBEAT_TOPIC = f"__debezium-heartbeat.{SOURCE_NAME}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """The place of a change in the source's log; `at` in milliseconds. `transaction` is set inside an explicit transaction."""

    lsn: int
    tx: int
    at: int
    snapshot: bool = False
    transaction: Mapping[str, Any] | None = None


RowWrite = Callable[["DemoTable", DemoRow, DemoRow | None, str, Commit], list[Any]]
"""Returns the values that a change writes to its topic, from key, new row (None: deleted), op (`r c u d`) and commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTable:
    """A table of the source; its topic has the name of the table."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    write: RowWrite

    def key_of(self, row: DemoRow) -> tuple[Any, ...]:
        """The primary key of `row`."""
        return tuple(row[column] for column in self.key)


def write_envelope(table: DemoTable, key: DemoRow, row: DemoRow | None, op: str, commit: Commit) -> list[Any]:
    """Debezium's envelope. `before` is null, except in a delete, which has the key only; a tombstone follows a delete."""
    before = {column: key.get(column) for column in table.columns} if row is None else None
    value = {
        "before": before,
        "after": row,
        "source": _source(table, commit),
        "transaction": commit.transaction,
        "op": op,
        "ts_ms": commit.at + 100,
    }
    return [value, None] if row is None else [value]


def write_flattened(table: DemoTable, key: DemoRow, row: DemoRow | None, op: str, commit: Commit) -> list[Any]:
    """The form of ExtractNewRecordState with rewritten deletes: the row, `__deleted` as text, and some fields of the source."""
    columns = {column: key.get(column) for column in table.columns} if row is None else row
    marks = {"__deleted": "true" if row is None else "false", "__op": op, "__table": table.name, "__lsn": commit.lsn}
    return [{**columns, **marks, "__source_ts_ms": commit.at}]


def write_plain(table: DemoTable, key: DemoRow, row: DemoRow | None, op: str, commit: Commit) -> list[Any]:
    """The row itself; null is a delete."""
    return [row]


def _source(table: DemoTable, commit: Commit) -> DemoRow:
    return {
        "version": "3.6.3.Final",
        "connector": "postgresql",
        "name": SOURCE_NAME,
        "ts_ms": commit.at,
        "snapshot": "true" if commit.snapshot else "false",
        "db": SOURCE_NAME,
        "schema": "public",
        "table": table.name,
        "txId": commit.tx,
        "lsn": commit.lsn,
    }


def change_lines(
    table: DemoTable, key: Sequence[Any], row: DemoRow | None, op: str, commit: Commit
) -> list[RecordedLine]:
    """The lines that one change of one row writes to its topic."""
    names = dict(zip(table.key, key, strict=True))
    image = None if row is None else dict(row)
    return [
        recorded_line(table.name, names, value, commit.at) for value in table.write(table, names, image, op, commit)
    ]


def recorded_line(topic: str, key: Any, value: Any, timestamp: int) -> RecordedLine:
    """One recorded line in the partition of its key. `timestamp` is in milliseconds."""
    return {"topic": topic, "partition": partition_of(key), "key": key, "value": value, "timestamp": timestamp}


def partition_of(key: Any) -> int:
    """The partition of a key, the same on every machine and in every run."""
    text = json.dumps(key, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return crc32(text.encode()) % TOPIC_PARTITIONS


USER_TABLE = DemoTable(
    name="user", key=("email",), columns=("id", "email", "username", "registered_at"), write=write_envelope
)
REPO_TABLE = DemoTable(
    name="repo",
    key=("owner", "name"),
    columns=("owner", "name", "description", "star_count", "fork_count", "created_at", "updated_at"),
    write=write_envelope,
)
PULL_REQUEST_TABLE = DemoTable(
    name="pull_request",
    key=("repo", "repo_owner", "index"),
    columns=("repo", "repo_owner", "index", "author", "title", "status", "created_at"),
    write=write_envelope,
)
STAR_TABLE = DemoTable(
    name="star",
    key=("username", "repo_name", "repo_owner"),
    columns=("username", "repo_name", "repo_owner", "created_at"),
    write=write_plain,
)
PAYMENT_INFO_TABLE = DemoTable(
    name="payment_info", key=("id",), columns=("id", "user_id", "verified"), write=write_flattened
)

DEMO_TABLES = (USER_TABLE, REPO_TABLE, PULL_REQUEST_TABLE, STAR_TABLE, PAYMENT_INFO_TABLE)
