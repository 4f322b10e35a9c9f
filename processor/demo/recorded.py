"""The demo's five tables and the forms in which their rows travel: recorded lines (FORMATS.md) of Debezium's kind.

`user`, `repo` and `pull_request` come as envelopes without schema, `payment_info` flattened (ExtractNewRecordState),
`star` as plain rows.
Promises: pure; every topic has `PARTITIONS` partitions and a key stays in one of them.
Does not: know what a table holds; `processor.demo.source` does.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

Row = dict[str, Any]
Line = dict[str, Any]
"""One recorded Kafka record: topic, partition, key, value, timestamp."""

SERVER = "github"
PARTITIONS = 2
TRANSACTIONS = f"{SERVER}.transaction"
HEARTBEATS = f"__debezium-heartbeat.{SERVER}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Where a change stands in the source's log; `at` in milliseconds; `transaction` if its bounds are told."""

    lsn: int
    tx: int
    at: int
    snapshot: bool = False
    transaction: Mapping[str, Any] | None = None


Write = Callable[["Table", Row, Row | None, str, Commit], list[Any]]
"""The values that a change leaves in its topic, from key, new row (None: deleted), op (`r c u d`) and commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table of the source; its topic is called after it."""

    name: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    write: Write

    def key_of(self, row: Row) -> tuple[Any, ...]:
        """The primary key of `row`."""
        return tuple(row[column] for column in self.key)


def envelope(table: Table, key: Row, row: Row | None, op: str, commit: Commit) -> list[Any]:
    """Debezium's envelope: `before` is null but for a delete, which holds the key only; a tombstone follows it."""
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


def flattened(table: Table, key: Row, row: Row | None, op: str, commit: Commit) -> list[Any]:
    """ExtractNewRecordState with rewritten deletes: the row, `__deleted` as text, some of the source."""
    columns = {column: key.get(column) for column in table.columns} if row is None else row
    told = {"__deleted": "true" if row is None else "false", "__op": op, "__table": table.name, "__lsn": commit.lsn}
    return [{**columns, **told, "__source_ts_ms": commit.at}]


def plain(table: Table, key: Row, row: Row | None, op: str, commit: Commit) -> list[Any]:
    """The row itself; null deletes it."""
    return [row]


def _source(table: Table, commit: Commit) -> Row:
    return {
        "version": "3.6.3.Final",
        "connector": "postgresql",
        "name": SERVER,
        "ts_ms": commit.at,
        "snapshot": "true" if commit.snapshot else "false",
        "db": SERVER,
        "schema": "public",
        "table": table.name,
        "txId": commit.tx,
        "lsn": commit.lsn,
    }


def change(table: Table, key: Sequence[Any], row: Row | None, op: str, commit: Commit) -> list[Line]:
    """The lines that one change of one row leaves in its topic."""
    names = dict(zip(table.key, key, strict=True))
    image = None if row is None else dict(row)
    return [line(table.name, names, value, commit.at) for value in table.write(table, names, image, op, commit)]


def line(topic: str, key: Any, value: Any, timestamp: int) -> Line:
    """One recorded line in the partition of its key; `timestamp` in milliseconds."""
    return {"topic": topic, "partition": partition_of(key), "key": key, "value": value, "timestamp": timestamp}


def partition_of(key: Any) -> int:
    """The partition of a key: stable across runs and machines."""
    text = json.dumps(key, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return crc32(text.encode()) % PARTITIONS


USER = Table(name="user", key=("email",), columns=("id", "email", "username", "registered_at"), write=envelope)
REPO = Table(
    name="repo",
    key=("owner", "name"),
    columns=("owner", "name", "description", "star_count", "fork_count", "created_at", "updated_at"),
    write=envelope,
)
PULL_REQUEST = Table(
    name="pull_request",
    key=("repo", "repo_owner", "index"),
    columns=("repo", "repo_owner", "index", "author", "title", "status", "created_at"),
    write=envelope,
)
STAR = Table(
    name="star",
    key=("username", "repo_name", "repo_owner"),
    columns=("username", "repo_name", "repo_owner", "created_at"),
    write=plain,
)
PAYMENT_INFO = Table(name="payment_info", key=("id",), columns=("id", "user_id", "verified"), write=flattened)

TABLES = (USER, REPO, PULL_REQUEST, STAR, PAYMENT_INFO)
