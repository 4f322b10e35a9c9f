"""The messages of Maxwell's daemon.

a change       {"type": "insert", "database": ..., "table": ..., "ts": 1, "xid": 230, "commit": true, "data": {...}}
               "update" has the former values of the changed columns in "old"; "delete" has the old row in "data"
a snapshot     "bootstrap-insert"
control        "bootstrap-start" and "bootstrap-complete"; "table-alter", "database-create" and others

Maxwell tells of no truncate. Enum is its word, set an array of words, bytes are base64, spatial values are WKT. The Kafka key has
names like `pk.id`, or is an array, so the row alone has the key. `xid` names the transaction and `commit` its last row, but no
message says how many rows of each table it has, and its rows may be in several partitions: the job takes no transaction.

Captured: Maxwell 1.22.6 over MariaDB 10.11 (tests/data/maxwell). Read, on 2026-11-27: the keys and partitions, at
https://maxwells-daemon.io/producers/.
"""

from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.kind import Envelope, Images, Payload, RowImage
from processor.values.reasons import unexpected
from processor.values.record import Value
from processor.values.values import PLAIN

_ROWS: Final = ("insert", "update", "delete", "bootstrap-insert")
_CONTROLS: Final = ("bootstrap-start", "bootstrap-complete")
_DDL: Final = ("table-", "database-")
_MEMBERS: Final = ("database", "type")


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    kind, database = payload.get("type"), payload.get("database")
    if type(kind) is not str or type(database) is not str or all(name in entity.columns for name in _MEMBERS):
        return None
    if kind.startswith(_DDL) and not {"def", "sql", "old"}.isdisjoint(payload):
        return "control"
    if "data" not in payload or "table" not in payload or not {"isDdl", "commitTs"}.isdisjoint(payload):
        return None
    return "control" if kind in _CONTROLS else "row" if kind in _ROWS else None


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    kind, row, old = payload.get("type"), payload.get("data"), payload.get("old")
    if kind not in _ROWS:
        raise unexpected(
            f"a message of Maxwell with type {', '.join(_ROWS[:-1])} or {_ROWS[-1]}", kind, code="unknown-op"
        )
    if type(row) is not dict:
        raise unexpected("a row as an object in 'data'", row, code="row-missing")
    former = old if kind == "update" and type(old) is dict else None
    return RowImage(row, kind == "delete", None, PLAIN, former, keys="none")


def _tables(payload: Payload) -> tuple[str, ...]:
    table, database = payload.get("table"), payload.get("database")
    if payload.get("type") not in _ROWS or type(table) is not str or not table or type(database) is not str:
        return ()
    return (table, f"{database}.{table}") if database else (table,)


def _key_columns(payload: Payload) -> tuple[str, ...]:
    names = payload.get("primary_key_columns")
    return tuple(name for name in names if type(name) is str) if type(names) is list else ()


def _wrap(row: Payload, table: str) -> Value:
    database, _, name = table.rpartition(".")
    return {"database": database, "table": name, "type": "insert", "data": row}


MAXWELL: Final = Envelope(
    name="maxwell",
    system="Maxwell",
    wraps=True,
    members=frozenset({"database"}),
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=PLAIN,
    tables=_tables,
    key_columns=_key_columns,
    operation="type",
    rows=("data", "old"),
    sample='{"database": "d", "table": "t", "type": "insert", "data": {"id": 1}}',
    deletes="`type`: `delete`",
    transactions="none",
)
