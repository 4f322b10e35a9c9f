"""The imaginary source database: five tables, and the records that each change of a row writes.

Promises: deterministic; `tables` is not computed from `records`, so a test can compare a reader of the records with `tables`.
Does not: decide what changes; the events (`processor.demo.github`) and `processor.demo.scripted_changes` decide.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from processor.demo.demo_tables import (
    DEMO_TABLES,
    HEARTBEAT_TOPIC,
    SOURCE_NAME,
    TRANSACTION_TOPIC,
    Commit,
    DemoRow,
    DemoTable,
    RecordedLine,
    change_lines,
    recorded_line,
)


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
