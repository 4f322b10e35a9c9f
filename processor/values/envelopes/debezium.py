"""Debezium's envelope, and the messages of its connectors that change no row.

a change       {"before": ..., "after": ..., "op": "u", "source": {...}}
truncate       the same with "op": "t"; "op": "m" is a logical message
control        {"ts_ms": ...}, a heartbeat; {"status": ..., "data_collections": ...}, a transaction;
               {"ddl": ..., "source": ...}, a change of the schema
"""

from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.kind import (
    Envelope,
    Images,
    Payload,
    RowImage,
    field_schemas,
    place_of,
    table_names,
)
from processor.values.reasons import unexpected
from processor.values.record import Value
from processor.values.source_transaction import SourceTransaction, named_transaction
from processor.values.values import DEBEZIUM as DEBEZIUM_TEXT

WITHOUT_ROW: Final[dict[Any, Literal["truncate", "control"]]] = {"t": "truncate", "m": "control"}
"""The operations of Debezium without a row."""


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    if _is_control(payload, entity):
        return "control"
    op = payload.get("op")
    if type(op) is not str or ("op" in entity.columns and "source" not in payload):
        return None
    is_change = "before" in payload or "after" in payload or (op in WITHOUT_ROW and "source" in payload)
    return "row" if is_change else None


def _is_control(payload: Payload, entity: Entity) -> bool:
    if "data_collections" in payload and "status" in payload:
        return "data_collections" not in entity.columns
    if ("tableChanges" in payload or "ddl" in payload) and "source" in payload:
        return entity.columns.keys().isdisjoint(("tableChanges", "ddl"))
    return len(payload) == 1 and "ts_ms" in payload and "ts_ms" not in entity.columns


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    op = payload.get("op")
    if op not in ("c", "u", "r", "d"):
        if op == "t" or op == "m":
            return WITHOUT_ROW[op]
        raise unexpected("a Debezium envelope with op c, u, r, d, t or m", op, code="unknown-op")
    side = "before" if op == "d" else "after"
    row = payload.get(side)
    if row is None and op == "d":
        row = {}
    if type(row) is not dict:
        raise unexpected(f"a row as an object in {side!r}", row, code="row-missing")
    schemas = field_schemas((field_schemas(schema) or {}).get(side))
    before = payload.get("before") if op == "u" else None
    return RowImage(row, op == "d", schemas, DEBEZIUM_TEXT, before if type(before) is dict else None)


def _tables(payload: Payload) -> tuple[str, ...]:
    source = payload.get("source")
    return table_names(source) if type(source) is dict and type(payload.get("op")) is str else ()


def _transaction(payload: Payload) -> SourceTransaction | None:
    block, source = payload.get("transaction"), payload.get("source")
    if type(block) is not dict or type(source) is not dict:
        return None
    return named_transaction(block.get("id"), block.get("data_collection_order"), source)


def _wrap(row: Payload, table: str) -> Value:
    value = {"before": None, "after": row, "op": "c"}
    return value | {"source": place_of(table)} if table else value


DEBEZIUM: Final = Envelope(
    name="debezium",
    system="Debezium",
    wraps=True,
    members=frozenset({"op", "data_collections", "tableChanges", "ddl", "ts_ms"}),
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=DEBEZIUM_TEXT,
    tables=_tables,
    transaction=_transaction,
    operation="op",
    sample='{"before": null, "after": {"id": 1}, "op": "c", "source": {}}',
    deletes="`op`: `d`",
    transactions="`transaction`",
)
