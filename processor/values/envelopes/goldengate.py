"""The JSON of Oracle GoldenGate's operation formatter, as its handlers for Kafka and Kinesis write it.

a change       {"table": "S.ORDERS", "op_type": "U", "op_ts": ..., "current_ts": ..., "pos": "00000000000000002928",
                "primary_keys": ["ID"], "tokens": {...}, "before": {...}, "after": {...}}
               I has "after", D has "before", U has both, or "after" alone
truncate       T has no image

By default Extract writes the key and the changed columns of an update, so a column that its `after` lacks did not change. With
includeIsMissingFields such a column is null, and "NAME_isMissing" is true. An update of the key has the old one in "before", and
must have all columns in one of its images.
The Kafka key is text of a template, so the row alone has the key. Old releases write numbers as text, and Extract's own form of
a time is `1995-12-31:15:00:00`. The codes of operations are settings, and others than I, U, D and T are dead letters. A record
names no transaction. The row formatter writes `op_type` into the row: that is `format: row`.

Read, not captured, on 2026-11-27: https://docs.oracle.com/en/middleware/goldengate/big-data/19.1/gadbd/pluggable-formatters.html,
https://docs.oracle.com/en/middleware/goldengate/big-data/21.1/gadbd/operation-type.html,
https://docs.oracle.com/goldengate/c1230/gg-winux/GWURF/compressupdates-nocompressupdates.htm
"""

from typing import Any, Final, Literal

from processor.values.entity import Entity
from processor.values.envelopes.kind import Envelope, Images, Payload, RowImage, names_in
from processor.values.reasons import Mismatch, unexpected
from processor.values.record import Value
from processor.values.values import ANY_TEXT

_MISSING: Final = "_isMissing"


def _recognise(payload: Payload, entity: Entity) -> Literal["row", "control"] | None:
    if type(payload.get("op_type")) is not str or type(payload.get("table")) is not str:
        return None
    if {"op_type", "table"} <= entity.columns.keys():
        return None
    images = [payload[side] for side in ("before", "after") if side in payload]
    if not all(image is None or type(image) is dict for image in images):
        return None
    return "row" if images or (payload["op_type"] == "T" and "pos" in payload) else None


def _read(payload: Payload, schema: Any, entity: Entity) -> Images:
    operation = payload.get("op_type")
    if operation == "T":
        return "truncate"
    if operation not in ("I", "U", "D"):
        raise unexpected("an op_type I, U, D or T of Oracle GoldenGate", operation, code="unknown-op")
    side = "before" if operation == "D" else "after"
    row = payload.get(side)
    if type(row) is not dict:
        raise unexpected(f"a row as an object in {side!r}", row, code="row-missing")
    before = payload.get("before") if operation == "U" else None
    former = _sent(before, entity) if type(before) is dict else None
    sent = _sent(row, entity)
    refusal = None
    if former and any(name in former and str(former[name]) != str(sent.get(name)) for name in entity.key):
        sent = {**former, **sent}  # no stored row has the new key
        refusal = _lacking(sent, entity)
    return RowImage(sent, operation == "D", None, ANY_TEXT, former, refusal, "none", partial=operation == "U")


def _lacking(row: Payload, entity: Entity) -> Mismatch | None:
    """The reason to refuse an update of the key that lacks declared columns."""
    names = ", ".join(name for name in entity.columns if name not in row)
    what = f"the update gives the row another key, and lacks {names}"
    return Mismatch(f"{what}: let Extract write all columns (NOCOMPRESSUPDATES)", "not-sent") if names else None


def _sent(row: Payload, entity: Entity) -> Payload:
    """The columns that the trail has, without the members that say which it lacks."""
    flags = {name for name in row if name.endswith(_MISSING) and name not in entity.columns}
    flags = {name for name in flags if type(row[name]) is bool and name.removesuffix(_MISSING) in row}
    if not flags:
        return row
    lacking = flags.union(name.removesuffix(_MISSING) for name in flags if row[name])
    return {name: value for name, value in row.items() if name not in lacking}


def _tables(payload: Payload) -> tuple[str, ...]:
    return names_in(payload.get("table")) if "op_type" in payload else ()


def _key_columns(payload: Payload) -> tuple[str, ...]:
    found = payload.get("primary_keys")
    return tuple(found) if type(found) is list and all(type(name) is str for name in found) else ()


def _wrap(row: Payload, table: str) -> Value:
    return {"table": table, "op_type": "I", "pos": "", "before": None, "after": row}


GOLDENGATE: Final = Envelope(
    name="goldengate",
    system="Oracle GoldenGate",
    wraps=True,
    members=frozenset({"op_type"}),
    recognise=_recognise,
    read=_read,
    wrap=_wrap,
    reading=ANY_TEXT,
    tables=_tables,
    key_columns=_key_columns,
    rows=("after", "before"),
    operation="op_type",
    sample='{"table": "S.ITEM", "op_type": "I", "pos": "0001", "after": {"id": 1}}',
    deletes="`op_type`: `D`",
    transactions="none",
)
