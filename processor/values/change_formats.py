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

from processor.values.entity import Entity
from processor.values.foreign.delete_flags import FLAG_MEMBERS, is_flagged, unsaid_delete
from processor.values.foreign.foreign_formats import TRIGGERS, foreign_format, refuse_foreign
from processor.values.framing import SchemedValue
from processor.values.mismatch import SHOWN_CHARACTERS, Mismatch, unexpected
from processor.values.record import Value
from processor.values.schemas.schema_readings import UNKNOWN_REFERENCE, Schemas
from processor.values.values import DEBEZIUM, PLAIN, Reading

_DEBEZIUM_MEMBERS: Final = frozenset(
    {"__deleted", "__op", "__table", "__db", "__schema", "__lsn", "__txId", "__name", "__connector", "__snapshot"}
    | {"__ts_ms", "__ts_us", "__ts_ns", "__source_ts_ms", "__source_ts_us", "__source_ts_ns", "__source_lsn"}
    | {"__transaction_id", "__transaction_data_collection_order"}
)
SHOWN: Final = 5
"""A reason shows at most so many names of members."""
_SOURCE_MEMBERS: Final = frozenset(
    {
        "__file",
        "__pos",
        "__row",
        "__gtid",
        "__server_id",
        "__thread",
        "__query",
        "__scn",
        "__commit_scn",
        "__change_lsn",
    }
    | {
        "__commit_lsn",
        "__event_serial_no",
        "__lcr_position",
        "__rs_id",
        "__ssn",
        "__redo_thread",
        "__user_name",
        "__xmin",
    }
    | {
        "__sequence",
        "__collection",
        "__ord",
        "__lsid",
        "__txnNumber",
        "__wallTime",
        "__version",
        "__transaction_total_order",
    }
)
"""More members that `add.fields` of ExtractNewRecordState writes; they alone do not show that a record is flattened."""
_NOT_PLAIN: Final = (
    _DEBEZIUM_MEMBERS | {"op", "data_collections", "tableChanges", "ddl", "ts_ms"} | TRIGGERS | FLAG_MEMBERS
)


class DebeziumImage(NamedTuple):
    """The row of a record. `row`: the new image; for a delete, the known columns of the old one. `schemas` None: the record
    came without a schema, and its text is read by `reading`. `before`: the old image of an update, where the record has one.
    `refusal`: why nobody may store the row."""

    row: Mapping[str, Value]
    deleted: bool = False
    schemas: Schemas | None = None
    reading: Reading = PLAIN
    before: Mapping[str, Value] | None = None
    refusal: Mismatch | None = None


def unwrap(value: Value, entity: Entity) -> tuple[Value, Any]:
    """The value without Kafka Connect's envelope, and its schema (None without an envelope)."""
    if type(value) is SchemedValue:
        return value.payload, value.schema
    if type(value) is dict and len(value) == 2 and "payload" in value and "schema" in value:
        schema = value["schema"]
        if (schema is None or type(schema) is dict) and not {"schema", "payload"} <= entity.columns.keys():
            return value["payload"], schema
    return value, None


NoImage = Literal["control", "truncate", "other table"]
"""A record without an image of a row. `control`: it changes no row (heartbeat, transaction, DDL, message). `truncate`: the source
emptied the table. `other table`: the entity names its `table`, and the record names another."""


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
    if pinned in (None, "plain") and not entity.deleted and _NOT_PLAIN.isdisjoint(payload):
        return DebeziumImage(payload, False, _field_schemas(schema))
    if pinned == "plain":
        return _read_plain(payload, schema, entity)
    if _is_control(payload, entity):
        return "control"
    is_envelope = _is_envelope(payload, entity)
    if not is_envelope:
        refuse_foreign(payload, entity.columns)
    if pinned == "debezium" or (pinned is None and is_envelope):
        return _read_envelope(payload, schema, entity)
    if pinned == "flattened" or not entity.columns.keys() >= _DEBEZIUM_MEMBERS.intersection(payload):
        return _read_flattened(payload, schema, entity)
    return _read_plain(payload, schema, entity)


def check_row(value: Value, image: DebeziumImage, entity: Entity) -> None:
    """Checks an image that lacks declared columns. Raises Mismatch for an envelope that nobody knows, and for a row without any
    declared column outside the key. A row of its key alone is fine: all its columns are null."""
    row, outside = image.row, [name for name in entity.columns if name not in entity.key]
    others = [name for name in row if name not in entity.columns]
    if row and not others:
        return
    plain, bare = entity.format is None and image.reading is PLAIN, row.keys().isdisjoint(outside)
    inner = _inner_row(row, entity) if plain or bare else ""
    if inner:
        what, cure = "an envelope that statestore does not read", "let a transform write the row alone"
        cure += "" if entity.format == "plain" else ", or pin `format: plain` if the value is a row"
        raise Mismatch(f"{what}, its member {_shown(inner)} has the row: {cure}", "other-format", f"{what}: {cure}")
    if bare:
        raise _bare_row(unwrap(value, entity)[0], outside, others, entity)


