"""Events of CloudEvents in structured mode, around the envelope of another kind.

of Debezium    {"specversion": "1.0", "id": ..., "source": ..., "type": ..., "iodebeziumop": "c", "iodebeziumtable": "item",
                "data": {"before": ..., "after": ...}}
               "data" may have the envelope of a schema; "iodebeziumtxid" and its like name the transaction; with
               extension.attributes.enable=false, the images and "type" say the operation, and nothing names the table
of others      the same, and "data" is the envelope of another kind, whole
of a row       the same, and "data" is the row: only where the entity pins `cloudevents`, as most other events are no rows

Data as bytes (`data_base64`, or Avro within the event) is a dead letter. The binary mode keeps all but the data in headers: the
value is then of another kind, and needs no word.

Read, not captured, on 2026-11-27: https://debezium.io/documentation/reference/stable/integrations/cloudevents.html, and
https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.canal import CANAL
from processor.values.envelopes.cockroach import COCKROACH
from processor.values.envelopes.debezium import DEBEZIUM
from processor.values.envelopes.dms import DMS
from processor.values.envelopes.flattened import FLATTENED
from processor.values.envelopes.goldengate import GOLDENGATE
from processor.values.envelopes.kind import Envelope, Images, Payload, field_schemas, place_of
from processor.values.envelopes.maxwell import MAXWELL
from processor.values.envelopes.plain import PLAIN
from processor.values.reasons import Mismatch, unexpected
from processor.values.record import Value
from processor.values.source_transaction import PLACE, SourceTransaction
from processor.values.values import DEBEZIUM as DEBEZIUM_TEXT

INSIDE: Final = (DEBEZIUM, DMS, GOLDENGATE, COCKROACH, MAXWELL, CANAL)
"""The kinds that an event may wrap."""
_PREFIX: Final = "iodebezium"
_PIN: Final = "pin `format: cloudevents` if its data is the row of a table, whole"


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    if not ("specversion" in payload and "type" in payload and "source" in payload):
        return None
    return None if {"specversion", "type", "source"} <= entity.columns.keys() else "row"


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    if "specversion" not in payload:
        raise unexpected("an event of CloudEvents with specversion", None, code="row-missing")
    if "data_base64" in payload:
        raise unexpected("data as JSON in 'data'", "data_base64", code="row-missing")
    data, inner = _data(payload, schema)
    if type(data) is not dict:
        raise unexpected("data as an object in 'data'", data, code="row-missing")
    for kind in INSIDE:
        seen = kind.recognise(data, entity)
        if seen is not None:
            return "control" if seen == "control" else kind.read(data, inner, entity)
    if FLATTENED.recognise(data, entity):
        return FLATTENED.read(data, inner, entity)
    if entity.format != "cloudevents":
        raise Mismatch(
            f"an event of CloudEvents, whose data is no envelope that statestore reads: {_PIN}", "other-format"
        )
    return PLAIN.read(data, inner, entity)


def _data(payload: Payload, schema: Any) -> tuple[Value, Any]:
    """The envelope inside, and its schema. Debezium's converter leaves `op` and `source` to attributes of the event."""
    data, inner = payload.get("data"), (field_schemas(schema) or {}).get("data")
    if type(data) is dict and data.keys() <= {"schema", "payload"} and "payload" in data:
        data, inner = data["payload"], data.get("schema")
    known = data if type(data) is dict and not data.keys().isdisjoint(("before", "after")) else None
    operation = payload.get(f"{_PREFIX}op")
    if operation is None and known and any(known.values()) and str(payload.get("type")).startswith("io.debezium."):
        operation = "d" if known.get("after") is None else "u"  # extension.attributes.enable=false
    if operation is None or (type(data) is dict and "op" in data):
        return data, inner
    if known is None and operation in ("c", "r", "u", "d"):
        return data, inner
    return {**(known or {}), "op": operation, "source": _source(payload), "transaction": _block(payload)}, inner


def _source(payload: Payload) -> dict[str, Any]:
    return {name: payload.get(_PREFIX + name) for name in ("connector", "collection", *PLACE)}


def _block(payload: Payload) -> Mapping[str, Any] | None:
    name = payload.get(f"{_PREFIX}txid")
    order = payload.get(f"{_PREFIX}txdatacollectionorder")
    number = int(order) if type(order) is str and order.isdecimal() and len(order) < 19 else order
    return None if name is None else {"id": name, "data_collection_order": number}


def _envelope(payload: Payload) -> Payload:
    data = _data(payload, None)[0] if "specversion" in payload else None
    return data if type(data) is dict else {}


def _tables(payload: Payload) -> tuple[str, ...]:
    data = _envelope(payload)
    return next(filter(None, (kind.tables(data) for kind in (*INSIDE, FLATTENED))), ()) if data else ()


def _transaction(payload: Payload) -> SourceTransaction | None:
    return DEBEZIUM.transaction(_envelope(payload))


def _wrap(row: Payload, table: str) -> Value:
    event = {"specversion": "1.0", "id": "1", "source": "/statestore", "type": "row"}
    place = {f"{_PREFIX}{name}": text for name, text in place_of(table).items() if text}
    return {**event, f"{_PREFIX}op": "c", **place, "data": {"before": None, "after": row}}


CLOUDEVENTS: Final = Envelope(
    name="cloudevents",
    system="CloudEvents",
    wraps=True,
    members=frozenset({"specversion"}),
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=DEBEZIUM_TEXT,
    tables=_tables,
    transaction=_transaction,
    key_columns=lambda payload: next(filter(None, (kind.key_columns(_envelope(payload)) for kind in INSIDE)), ()),
    rows=(
        "data",
        *(f"data.{inner}{side}" for inner in ("", "payload.") for side in ("after", "before", "data", "old")),
    ),
    sample='{"specversion": "1.0", "type": "t", "source": "s", "iodebeziumop": "c", "data": {"after": {"id": 1}}}',
    deletes="that of the kind inside `data`",
    transactions="that of the kind inside `data`",
)
