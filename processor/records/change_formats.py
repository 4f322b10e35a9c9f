"""Reads the formats of a change: Debezium's envelope, its flattened form, the plain row.

    with a schema   {"schema": {...}, "payload": one of the following}     Kafka Connect's JsonConverter, key and value
    envelope        {"before": ..., "after": ..., "op": "u", "source": ...}
    flattened       {"id": 1, ..., "__deleted": "false", "__op": "u"}      ExtractNewRecordState
    plain           {"id": 1, ...}
    null            a delete in all of them

A framed record, whose schema a registry keeps, comes as a `SchemedValue` of one of the last three.

Each record shows its own format, unless the entity pins one. A flattened record without any of Debezium's own members is
read as a plain row. The only difference: a plain row refuses the bytes of a decimal, so pin the format of such a topic. This
module does not check the values of columns.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from processor.records.entity import Entity
from processor.records.framing import SchemedValue
from processor.records.mismatch import unexpected
from processor.records.record import Value
from processor.records.schemas.schema_readings import Schemas
from processor.records.values import DEBEZIUM, PLAIN, Reading

_DEBEZIUM_MEMBERS: Final = frozenset(
    {"__deleted", "__op", "__table", "__db", "__schema", "__lsn", "__txId", "__name", "__connector", "__snapshot"}
    | {"__ts_ms", "__ts_us", "__ts_ns", "__source_ts_ms", "__source_ts_us", "__source_ts_ns", "__source_lsn"}
    | {"__transaction_id", "__transaction_data_collection_order"}
)
_NOT_PLAIN: Final = _DEBEZIUM_MEMBERS | {"op", "data_collections", "tableChanges", "ddl", "ts_ms"}


class DebeziumImage(NamedTuple):
    """The row of a record. `row`: the new image; for a delete, the known columns of the old one. `schemas` None: the record
    came without a schema, and its text is read by `reading`. `before`: the old image of an update, where the record has one."""

    row: Mapping[str, Value]
    deleted: bool = False
    schemas: Schemas | None = None
    reading: Reading = PLAIN
    before: Mapping[str, Value] | None = None


def unwrap(value: Value, entity: Entity) -> tuple[Value, Any]:
    """The value without Kafka Connect's envelope, and its schema (None without an envelope)."""
    if type(value) is SchemedValue:
        return value.payload, value.schema
    if type(value) is dict and len(value) == 2 and "payload" in value and "schema" in value:
        schema = value["schema"]
        if (schema is None or type(schema) is dict) and not {"schema", "payload"} <= entity.columns.keys():
            return value["payload"], schema
    return value, None


NoImage = Literal["control", "truncate"]
"""A record without an image of a row. `control`: it changes no row (heartbeat, transaction, DDL, message). `truncate`: the source
emptied the table."""


def read_image(value: Value, entity: Entity) -> DebeziumImage | NoImage:
    """The image in a record's value.

    Raises ValueError for a value in none of the formats, or not in the pinned one.
    """
    payload, schema = unwrap(value, entity)
    if payload is None:
        return DebeziumImage(row={}, deleted=True, reading=PLAIN if entity.format == "plain" else DEBEZIUM)
    if type(payload) is not dict:
        raise unexpected("a row as an object", payload, code="not-a-row")
    if payload.keys() == {"schema"} and "schema" not in entity.columns:
        raise unexpected("a payload next to the schema", None, code="row-missing")
    pinned = entity.format
    if pinned == "plain" or (pinned is None and _NOT_PLAIN.isdisjoint(payload)):
        return DebeziumImage(payload, False, _field_schemas(schema))
    if _is_control(payload, entity):
        return "control"
    if pinned == "debezium" or (pinned is None and _is_envelope(payload, entity)):
        return _read_envelope(payload, schema)
    if pinned == "flattened" or not payload.keys().isdisjoint(_DEBEZIUM_MEMBERS - entity.columns.keys()):
        return _read_flattened(payload, schema, entity)
    return DebeziumImage(row=payload, schemas=_field_schemas(schema))


def row_value(row: Mapping[str, Value], entity: Entity) -> Mapping[str, Value]:
    """The value of a record with a new image of a row, in the format that the entity pins, else plain."""
    return {"before": None, "after": row, "op": "c"} if entity.format == "debezium" else row


def key_schemas(schema: Any, key: tuple[str, ...]) -> Schemas | None:
    """The schemas of the key's columns: the fields of a struct, else the schema itself for each key column."""
    if schema is None:
        return None
    if isinstance(schema, dict) and schema.get("type") != "struct":
        return dict.fromkeys(key, schema)
    return _field_schemas(schema)


def _is_envelope(payload: Mapping[str, Value], entity: Entity) -> bool:
    if type(payload.get("op")) is not str or ("op" in entity.columns and "source" not in payload):
        return False
    return "before" in payload or "after" in payload or (payload["op"] in ("m", "t") and "source" in payload)


def _is_control(payload: Mapping[str, Value], entity: Entity) -> bool:
    if "data_collections" in payload and "status" in payload:
        return "data_collections" not in entity.columns
    if ("tableChanges" in payload or "ddl" in payload) and "source" in payload:
        return entity.columns.keys().isdisjoint(("tableChanges", "ddl"))
    return payload.keys() == {"ts_ms"} and "ts_ms" not in entity.columns


def _read_envelope(payload: Mapping[str, Value], schema: Any) -> DebeziumImage | NoImage:
    op = payload.get("op")
    if op in ("t", "m"):
        return "truncate" if op == "t" else "control"
    if op not in ("c", "u", "r", "d"):
        raise unexpected("a Debezium envelope with op c, u, r, d, t or m", op, code="unknown-op")
    side = "before" if op == "d" else "after"
    row = payload.get(side)
    if row is None and op == "d":
        row = {}
    if type(row) is not dict:
        raise unexpected(f"a row as an object in {side!r}", row, code="row-missing")
    schemas = _field_schemas((_field_schemas(schema) or {}).get(side))
    before = payload.get("before") if op == "u" else None
    return DebeziumImage(row, op == "d", schemas, DEBEZIUM, before if type(before) is dict else None)


def _read_flattened(payload: Mapping[str, Value], schema: Any, entity: Entity) -> DebeziumImage | NoImage:
    op, deleted = payload.get("__op"), payload.get("__deleted")
    if op in ("t", "m"):
        return "truncate" if op == "t" else "control"
    row = {name: value for name, value in payload.items() if name[:2] != "__" or name in entity.columns}
    gone = deleted in ("true", True) or (deleted is None and op == "d")
    return DebeziumImage(row=row, deleted=gone, schemas=_field_schemas(schema), reading=DEBEZIUM)


def _field_schemas(schema: Any) -> dict[str, Mapping[str, Any]] | None:
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        return None
    fields = (field for field in schema["fields"] if isinstance(field, dict))
    return {field["field"]: field for field in fields if isinstance(field.get("field"), str)}
