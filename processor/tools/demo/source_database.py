"""The imaginary source database: five tables, and the recorded lines (docs/formats.md) that each change of a row writes.

Changes of `user`, `repo` and `pull_request` are Debezium envelopes without schema. Changes of `payment_info` are flattened
(ExtractNewRecordState), and those of `star` are plain rows.

Promises: deterministic; every topic has `TOPIC_PARTITIONS` partitions, and a key stays in one of them. `tables` is not computed
from `records`, so a test can compare a reader of the records with `tables`.
Does not: decide what changes; `processor.tools.demo.github` decides.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
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
    """The place of a change in the source's log."""

    lsn: int
    tx: int
    at: int
    """In milliseconds."""
    snapshot: bool = False
    transaction: Mapping[str, Any] | None = None
    """Set inside an explicit transaction."""


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


class SourceDatabase:
    """The database and its log. Before the first update or delete, the log has each insert as a row of a snapshot."""

    def __init__(self) -> None:
        self.records: list[RecordedLine] = []
        self.tables: dict[str, dict[tuple[Any, ...], DemoRow]] = {table.name: {} for table in DEMO_TABLES}
        self._now = 0
        self._lsn = 21_713_520
        self._tx = 734
        self._snapshot = True
        self._open: tuple[str, Counter[str]] | None = None

    @property
    def now(self) -> str:
        """The time of the source's clock as RFC 3339 text."""
        return datetime.fromtimestamp(self._now // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def move_clock(self, until: str) -> None:
        """Moves the clock forward to `until` (RFC 3339). The clock never moves back, although events are not in order of time."""
        self._now = max(self._now, int(datetime.fromisoformat(until).timestamp() * 1000))

    def get(self, table: DemoTable, *key: Any) -> DemoRow | None:
        """The row with the key, or None. Change it through `put` and `update` only."""
        return self.tables[table.name].get(key)

    def put(self, table: DemoTable, row: DemoRow) -> bool:
        """Inserts or replaces a whole row. Returns True for an insert."""
        key = table.key_of(row)
        new = key not in self.tables[table.name]
        self.tables[table.name][key] = {column: row[column] for column in table.columns}
        self._log(table, key, "c" if new else "u")
        return new

    def update(self, table: DemoTable, *key: Any, **columns: Any) -> bool:
        """Changes columns of a row; without columns it writes the same row again. Returns False if there is no such row."""
        row = self.get(table, *key)
        if row is None:
            return False
        self.put(table, {**row, **columns})
        return True

    def delete(self, table: DemoTable, *key: Any) -> bool:
        """Deletes a row. Returns False if there is no such row."""
        if self.tables[table.name].pop(key, None) is None:
            return False
        self._log(table, key, "d")
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Puts the changes of the block into one transaction, and writes its bounds to the transaction topic."""
        self._tx += 1
        identity = f"{self._tx}:{self._lsn}"
        self._write_bound("BEGIN", identity, None)
        changed: Counter[str] = Counter()
        self._open = (identity, changed)
        yield
        self._open = None
        self._write_bound("END", identity, changed)

    def write_heartbeat(self) -> None:
        """Writes a record which shows only that the source is alive."""
        self.records.append(
            recorded_line(HEARTBEAT_TOPIC, {"serverName": SOURCE_NAME}, {"ts_ms": self._now}, self._now)
        )

    def write_broken_record(self, topic: str, key: Any, value: Any) -> None:
        """Writes a record that breaks its contract. It changes no table."""
        self.records.append(recorded_line(topic, key, value, self._now))

    def _log(self, table: DemoTable, key: tuple[Any, ...], op: str) -> None:
        self._snapshot = self._snapshot and op == "c"
        row = self.tables[table.name].get(key)
        self.records += change_lines(table, key, row, "r" if self._snapshot else op, self._commit(table))

    def _commit(self, table: DemoTable) -> Commit:
        if not self._snapshot:
            self._lsn += 168
            self._tx += self._open is None
        transaction: Mapping[str, Any] | None = None
        if self._open is not None:
            identity, changed = self._open
            changed[table.name] += 1
            transaction = {"id": identity, "total_order": changed.total(), "data_collection_order": changed[table.name]}
        return Commit(lsn=self._lsn, tx=self._tx, at=self._now, snapshot=self._snapshot, transaction=transaction)

    def _write_bound(self, status: str, identity: str, changed: Counter[str] | None) -> None:
        tables = changed and [{"data_collection": f"public.{t}", "event_count": n} for t, n in sorted(changed.items())]
        value = {
            "status": status,
            "id": identity,
            "event_count": changed and changed.total(),
            "data_collections": tables,
            "ts_ms": self._now,
        }
        self.records.append(recorded_line(TRANSACTION_TOPIC, {"id": identity}, value, self._now))
