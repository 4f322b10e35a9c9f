"""The messages of CockroachDB's changefeeds in the wrapped envelope.

a change       {"after": {...}, "before": ..., "key": [17], "topic": "orders", "updated": "1795214317000000000.0000000000"}
               only "after" is always there; a delete has null in it
control        {"resolved": "1795214317000000000.0000000000"}

The Kafka key is an array of the primary key in its order: [17]. The value says the key as "key", with the option key_in_value.
An update of the key is a delete and an insert, with a key each. A changefeed sends no truncate and no transaction. Values are
JSON: numbers, RFC 3339, `\\x` with hex digits for bytes. The enriched envelope is Debezium's. A record of "before" and "after"
alone may be Materialize's, so the entity pins `cockroach` there. Not read are the envelopes `row`, `bare` and `key_only`: their
deletes look like rows, or show an array alone.

Read, not captured, on 2026-11-27: https://www.cockroachlabs.com/docs/stable/changefeed-messages.html,
https://www.cockroachlabs.com/docs/stable/changefeed-message-envelopes.html, and the encoder in
https://github.com/cockroachdb/cockroach (pkg/ccl/changefeedccl/encoder_json.go)
"""

from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.kind import Envelope, Images, Payload, RowImage, names_in
from processor.values.reasons import unexpected
from processor.values.record import Value
from processor.values.values import PLAIN as PLAIN_TEXT

_CLOCKS: Final = frozenset({"updated", "mvcc_timestamp"})
_MEMBERS: Final = frozenset({"after", "before", "key", "topic", *_CLOCKS})


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    if len(payload) == 1 and "resolved" in payload:
        return "control" if type(payload["resolved"]) is str and "resolved" not in entity.columns else None
    if "after" not in payload or "after" in entity.columns or not payload.keys() <= _MEMBERS:
        return None
    images = (payload["after"], payload.get("before"))
    if not all(image is None or type(image) is dict for image in images):
        return None
    return None if payload.keys() == {"after", "before"} and entity.format != "cockroach" else "row"


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    if "after" not in payload:
        raise unexpected("an envelope of CockroachDB with 'after'", None, code="row-missing")
    row, before = payload["after"], payload.get("before")
    if row is None:
        return RowImage(_deleted(payload, entity), True, None, PLAIN_TEXT, keys="array")
    if type(row) is not dict:
        raise unexpected("a row as an object in 'after', or null", row, code="row-missing")
    return RowImage(row, False, None, PLAIN_TEXT, before if type(before) is dict else None, keys="array")


def _deleted(payload: Payload, entity: Entity) -> Payload:
    """What a delete shows of its row: the old image, else the key."""
    before, key = payload.get("before"), payload.get("key")
    if type(before) is dict:
        return before
    return dict(zip(entity.key, key, strict=True)) if type(key) is list and len(key) == len(entity.key) else {}


def _tables(payload: Payload) -> tuple[str, ...]:
    """The table in `topic`, by the option topic_in_value: its name, or its full one."""
    return names_in(payload.get("topic")) if "after" in payload else ()


def _wrap(row: Payload, table: str) -> Value:
    return {"after": row, "topic": table} if table else {"after": row}


COCKROACH: Final = Envelope(
    name="cockroach",
    system="CockroachDB",
    wraps=True,
    members=frozenset({"after", "resolved"}),
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=PLAIN_TEXT,
    tables=_tables,
    keys="array",
    rows=("after", "before"),
    operation="after",
    sample='{"after": {"id": 1}, "updated": "1795214317000000000.0000000000"}',
    deletes="`after`: null",
    transactions="none",
)
