"""How each kind of envelope says the same changes of one table. A new kind adds its row to `SAMPLES` and passes test_kinds.py."""

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from processor.values.entity import DeleteFlag

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

    def several(self, *rows: Row) -> Any:
        """Several new rows in one record."""
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

    @property
    def flags(self) -> tuple[DeleteFlag, ...]:
        """`deleted` of the entity. A kind that needs it is never recognised: an entity names it."""
        return ()


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


class Maxwell(Samples):
    def _change(self, kind: str, row: Any, **more: Any) -> dict[str, Any]:
        return {"database": "public", "table": "item", "type": kind, "ts": 1795781366, "data": row, **more}

    def insert(self, row: Row) -> Any:
        return self._change("insert", row, xid=230, commit=True)

    def snapshot(self, row: Row) -> Any:
        return self._change("bootstrap-insert", row)

    def update(self, before: Row, after: Row) -> Any:
        old = {name: value for name, value in before.items() if after.get(name) != value}
        return self._change("update", after, xid=231, xoffset=0, old=old)

    def delete(self, row: Row) -> Any:
        return self._change("delete", row, xid=232, commit=True)

    def of_other_table(self, row: Row) -> Any:
        return {**self.insert(row), "table": "other"}

    def controls(self) -> tuple[Any, ...]:
        ddl = {"database": "public", "table": "item", "ts": 1795781366000, "sql": "alter table item add x int"}
        return (
            self._change("bootstrap-start", {}),
            self._change("bootstrap-complete", {}),
            {**ddl, "type": "table-alter", "old": {"columns": []}, "def": {"columns": []}},
            {"type": "database-create", "database": "public", "charset": "utf8mb4", "sql": "create database public"},
        )

    @property
    def shows_former_keys(self) -> bool:
        return True


class Canal(Samples):
    """The rows as Canal writes them: each value is text, of a type of MySQL."""

    TYPES: ClassVar = {
        "id": "int(11)", "name": "varchar(20)", "big": "bigint(20)", "exact": "decimal(38,0)", "amount": "decimal(12,2)",
        "data": "varbinary(8)", "day": "date", "at": "timestamp(6)", "ms": "bigint", "us": "bigint unsigned",
        "ns": "bigint", "j": "json", "tags": "json", "more": "text",
    }  # fmt: skip

    def _text(self, name: str, value: Any) -> Any:
        if value is None or name == "more":
            return value
        if name == "data":
            return b64decode(value).decode("latin-1")
        if name == "at":
            return value.replace("T", " ").removesuffix("Z")
        return str(value) if type(value) in (int, str) else json.dumps(value)

    def _change(self, kind: str, *rows: Row, **more: Any) -> dict[str, Any]:
        data = [{name: self._text(name, value) for name, value in row.items()} for row in rows]
        types = {
            name: self.TYPES.get(name, "int" if type(value) is int else "text")
            for row in rows
            for name, value in row.items()
        }
        message = {"data": data, "database": "public", "es": 1795780955000, "gtid": "", "id": 3, "isDdl": False}
        message |= {
            "mysqlType": types,
            "old": None,
            "pkNames": ["id"],
            "sql": "",
            "table": "item",
            "ts": 1,
            "type": kind,
        }
        return {**message, **more}

    def insert(self, row: Row) -> Any:
        return self._change("INSERT", row)

    def update(self, before: Row, after: Row) -> Any:
        old = {name: self._text(name, value) for name, value in before.items() if after.get(name) != value}
        return self._change("UPDATE", after, old=[old])

    def delete(self, row: Row) -> Any:
        return self._change("DELETE", row)

    def several(self, *rows: Row) -> Any:
        return self._change("INSERT", *rows)

    def truncate(self) -> Any:
        return self._change("TRUNCATE", isDdl=True, data=None, sql="truncate table item")

    def of_other_table(self, row: Row) -> Any:
        return {**self.insert(row), "table": "other"}

    def controls(self) -> tuple[Any, ...]:
        return (
            self._change("ALTER", isDdl=True, data=None, sql="alter table item add x int"),
            self._change("QUERY", data=None, sql="insert into item values (1)", table="", database=""),
            {
                **self._change("TIDB_WATERMARK", data=None, table="", database=""),
                "_tidb": {"watermarkTs": 429918007904},
            },
            {
                **self._change("QUERY", isDdl=True, data=None, sql="drop database x"),
                "_tidb": {"commitTs": 163963309467},
            },
        )

    @property
    def shows_former_keys(self) -> bool:
        return True


