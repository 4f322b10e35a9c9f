"""The shapes in which a change of a row is written: Debezium's envelope, its flattened form, the plain row.

    with a schema   {"schema": {...}, "payload": one of the following}     Kafka Connect's JsonConverter, key and value
    envelope        {"before": ..., "after": ..., "op": "u", "source": ...}
    flattened       {"id": 1, ..., "__deleted": "false", "__op": "u"}      ExtractNewRecordState
    plain           {"id": 1, ...}
    null            a delete in all of them

The kind is recognised record by record, unless the entity pins it. A flattened record without any of Debezium's own
members looks plain and is read so; the one difference is that the bytes of a decimal are refused: there, pin the
format. Does not look at columns' values.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from processor.model.change import Value
from processor.model.entity import Entity
from processor.model.unexpected import describe
from processor.model.values import DEBEZIUM, PLAIN, Reading

Schemas = Mapping[str, Mapping[str, Any]]
"""Column -> what Kafka Connect's schema says of it."""

_PLACEHOLDER: Final = "__debezium_unavailable_value"
PLACEHOLDERS: Final = frozenset({_PLACEHOLDER, "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="})
"""What stands as text for a value that did not change and was not read."""
_CODES: Final = list(_PLACEHOLDER.encode())
_METADATA: Final = frozenset(
    {"__deleted", "__op", "__table", "__db", "__schema", "__lsn", "__txId", "__name", "__connector", "__snapshot"}
    | {"__ts_ms", "__ts_us", "__ts_ns", "__source_ts_ms", "__source_ts_us", "__source_ts_ns", "__source_lsn"}
)
_MARKS: Final = _METADATA | {"op", "data_collections", "tableChanges", "ddl", "ts_ms"}
_UNITS: Final[Mapping[str, Reading]] = {
    "io.debezium.time.Timestamp": Reading(unit="ms"),
    "io.debezium.time.MicroTimestamp": Reading(unit="us"),
    "io.debezium.time.NanoTimestamp": Reading(unit="ns"),
    "org.apache.kafka.connect.data.Timestamp": Reading(unit="ms"),
    "io.debezium.data.Json": Reading(text="json"),
}


class Image(NamedTuple):
    """What a record says of its row. `row`: the new image, or of a delete what is known of the old one. `schemas` None:
    the record came without a schema, and `reading` says how its text is to be read."""

    row: Mapping[str, Value]
    deleted: bool = False
    schemas: Schemas | None = None
    reading: Reading = PLAIN


def unwrap(value: Value, entity: Entity) -> tuple[Value, Any]:
    """The value without Kafka Connect's envelope, and its schema (None without)."""
    if type(value) is dict and len(value) == 2 and "payload" in value and "schema" in value:
        schema = value["schema"]
        if (schema is None or type(schema) is dict) and not {"schema", "payload"} <= entity.columns.keys():
            return value["payload"], schema
    return value, None


def read_image(value: Value, entity: Entity) -> Image | None:
    """The image in a record's value; None for what changes no row: truncate, heartbeat, transaction, DDL, message.

    Raises ValueError for a value that has none of the shapes, or not the pinned one.
    """
    payload, schema = unwrap(value, entity)
    if payload is None:
        return Image(row={}, deleted=True, reading=PLAIN if entity.format == "plain" else DEBEZIUM)
    if type(payload) is not dict:
        raise ValueError(f"expected a row as an object, found {describe(payload)}")
    pinned = entity.format
    if pinned == "plain" or (pinned is None and _MARKS.isdisjoint(payload)):
        return Image(payload, False, _fields(schema))
    if _is_control(payload, entity):
        return None
    if pinned == "debezium" or (pinned is None and _is_envelope(payload, entity)):
        return _of_envelope(payload, schema)
    if pinned == "flattened" or not payload.keys().isdisjoint(_METADATA - entity.columns.keys()):
        return _of_flattened(payload, schema, entity)
    return Image(row=payload, schemas=_fields(schema))


def row_value(row: Mapping[str, Value], entity: Entity) -> Mapping[str, Value]:
    """A new image of a row as the value of a record, in the format that the entity is pinned to, else plain."""
    return {"before": None, "after": row, "op": "c"} if entity.format == "debezium" else row


def reading(schemas: Schemas, column: str) -> Reading:
    """How the values of a column are to be read, by its schema (of an array: by that of its elements)."""
    schema = schemas.get(column, {})
    if schema.get("type") == "array" and isinstance(schema.get("items"), dict):
        schema = schema["items"]
    name = schema.get("name")
    if name == "org.apache.kafka.connect.data.Decimal":
        return Reading(text="bytes", scale=_scale(schema.get("parameters")))
    return _UNITS.get(name, PLAIN) if isinstance(name, str) else PLAIN


def key_schemas(schema: Any, key: tuple[str, ...]) -> Schemas | None:
    """The schemas of the key's columns: of a struct its fields, else that of the one column."""
    if schema is None:
        return None
    if isinstance(schema, dict) and schema.get("type") != "struct":
        return dict.fromkeys(key, schema)
    return _fields(schema)


def is_unavailable(value: Value) -> bool:
    """Whether the value is Debezium's placeholder for one that did not change and was not read: as text, as bytes in
    base64, as an array of texts or of integers, or as a map."""
    if type(value) is str:
        return value in PLACEHOLDERS
    if type(value) is list:
        return value == [_PLACEHOLDER] or value == _CODES
    return type(value) is dict and value == {_PLACEHOLDER: _PLACEHOLDER}


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


def _of_envelope(payload: Mapping[str, Value], schema: Any) -> Image | None:
    op = payload.get("op")
    if op in ("t", "m"):
        return None
    if op not in ("c", "u", "r", "d"):
        raise ValueError(f"expected a Debezium envelope with op c, u, r, d, t or m, found {describe(op)}")
    side = "before" if op == "d" else "after"
    row = payload.get(side)
    if row is None and op == "d":
        row = {}
    if type(row) is not dict:
        raise ValueError(f"expected a row as an object in {side!r}, found {describe(row)}")
    schemas = _fields((_fields(schema) or {}).get(side))
    return Image(row=row, deleted=op == "d", schemas=schemas, reading=DEBEZIUM)


def _of_flattened(payload: Mapping[str, Value], schema: Any, entity: Entity) -> Image | None:
    op, deleted = payload.get("__op"), payload.get("__deleted")
    if op in ("t", "m"):
        return None
    row = {name: value for name, value in payload.items() if name[:2] != "__" or name in entity.columns}
    gone = deleted in ("true", True) or (deleted is None and op == "d")
    return Image(row=row, deleted=gone, schemas=_fields(schema), reading=DEBEZIUM)


def _fields(schema: Any) -> dict[str, Mapping[str, Any]] | None:
    if not isinstance(schema, dict) or not isinstance(schema.get("fields"), list):
        return None
    fields = (field for field in schema["fields"] if isinstance(field, dict))
    return {field["field"]: field for field in fields if isinstance(field.get("field"), str)}


def _scale(parameters: Any) -> int:
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    return int(scale) if isinstance(scale, str) and re.fullmatch(r"-?[0-9]{1,3}", scale) else 0
