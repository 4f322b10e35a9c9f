"""The imagined source database: five tables, and the records that every change of a row leaves.

Promises: deterministic; `tables` is kept apart from `records`: the truth that a reader of the records can be held to.
Does not: decide what happens; the events (`processor.demo.github`) and the beats (`processor.demo.beats`) do.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from processor.demo.recorded import HEARTBEATS, SERVER, TABLES, TRANSACTIONS, Commit, Line, Row, Table, change, line


class Source:
    """The database and its log. Until the first row is updated or deleted, inserts are told as rows of a snapshot."""

    def __init__(self) -> None:
        self.records: list[Line] = []
        self.tables: dict[str, dict[tuple[Any, ...], Row]] = {table.name: {} for table in TABLES}
        self._now = 0
        self._lsn = 21_713_520
        self._tx = 734
        self._snapshot = True
        self._open: tuple[str, Counter[str]] | None = None

    @property
    def now(self) -> str:
        """The source's clock as RFC 3339 text."""
        return datetime.fromtimestamp(self._now // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def wait(self, until: str) -> None:
        """Moves the clock forward to `until` (RFC 3339), never back: the events' order is not that of their times."""
        self._now = max(self._now, int(datetime.fromisoformat(until).timestamp() * 1000))

    def get(self, table: Table, *key: Any) -> Row | None:
        """The row under `key`, or None; change it through `put` and `update` only."""
        return self.tables[table.name].get(key)

    def put(self, table: Table, row: Row) -> bool:
        """Inserts or replaces a whole row; whether it was not there before."""
        key = table.key_of(row)
        new = key not in self.tables[table.name]
        self.tables[table.name][key] = {column: row[column] for column in table.columns}
        self._log(table, key, "c" if new else "u")
        return new

    def update(self, table: Table, *key: Any, **columns: Any) -> bool:
        """Changes some columns of a row, or none of them: an update all the same; False if there is no such row."""
        row = self.get(table, *key)
        if row is None:
            return False
        self.put(table, {**row, **columns})
        return True

    def delete(self, table: Table, *key: Any) -> bool:
        """Deletes a row; False if there is no such row."""
        if self.tables[table.name].pop(key, None) is None:
            return False
        self._log(table, key, "d")
        return True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Several changes in one transaction, its bounds told in the transaction topic."""
        self._tx += 1
        identity = f"{self._tx}:{self._lsn}"
        self._bound("BEGIN", identity, None)
        changed: Counter[str] = Counter()
        self._open = (identity, changed)
        yield
        self._open = None
        self._bound("END", identity, changed)

    def heartbeat(self) -> None:
        """A record that says only that the source is alive."""
        self.records.append(line(HEARTBEATS, {"serverName": SERVER}, {"ts_ms": self._now}, self._now))

    def dead_letter(self, topic: str, key: Any, value: Any) -> None:
        """A record that breaks its contract; it changes no table."""
        self.records.append(line(topic, key, value, self._now))

    def _log(self, table: Table, key: tuple[Any, ...], op: str) -> None:
        self._snapshot = self._snapshot and op == "c"
        row = self.tables[table.name].get(key)
        self.records += change(table, key, row, "r" if self._snapshot else op, self._commit(table))

    def _commit(self, table: Table) -> Commit:
        if not self._snapshot:
            self._lsn += 168
            self._tx += self._open is None
        told: Mapping[str, Any] | None = None
        if self._open is not None:
            identity, changed = self._open
            changed[table.name] += 1
            told = {"id": identity, "total_order": changed.total(), "data_collection_order": changed[table.name]}
        return Commit(lsn=self._lsn, tx=self._tx, at=self._now, snapshot=self._snapshot, transaction=told)

    def _bound(self, status: str, identity: str, changed: Counter[str] | None) -> None:
        tables = changed and [{"data_collection": f"public.{t}", "event_count": n} for t, n in sorted(changed.items())]
        value = {
            "status": status,
            "id": identity,
            "event_count": changed and changed.total(),
            "data_collections": tables,
            "ts_ms": self._now,
        }
        self.records.append(line(TRANSACTIONS, {"id": identity}, value, self._now))