class Dms(Samples):
    def message(self, operation: str, kind: str = "data", table: str = "item", **members: Any) -> dict[str, Any]:
        place = {"partition-key-type": "primary-key", "schema-name": "public", "table-name": table}
        metadata = {"timestamp": "2026-11-20T22:38:37.758449Z", "record-type": kind, "operation": operation, **place}
        return {**members, "metadata": metadata}

    def insert(self, row: Row) -> Any:
        return self.message("insert", data=row)

    def snapshot(self, row: Row) -> Any:
        return self.message("load", data=row)

    def update(self, before: Row, after: Row) -> Any:
        return {**self.message("update", data=after), "before-image": {"id": before["id"]}}

    def delete(self, row: Row) -> Any:
        return self.message("delete", data=dict.fromkeys(row) | {"id": row["id"]})

    def truncate(self) -> Any:
        return self.message("truncate-table", "control", control={})

    def of_other_table(self, row: Row) -> Any:
        return self.message("insert", table="other", data=row)

    def controls(self) -> tuple[Any, ...]:
        return (
            self.message("drop-table", "control", control={}),
            self.message("create-table", "control", control={"table-def": {"columns": {}, "primary-key": ["id"]}}),
            self.message("create-table", "control", table="awsdms_apply_exceptions"),
            self.message("add-column", "control", control={}),
        )

    @property
    def shows_former_keys(self) -> bool:
        return True


class GoldenGate(Samples):
    def message(self, op_type: str, table: str = "public.item", **images: Any) -> dict[str, Any]:
        heads = {"table": table, "op_type": op_type, "op_ts": "2026-11-20 22:38:37.000000", "primary_keys": ["id"]}
        return {**heads, "current_ts": "2026-11-20T22:38:38.312000", "pos": "00000000000000002928", **images}

    def insert(self, row: Row) -> Any:
        return self.message("I", after=row)

    def update(self, before: Row, after: Row) -> Any:
        return self.message("U", before=before, after=after)

    def delete(self, row: Row) -> Any:
        return self.message("D", before={"id": row["id"]})

    def truncate(self) -> Any:
        return self.message("T")

    def of_other_table(self, row: Row) -> Any:
        return self.message("I", "public.other", after=row)

    @property
    def shows_former_keys(self) -> bool:
        return True


class Cockroach(Samples):
    def insert(self, row: Row) -> Any:
        return {"after": dict(row), "topic": "public.item", "updated": "1795214317000000000.0000000000"}

    def update(self, before: Row, after: Row) -> Any:
        return {**self.insert(after), "before": dict(before) | {"id": after["id"]}}

    def delete(self, row: Row) -> Any:
        return {"after": None, "key": [row["id"]], "updated": "1795214317000000000.0000000000"}

    def of_other_table(self, row: Row) -> Any:
        return {**self.insert(row), "topic": "public.other"}

    def controls(self) -> tuple[Any, ...]:
        return ({"resolved": "1795214317000000000.0000000000"},)


class CloudEvents(Debezium):
    """Debezium's converter. The data has the images alone."""

    def _change(self, op: str, before: Row | None, after: Row | None, source: Row = SOURCE) -> dict[str, Any]:
        more = {f"iodebezium{name}": text for name, text in source.items()} | {
            "iodebeziumop": op,
            "iodebeziumtxid": None,
        }
        event = {"id": "name:app;lsn:29274832;txId:565", "source": "/debezium/postgresql/app", "specversion": "1.0"}
        kind = {"type": "io.debezium.connector.postgresql.DataChangeEvent", "datacontenttype": "application/json"}
        return {**event, **kind, **more, "data": {"before": before, "after": after}}

    def in_transaction(self, row: Row) -> Any:
        order = {
            "iodebeziumtxid": "760:24322744",
            "iodebeziumtxtotalorder": "3",
            "iodebeziumtxdatacollectionorder": "2",
        }
        return {**self.insert(row), **order}

    def controls(self) -> tuple[Any, ...]:
        return ({**self._change("m", None, None), "data": {"message": {"prefix": "p", "content": "YQ=="}}},)


class DescribedRow(Samples):
    def insert(self, row: Row) -> Any:
        return {**row, "op_type": "I"}

    def delete(self, row: Row) -> Any:
        return {**row, "op_type": "D"}

    def truncate(self) -> Any:
        return {"op_type": "T"}

    @property
    def flags(self) -> tuple[DeleteFlag, ...]:
        return (DeleteFlag("op_type", ("D",), ("T",)),)


SAMPLES: dict[str, Samples] = {
    "debezium": Debezium(), "dms": Dms(), "goldengate": GoldenGate(), "cockroach": Cockroach(), "cloudevents": CloudEvents(),
    "maxwell": Maxwell(), "canal": Canal(), "flattened": Flattened(), "row": DescribedRow(), "plain": Samples(),
}  # fmt: skip