def _bare_row(payload: Mapping[str, Value], outside: list[str], others: list[str], entity: Entity) -> Mismatch:
    """The reason why a row without declared columns is none of the entity: of another format, of another table, or unknown."""
    what = f"the row has none of the columns that the entity declares outside its key ({_some(outside)})"
    known, tables = foreign_format(payload, ()), stated_tables(payload)
    unlike = entity.format in ("plain", "flattened") and _is_envelope(payload, entity)
    if known or unlike:
        pinned = f", and entity {entity.name} pins `format: {entity.format}`" if entity.format else ""
        return Mismatch(f"{what}: it is an envelope of {known.name if known else 'Debezium'}{pinned}", "other-format")
    if tables and not entity.table and _own_names(entity).isdisjoint(table.lower() for table in tables):
        cure = "write `table` in the entity, the table whose records count, and the job ignores the others"
        return Mismatch(f"{what}, and its record is of table {_shown(tables[-1])}: {cure}", "other-table")
    cure = "correct `topic` or the columns of the entity, or let a transform write rows"
    only = _some(list(map(_shown, others)))
    return Mismatch(f"{what}, only {only}: {cure}", "other-format", f"{what}: {cure}")


def _shown(name: str) -> str:
    """A name from a record, in one line; quoted where it is no word."""
    text = name if len(name) <= SHOWN_CHARACTERS else f"{name[: SHOWN_CHARACTERS - 1]}…"
    return text if text.replace(".", "_").isidentifier() else repr(text)


def _some(names: list[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "") if names else "none at all"


def _inner_row(row: Mapping[str, Value], entity: Entity) -> str:
    """The undeclared member of a row whose object, or first object of an array, has all declared columns; empty without one."""
    for name, value in row.items():
        inner = value[0] if type(value) is list and value else value
        if type(inner) is dict and name not in entity.columns and entity.columns.keys() <= inner.keys():
            return name
    return ""


def _own_names(entity: Entity) -> frozenset[str]:
    """The names that the table of an entity may have: the entity's, that of `source`, and each end of the topic."""
    parts = entity.topic.split(".")
    ends = (".".join(parts[n:]) for n in range(len(parts)))
    own = (entity.name, entity.source, entity.source.rpartition(".")[2], *ends)
    return frozenset(name.lower() for name in own if name)


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


def stated_tables(payload: Mapping[str, Value]) -> tuple[str, ...]:
    """The names of the table that a record of Debezium states: alone, then with its schema, its database, and both. Empty where
    it states none."""
    source = payload.get("source")
    if type(source) is not dict or type(payload.get("op")) is not str:
        names = ("db", "schema", "table")
        source = {name: payload.get(f"__source_{name}", payload.get(f"__{name}")) for name in names}
    table = source.get("table") or source.get("collection")
    if type(table) is not str or not table:
        return ()
    schema, database = (text if type(text := source.get(name)) is str else "" for name in ("schema", "db"))
    places = ("", schema, database, f"{database}.{schema}" if database and schema else "")
    return tuple(dict.fromkeys(f"{place}.{table}" if place else table for place in places))


def _is_other_table(payload: Mapping[str, Value], entity: Entity) -> bool:
    """Whether the entity names its table, and the record another. A record that names none is of the entity."""
    stated = stated_tables(payload) if entity.table else ()
    return bool(stated) and entity.table not in stated


def _read_plain(payload: Mapping[str, Value], schema: Any, entity: Entity) -> DebeziumImage:
    gone = is_flagged(payload, entity.deleted)
    refusal = None if gone else unsaid_delete(payload, entity)
    return DebeziumImage(payload, gone, _field_schemas(schema), refusal=refusal)


def _read_envelope(payload: Mapping[str, Value], schema: Any, entity: Entity) -> DebeziumImage | NoImage:
    op = payload.get("op")
    if _is_other_table(payload, entity):
        return "other table"
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
    if _is_other_table(payload, entity):
        return "other table"
    if op in ("t", "m"):
        return "truncate" if op == "t" else "control"
    row = {name: value for name, value in payload.items() if name in entity.columns or not _is_metadata(name)}
    gone = deleted in ("true", True) or (deleted is None and op == "d") or is_flagged(payload, entity.deleted)
    unsaid = None if gone or deleted in ("false", False) or op in ("c", "u", "r") else unsaid_delete(payload, entity)
    return DebeziumImage(row, gone, _field_schemas(schema), DEBEZIUM, refusal=unsaid)


def _is_metadata(name: str) -> bool:
    """Whether ExtractNewRecordState put the member into the row. Rows have own columns with such a start: `__v` of Mongoose."""
    known = name in _DEBEZIUM_MEMBERS or name in _SOURCE_MEMBERS
    return name[:2] == "__" and (known or name.startswith(("__source_", "__transaction_")))


def _field_schemas(schema: Any) -> dict[str, Mapping[str, Any]] | None:
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == UNKNOWN_REFERENCE:
        text = f"the schema of the row is $ref {schema.get('name')!r}, which is neither in its document nor a reference of it"
        raise Mismatch(text, "schema-missing")
    if not isinstance(schema.get("fields"), list):
        return None
    fields = (field for field in schema["fields"] if isinstance(field, dict))
    return {field["field"]: field for field in fields if isinstance(field.get("field"), str)}
