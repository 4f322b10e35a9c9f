"""The messages of AWS DMS, whose target is Kafka or Kinesis.

a change       {"data": {...}, "metadata": {"record-type": "data", "operation": "update", "schema-name": ..., "table-name": ...}}
               "load" is a row from before the stream; "before-image" has the old row of an update, by BeforeImageSettings
truncate       {"control": ..., "metadata": {"record-type": "control", "operation": "truncate-table", ...}}
control        the same with "create-table", "drop-table", "add-column" and others; DMS also writes those of its own tables

The Kafka key is the partition key: text of the primary key, the name of the table, or another column, so the row alone has the
key. By default a load uses the primary key, and a later change the table: in a topic of several partitions, the changes of a row
are then in two of them. A delete has null outside the key. DMS leaves out null columns, unless IncludeNullAndEmpty is true.
Truth arrives as text. A record names its transaction (`transaction-id`), but no message ends one.

Read, not captured, on 2026-11-27: https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.Kafka.html,
https://docs.aws.amazon.com/dms/latest/userguide/CHAP_Target.Kinesis.html, and the messages that the tests of
https://github.com/crate/commons-codec keep. The page says `TruncateTable` and `DropTable` where messages have `drop-table`, so
case and hyphens do not count.
"""

from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.kind import Envelope, Images, Payload, RowImage, place_names
from processor.values.reasons import unexpected
from processor.values.record import Value
from processor.values.values import ANY_TEXT

BEFORE: Final = "before-image"
_ROWS: Final = ("load", "read", "insert", "create", "update", "delete")


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    metadata = payload.get("metadata")
    if type(metadata) is not dict or "metadata" in entity.columns:
        return None
    kind, operation = metadata.get("record-type"), metadata.get("operation")
    if type(kind) is not str or type(operation) is not str:
        return None
    return "control" if kind == "control" and not _is_truncate(operation) else "row"


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    metadata = payload.get("metadata")
    if type(metadata) is not dict:
        raise unexpected("the metadata of AWS DMS as an object in 'metadata'", metadata, code="row-missing")
    kind, operation = metadata.get("record-type"), metadata.get("operation")
    if kind == "control" and type(operation) is str and not _is_truncate(operation):
        return "control"
    if kind == "control" and type(operation) is str:
        return "truncate"
    if kind != "data":
        raise unexpected("a record-type data or control of AWS DMS", kind, code="unknown-op")
    if operation not in _ROWS:
        raise unexpected(
            f"an operation {', '.join(_ROWS[:-1])} or {_ROWS[-1]} of AWS DMS", operation, code="unknown-op"
        )
    row, before = payload.get("data"), payload.get(BEFORE)
    if type(row) is not dict:
        raise unexpected("a row as an object in 'data'", row, code="row-missing")
    former = before if operation == "update" and type(before) is dict else None
    return RowImage(row, operation == "delete", None, ANY_TEXT, former, keys="none")


def _is_truncate(operation: str) -> bool:
    return operation.lower().replace("-", "") == "truncatetable"


def _tables(payload: Payload) -> tuple[str, ...]:
    metadata = payload.get("metadata")
    if type(metadata) is not dict or "record-type" not in metadata:
        return ()
    return place_names(metadata.get("table-name"), metadata.get("schema-name"))


def _key_columns(payload: Payload) -> tuple[str, ...]:
    found: Value = payload.get("control")
    for step in ("table-def", "primary-key"):
        found = found.get(step) if type(found) is dict else None
    return tuple(found) if type(found) is list and all(type(name) is str for name in found) else ()


def _partitioned_by(payload: Payload) -> str:
    metadata = payload.get("metadata")
    said = (
        metadata.get("partition-key-type") if type(metadata) is dict and metadata.get("record-type") == "data" else ""
    )
    return said if type(said) is str else ""


def _wrap(row: Payload, table: str) -> Value:
    schema, _, name = table.rpartition(".")
    place = {"schema-name": schema, "table-name": name}
    return {"data": row, "metadata": {"record-type": "data", "operation": "insert", **place}}


DMS: Final = Envelope(
    name="dms",
    system="AWS DMS",
    wraps=True,
    members=frozenset({"metadata"}),
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=ANY_TEXT,
    tables=_tables,
    key_columns=_key_columns,
    partitioned_by=_partitioned_by,
    rows=("data", BEFORE),
    operation="metadata.operation",
    sample='{"data": {"id": 1}, "metadata": {"record-type": "data", "operation": "insert"}}',
    deletes="`operation`: `delete`",
    transactions="none",
)
