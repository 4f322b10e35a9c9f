"""How each kind of envelope says the same changes of one table. A new kind adds its row to `SAMPLES` and passes test_kinds.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
SOURCE = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "item"}
OTHER = {**SOURCE, "table": "other"}
FLAT_SOURCE = {f"__source_{name}": text for name, text in SOURCE.items()}


@dataclass(frozen=True, kw_only=True)
class Samples:
    """The values of records of one kind. None: the kind does not say it."""

    def insert(self, row: Row) -> Any:
        """A new row."""
        return dict(row)

    def snapshot(self, row: Row) -> Any:
        """A row that the source had before the stream."""
        return self.insert(row)

    def update(self, before: Row, after: Row) -> Any:
        return self.insert(after)

    def delete(self, row: Row) -> Any:
        return None

    def truncate(self) -> Any:
        """The source empties the table."""
        return None

    def of_other_table(self, row: Row) -> Any:
        """A row of the table `other`."""
        return None

    def in_transaction(self, row: Row) -> Any:
        """A row as the second of the table in the transaction 760."""
        return None

    def controls(self) -> tuple[Any, ...]:
        """Messages that change no row."""
        return ()

    @property
    def shows_former_keys(self) -> bool:
        """Whether an update shows the key that the row had before."""
        return False


class Debezium(Samples):
    def _change(self, op: str, before: Row | None, after: Row | None, source: Row = SOURCE) -> dict[str, Any]:
        return {"before": before, "after": after, "source": source, "transaction": None, "op": op, "ts_ms": 1}

    def insert(self, row: Row) -> Any:
        return self._change("c", None, row)

    def snapshot(self, row: Row) -> Any:
        return self._change("r", None, row, {**SOURCE, "snapshot": "true"})

    def update(self, before: Row, after: Row) -> Any:
        return self._change("u", before, after)

    def delete(self, row: Row) -> Any:
        return self._change("d", row, None)

    def truncate(self) -> Any:
        return self._change("t", None, None)

    def of_other_table(self, row: Row) -> Any:
        return self._change("c", None, row, OTHER)

    def in_transaction(self, row: Row) -> Any:
        block = {"id": "760:24322744", "total_order": 3, "data_collection_order": 2}
        return {**self.insert(row), "transaction": block}

    def controls(self) -> tuple[Any, ...]:
        return (
            {"ts_ms": 1},
            {"op": "m", "source": SOURCE, "message": {"prefix": "p", "content": "YQ=="}},
            {"status": "END", "id": "1:2", "event_count": 1, "data_collections": [], "ts_ms": 1},
            {"source": SOURCE, "databaseName": "shop", "ddl": "CREATE TABLE", "tableChanges": []},
        )

    @property
    def shows_former_keys(self) -> bool:
        return True


class Flattened(Samples):
    def _row(self, row: Row, op: str, deleted: str = "false") -> dict[str, Any]:
        return {**row, **FLAT_SOURCE, "__op": op, "__deleted": deleted}

    def insert(self, row: Row) -> Any:
        return self._row(row, "c")

    def snapshot(self, row: Row) -> Any:
        return {**self._row(row, "r"), "__snapshot": "true"}

    def update(self, before: Row, after: Row) -> Any:
        return self._row(after, "u")

    def delete(self, row: Row) -> Any:
        return self._row(row, "d", "true")

    def truncate(self) -> Any:
        return self._row({}, "t")

    def of_other_table(self, row: Row) -> Any:
        return {**self.insert(row), "__source_table": "other"}

    def in_transaction(self, row: Row) -> Any:
        return {**self.insert(row), "__transaction_id": "760:24322744", "__transaction_data_collection_order": 2}

    def controls(self) -> tuple[Any, ...]:
        return ({"ts_ms": 1}, self._row({}, "m"))


SAMPLES: dict[str, Samples] = {"debezium": Debezium(), "flattened": Flattened(), "plain": Samples()}
