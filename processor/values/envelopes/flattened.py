"""The row as Debezium's transform ExtractNewRecordState writes it, with members of `add.fields` and of its delete handling.

    {"id": 1, ..., "__deleted": "false", "__op": "u", "__source_ts_ms": ...}

A flattened record without any of Debezium's own members is read as a plain row. The only difference: a plain row refuses the
bytes of a decimal, so an author pins the format of such a topic.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.debezium import WITHOUT_ROW
from processor.values.envelopes.delete_flags import is_flagged, is_truncate, unsaid_delete
from processor.values.envelopes.kind import (
    Envelope,
    Images,
    Payload,
    RowImage,
    field_schemas,
    place_of,
    table_names,
)
from processor.values.record import Value
from processor.values.source_transaction import PLACE, SourceTransaction, named_transaction
from processor.values.values import DEBEZIUM

_MEMBERS: Final = frozenset(
    {"__deleted", "__op", "__table", "__db", "__schema", "__lsn", "__txId", "__name", "__connector", "__snapshot"}
    | {"__ts_ms", "__ts_us", "__ts_ns", "__source_ts_ms", "__source_ts_us", "__source_ts_ns", "__source_lsn"}
    | {"__transaction_id", "__transaction_data_collection_order"}
)
_MORE_MEMBERS: Final = frozenset({
    "__file", "__pos", "__row", "__gtid", "__server_id", "__thread", "__query", "__scn", "__commit_scn",
    "__change_lsn", "__commit_lsn", "__event_serial_no", "__lcr_position", "__rs_id", "__ssn", "__redo_thread", "__user_name",
    "__xmin", "__sequence", "__collection", "__ord", "__lsid", "__txnNumber", "__wallTime", "__version",
    "__transaction_total_order",
})  # fmt: skip
"""More members that `add.fields` writes; they alone do not show that a record is flattened."""


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    return None if entity.columns.keys() >= _MEMBERS.intersection(payload) else "row"


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    op, deleted = payload.get("__op"), payload.get("__deleted")
    if op == "t" or op == "m":
        return WITHOUT_ROW[op]
    if is_truncate(payload, entity.deleted):
        return "truncate"
    row = {name: value for name, value in payload.items() if name in entity.columns or not _is_metadata(name)}
    gone = deleted in ("true", True) or (deleted is None and op == "d") or is_flagged(payload, entity.deleted)
    unsaid = None if gone or deleted in ("false", False) or op in ("c", "u", "r") else unsaid_delete(payload, entity)
    return RowImage(row, gone, field_schemas(schema), DEBEZIUM, refusal=unsaid)


def _is_metadata(name: str) -> bool:
    """Whether the transform put the member into the row. Rows have own columns with such a start: `__v` of Mongoose."""
    known = name in _MEMBERS or name in _MORE_MEMBERS
    return name[:2] == "__" and (known or name.startswith(("__source_", "__transaction_")))


def _tables(payload: Payload) -> tuple[str, ...]:
    return table_names(_source(payload))


def _transaction(payload: Payload) -> SourceTransaction | None:
    order = payload.get("__transaction_data_collection_order")
    return None if order is None else named_transaction(payload.get("__transaction_id"), order, _source(payload))


def _source(payload: Payload) -> Mapping[str, Any]:
    """The members of `source` that the transform puts into a row: as `source.table`, or `table`."""
    return {name: payload.get(f"__source_{name}", payload.get(f"__{name}")) for name in ("connector", *PLACE)}


def _wrap(row: Payload, table: str) -> Value:
    place = {f"__{name}": text for name, text in place_of(table).items() if text}
    return {**row, **place}


FLATTENED: Final = Envelope(
    name="flattened",
    system="Debezium's ExtractNewRecordState",
    wraps=False,
    members=_MEMBERS,
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=DEBEZIUM,
    tables=_tables,
    transaction=_transaction,
    sample='{"id": 1, "__deleted": "false"}',
    deletes="`__deleted`, else `__op`, else [`deleted`](#deleted)",
    transactions="`__transaction_id`, by `add.fields`",
)
