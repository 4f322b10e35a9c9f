"""Envelopes of other systems never become rows of nulls: each is a dead letter that names its format, unless its members are
columns."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.rounds.decoding import shown_keys
from processor.values.envelopes.foreign import FOREIGN_FORMATS, foreign_format, rows_at
from processor.values.record import Change, Record, Rejected
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope, raw, reason

ROW = {"id": 17, "customer": "Ann", "qty": 2}
ORDER = entity("orders", "id", "id int, customer string, qty int")
KEY_ALONE = entity("orders", "id", "id int")
WITH_TYPE = entity("orders", "id", "id int, type string, ts int, customer string")
MAXWELL = {"database": "shop", "table": "orders", "type": "insert", "ts": 1, "xid": 2, "commit": True, "data": ROW}
CANAL = {
    "data": [ROW], "database": "shop", "es": 1, "id": 5, "isDdl": False, "mysqlType": {"id": "int"}, "old": None,
    "pkNames": ["id"], "sql": "", "table": "orders", "ts": 2, "type": "INSERT",
}  # fmt: skip
QLIK = {"operation": "INSERT", "changeSequence": "1", "timestamp": "2026-01-01T00:00:00"}
ENVELOPES: list[tuple[str, dict[str, Any]]] = [
    ("Striim", {"data": ROW, "before": None, "metadata": {"OperationName": "INSERT", "TableName": "SHOP.ORDERS"}}),
    ("TiCDC (open protocol)", {"u": {"id": {"t": 3, "h": True, "v": 17}, "customer": {"t": 15, "v": "Ann"}}}),
    ("TiCDC (simple)", {"version": 1, "type": "INSERT", "commitTs": 1, "database": "s", "table": "o", "data": ROW}),
    ("Qlik Replicate", {"data": ROW, "beforeData": None, "headers": QLIK}),
    ("Qlik Replicate", {"magic": "atMSG", "type": "DT", "headers": None, "message": {"data": ROW, "headers": QLIK}}),
    ("Materialize", {"before": None, "after": ROW}),
    ("Materialize", {"before": ROW, "after": None}),
    ("Flatten", {"before_id": None, "after_id": 17, "after_customer": "Ann", "op": "c", "ts_ms": 1}),
    ("Flatten", {"before.id": 17, "after.id": None, "source.table": "orders", "op": "d"}),
    ("an outbox", {"payload": ROW, "eventType": "OrderPlaced"}),
    ("an outbox", {"payload": '{"id":17}', "eventType": "OrderPlaced", "aggregateId": "17"}),
    ("MongoDB", {"_id": {}, "operationType": "insert", "ns": {"db": "s", "coll": "o"}, "fullDocument": ROW}),
    ("wal2json", {"change": [{"kind": "insert", "table": "orders", "columnnames": ["id"], "columnvalues": [17]}]}),
    ("wal2json", {"action": "I", "schema": "public", "table": "orders", "columns": [{"name": "id", "value": 17}]}),
    ("DynamoDB Streams", {"eventName": "INSERT", "dynamodb": {"Keys": {"id": {"N": "17"}}}}),
    ("Amazon EventBridge", {"id": "x", "version": "0", "detail-type": "order", "source": "shop", "detail": ROW}),
    ("Singer or Airbyte", {"type": "RECORD", "stream": "orders", "record": ROW}),
    ("Airbyte", {"_airbyte_ab_id": "x", "_airbyte_emitted_at": 1, "_airbyte_data": ROW}),
    ("Supabase", {"type": "INSERT", "table": "orders", "schema": "public", "record": ROW, "old_record": None}),
    ("Sequin", {"record": ROW, "changes": None, "action": "insert", "metadata": {"table_name": "orders"}}),
    ("Hasura", {"event": {"op": "INSERT", "data": {"new": ROW, "old": None}}, "table": {"name": "orders"}}),
]  # fmt: skip


@pytest.mark.parametrize("key", [b"17", {"id": 17}, None])
@pytest.mark.parametrize(
    "table", [ORDER, KEY_ALONE, WITH_TYPE], ids=["ordinary", "key alone", "with columns of envelopes"]
)
@pytest.mark.parametrize(("name", "value"), ENVELOPES)
def test_an_envelope_of_another_system_is_a_dead_letter_that_names_it(
    name: str, value: Any, table: Any, key: Any
) -> None:
    result = decoded(table, key, value)
    assert isinstance(result, Rejected), result
    assert result.code == "other-format"
    assert name in result.reason


@pytest.mark.parametrize(("name", "value"), ENVELOPES)
def test_a_pinned_format_stores_no_envelope_as_a_row(name: str, value: Any) -> None:
    for pinned in ("plain", "flattened", "debezium"):
        result = decoded(replace(ORDER, format=pinned), {"id": 17}, value)
        assert isinstance(result, Rejected), result
        assert name in result.reason or "has the row" in result.reason


@pytest.mark.parametrize(("name", "value"), ENVELOPES)
def test_a_row_whose_table_has_the_members_of_an_envelope_is_a_row(name: str, value: Any) -> None:
    value = value["payload"] if "schema" in value and "payload" in value else value
    columns = ", ".join(["id int", *(f"{member} json" for member in value if member != "id")])
    result = decoded(entity("odd", "id", columns), {"id": 17}, {**value, "id": 17})
    assert isinstance(result, Change) or "op" in value, result


def test_each_format_of_the_table_is_tested() -> None:
    found = [foreign_format(value, ()) for _, value in ENVELOPES]
    assert {one.name for one in found if one is not None} == {known.name for known in FOREIGN_FORMATS}


@pytest.mark.parametrize(
    "value",
    [
        {"id": 17, "customer": "Ann", "change": [1, 2]},
        {"id": 17, "qty": 1, "message": "hello", "headers": {"a": 1}, "data": 5},
        {"id": 17, "qty": 1, "metadata": {"colour": "red"}, "data": {}},
        {"id": 17, "qty": 1, "after": "noon", "resolved": True, "u": 1, "d": 2},
        {"id": 17, "qty": 1, "database": "x", "table": "y", "type": "z", "data": 1},
        {"id": 17, "qty": 1, "eventType": "x", "payload": {}},
        {"id": 17, "qty": 1, "record": 7, "type": "vinyl", "event": "x", "action": "play"},
        {"id": 17, "qty": 1, "customer": None, "older": {"id": 17, "qty": 1, "customer": "Ann"}},
        {"id": 17},
    ],
)
def test_a_row_with_members_like_those_of_an_envelope_is_a_row(value: Any) -> None:
    key, row = change(ORDER, {"id": 17}, value)
    assert key == (17,)
    assert row is not None
    assert row["qty"] == value.get("qty")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"row": ROW, "meta": {"kind": "I"}}, "member row has the row"),
        ({"id": 5, "qty": 1, "rows": [ROW]}, "member rows has the row"),
        (
            {"title": "x", "total": 1},
            "none of the columns that the entity declares outside its key (customer, qty), only title",
        ),
        ({"id": 17, "title": "x"}, "none of the columns"),
        ({"id": 17, "\x00\n": "x", "y" * 99: 1}, "only '\\x00\\n', '" + "y" * 59 + "…': correct"),
        (envelope("c", after={"a b": 1}), "is of table t: write"),
        ({**envelope("c", after={"a": 1}), "source": {"table": "a\nb"}}, "is of table 'a\\nb': write"),
        ({}, "none of the columns"),
    ],
)
def test_a_row_without_a_declared_column_is_a_dead_letter(value: Any, why: str) -> None:
    why_not = reason(ORDER, {"id": 17}, value)
    assert why in why_not


def test_the_reason_of_a_row_without_columns_has_a_form_without_names_of_the_record() -> None:
    result = decoded(ORDER, {"id": 17}, {"person@example.org": 1})
    assert isinstance(result, Rejected), result
    assert "person" in result.reason
    assert "person" not in result.plain


def test_an_envelope_of_debezium_in_an_entity_that_pins_another_format_is_named() -> None:
    for pinned in ("plain", "flattened"):
        why = reason(replace(ORDER, format=pinned), {"id": 17}, envelope("c", after={"id": 17, "customer": "Ann"}))
        assert f"it is an envelope of Debezium, and entity orders pins `format: {pinned}`" in why


def test_an_entity_of_key_columns_takes_rows_with_other_members() -> None:
    tag = entity("tag", "id", "id int")
    assert change(tag, {"id": 1}, {"id": 1}) == ((1,), {"id": 1})
    assert change(tag, {"id": 1}, {"colour": "red"}) == ((1,), {"id": 1, "colour": "red"})
    assert change(tag, None, envelope("c", after={"id": 1, "colour": "red"})) == ((1,), {"id": 1, "colour": "red"})


@pytest.mark.parametrize("value", [{"message": {"data": ROW, "headers": QLIK}}])
def test_the_refused_envelope_of_a_person_shows_the_key_of_its_row(value: Any) -> None:
    known = foreign_format(value, ())
    assert known is not None
    assert list(rows_at(value, known.rows)) == [ROW]
    record = Record(topic="t", partition=0, offset=0, key=None, value=raw(value))
    assert shown_keys(record, ORDER) == {(17,)}
