"""Avro records of each kind become the changes that they give as JSON; what does not fit its schema is a dead letter."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.values.record import (  # noqa: E402
    UNAVAILABLE,
    Change,
    Ignored,
    SourceTransaction,
    Truncated,
)
from tests.unit.engine.protocol.decoding import STAR, USER, entity  # noqa: E402
from tests.unit.engine.protocol.decoding import decoded as decoded_json  # noqa: E402
from tests.unit.job.kafka.avro_tables import ID, envelope_schema, record_schema, table  # noqa: E402
from tests.unit.job.kafka.framed import avro, avro_schema, decoded, head, reason, row  # noqa: E402
from tests.unit.job.kafka.same_values import COLUMNS, Column  # noqa: E402


def test_deletes_truncates_and_controls_are_those_of_json() -> None:
    columns = [ID, Column("word", "string", {}, "string", [])]
    schema, table_ = envelope_schema(columns), table(columns)
    schemas = {1: avro_schema(schema), 2: avro_schema("int")}

    def one(op: str, before: Any = None) -> bytes:
        return avro(1, schema, {"before": before, "after": None, "source": {"table": "t"}, "op": op, "ts_ms": 1})

    deleted = decoded(table_, avro(2, "int", 7), one("d", {"id": 7, "word": None}), schemas)
    assert isinstance(deleted, Change)
    assert (deleted.key, deleted.row) == ((7,), None)
    tombstone = decoded(table_, avro(2, "int", 7), None, schemas)
    assert isinstance(tombstone, Change)
    assert (tombstone.key, tombstone.row) == ((7,), None)
    assert isinstance(decoded(table_, None, one("t"), schemas), Truncated)
    assert isinstance(decoded(table_, None, one("m"), schemas), Ignored)
    heartbeat = {"type": "record", "name": "Heartbeat", "fields": [{"name": "ts_ms", "type": "long"}]}
    assert isinstance(decoded(table_, None, avro(3, heartbeat, {"ts_ms": 1}), {3: avro_schema(heartbeat)}), Ignored)


def test_an_unavailable_value_is_that_of_json() -> None:
    columns = [ID, *(c for c in COLUMNS if c.name in ("word", "raw"))]
    schema = record_schema(columns)
    value = {"id": 7, "word": "__debezium_unavailable_value", "raw": b"__debezium_unavailable_value"}
    found = row(table(columns), None, avro(1, schema, value), {1: avro_schema(schema)})
    assert found == {"id": 7, "word": UNAVAILABLE, "raw": UNAVAILABLE}


def test_a_key_may_be_framed_where_the_value_is_json_and_the_other_way_round() -> None:
    key_schema = {"type": "record", "name": "Key", "fields": [{"name": "email", "type": "string"}]}
    found = decoded(USER, avro(1, key_schema, {"email": "a"}), b'{"email":"a","id":1}', {1: avro_schema(key_schema)})
    assert isinstance(found, Change), found
    assert found.key == ("a",)
    value_schema = {"type": "record", "name": "Value", "fields": [{"name": "email", "type": "string"}]}
    found = decoded(USER, b'"a"', avro(1, value_schema, {"email": "a"}), {1: avro_schema(value_schema)})
    assert isinstance(found, Change), found
    assert found.key == ("a",)


def test_columns_keep_their_names_where_debezium_adjusts_them_to_avro() -> None:
    table_ = entity("t", "user-id", "user-id int, 2fa bool, user_name string")
    key = {"type": "record", "name": "Key", "fields": [{"name": "user_id", "type": "int"}]}
    names = {"user_id": "int", "_2fa": "boolean", "user_name": "string"}
    schema = {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in names.items()]}
    data = avro(2, schema, {"user_id": 7, "_2fa": True, "user_name": "a"})
    found = decoded(table_, avro(1, key, {"user_id": 7}), data, {1: avro_schema(key), 2: avro_schema(schema)})
    assert isinstance(found, Change), found
    assert (found.key, found.row) == ((7,), {"user-id": 7, "2fa": True, "user_name": "a"})


def test_a_column_under_another_name_has_the_meaning_of_its_schema_in_row_key_and_old_image() -> None:
    """The schema says microseconds: without it a number has the unit of the declared type."""
    table_ = entity("t", "at-time", "at-time timestamp, paid-at timestamp, n int", format="debezium")
    micros = {"type": "long", "logicalType": "timestamp-micros"}
    row_ = {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "at_time", "type": micros},
            {"name": "paid_at", "type": micros},
            {"name": "n", "type": "int"},
        ],
    }
    names = {
        "before": ["null", row_],
        "after": ["null", "Value"],
        "op": "string",
        "source": {"type": "map", "values": "string"},
    }
    schema = {"type": "record", "name": "Envelope", "fields": [{"name": n, "type": t} for n, t in names.items()]}
    key = {"type": "record", "name": "Key", "fields": [{"name": "at_time", "type": micros}]}
    before, after = ({"at_time": at, "paid_at": 1795214323797123, "n": 1} for at in (1_000_000, 2_000_000))
    data = avro(1, schema, {"before": before, "after": after, "op": "u", "source": {}})
    found = decoded(table_, avro(2, key, {"at_time": 2_000_000}), data, {1: avro_schema(schema), 2: avro_schema(key)})
    assert isinstance(found, Change), found
    assert found.row == {"at-time": "1970-01-01T00:00:02Z", "paid-at": "2026-11-20T22:38:43.797123Z", "n": 1}
    assert (found.key, found.former) == (("1970-01-01T00:00:02Z",), ("1970-01-01T00:00:01Z",))


def test_two_names_of_a_record_that_may_be_one_column_are_a_dead_letter() -> None:
    table = entity("t", "id", "id int, user-id int")
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": n, "type": "int"} for n in ("id", "user_id", "user_u002did")],
    }
    why = reason(table, None, avro(1, schema, {"id": 1, "user_id": 2, "user_u002did": 3}), {1: avro_schema(schema)})
    assert why == "column 'user-id': 'user_id' and 'user_u002did' of the record may both be this column"


def test_an_envelope_names_its_transaction() -> None:
    text, number = {"type": "string"}, {"type": "long"}
    block = {
        "type": "record",
        "name": "block",
        "namespace": "event",
        "fields": [{"name": "id", "type": text}]
        + [{"name": n, "type": number} for n in ("total_order", "data_collection_order")],
    }
    places = ("connector", "db", "schema", "table")
    source = {"type": "record", "name": "Source", "fields": [{"name": n, "type": text} for n in places]}
    row_ = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}]}
    schema = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row_], "default": None},
            {"name": "after", "type": ["null", "Value"], "default": None},
            {"name": "source", "type": source},
            {"name": "transaction", "type": ["null", block], "default": None},
            {"name": "op", "type": "string"},
        ],
    }
    value = {
        "before": None,
        "after": {"id": 7},
        "source": {"connector": "postgresql", "db": "shop", "schema": "public", "table": "t"},
        "transaction": {"id": "760:1", "total_order": 3, "data_collection_order": 2},
        "op": "c",
    }
    table_ = replace(entity("t", "id", "id int"), transactions="app.transaction")
    found = decoded(table_, None, avro(1, schema, value), {1: avro_schema(schema)})
    assert found.transaction == SourceTransaction("760", "public.t", 2)
    found = decoded(table_, None, avro(1, schema, value | {"transaction": None}), {1: avro_schema(schema)})
    assert isinstance(found, Change)
    assert found.transaction is None


ROW = {
    "type": "record",
    "name": "Star",
    "fields": [{"name": "owner", "type": "string"}, {"name": "n", "type": "int"}, {"name": "repo", "type": "string"}],
}
GOOD = avro(1, ROW, {"owner": "o", "n": 1, "repo": "repository"})


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0", "value: begins with byte 0, and ends before a schema id: 1 bytes"),
        (b"\0\0\0\1", "value: begins with byte 0, and ends before a schema id: 4 bytes"),
        (head(1), "value: the body does not fit schema 1: "),
        (head(9) + b"x", "value: the schema registry has no schema 9"),
        (GOOD[:-1], "value: the body does not fit schema 1: the body ends within a value"),
        (GOOD[:6], "value: the body does not fit schema 1: "),
        (GOOD + b"x", "value: the body does not fit schema 1: 1 bytes are left over"),
        (head(1) + b"\2\xff\2\2a", "value: the body does not fit schema 1: 'utf-8' codec"),
        (head(1) + b"\xff" * 30, "value: the body does not fit schema 1: "),
        (head(1) + b"\3", "value: the body does not fit schema 1: "),
        (
            head(2) + b"x",
            "value: schema 2 cannot be read: no type 'elsewhere.Type', neither in the schema nor in its references",
        ),
        (head(3) + b"x", "value: schema 3 cannot be read: not JSON"),
        (head(4) + b"x", "value: schema 4 is THRIFT, and statestore reads AVRO, JSON, PROTOBUF"),
        (head(5) + b"x", "value: schema 5 cannot be read: a type record without a name"),
        (head(6) + b"x", "value: schema 6 cannot be read: the symbols of enum 'E' are not there"),
        (head(8) + b"x", "value: schema 8 cannot be read: record 'R' with two fields of one name"),
        (avro(7, "string", "text"), "expected a row as an object, found text 'text'"),
    ],
)
def test_poison_is_a_dead_letter_with_a_reason(data: bytes, why: str) -> None:
    from processor.job.kafka.registry_client import WriterSchema

    bad_symbols = {"type": "record", "name": "R", "fields": [{"name": "x", "type": {"type": "enum", "name": "E"}}]}
    schemas = {
        1: avro_schema(ROW),
        2: avro_schema({"type": "record", "name": "R", "fields": [{"name": "x", "type": "elsewhere.Type"}]}),
        3: WriterSchema("AVRO", "no json", {}),
        4: WriterSchema("THRIFT", "", {}),
        5: avro_schema({"type": "record", "fields": []}),
        6: avro_schema(bad_symbols),
        7: avro_schema("string"),
        8: avro_schema({"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}] * 2}),
    }
    assert reason(STAR, None, data, schemas).startswith(why)


@settings(max_examples=100)
@given(body=st.binary(max_size=60))
def test_no_body_raises(body: bytes) -> None:
    tree = {"type": "record", "name": "Tree", "fields": [{"name": "below", "type": {"type": "array", "items": "Tree"}}]}
    wide = [{"name": c.name, "type": ["null", c.avro]} for c in COLUMNS]
    schema = {"type": "record", "name": "R", "fields": [*wide, {"name": "tree", "type": tree}]}
    decoded(STAR, head(1) + body, head(1) + body, {1: avro_schema(schema)})


def test_without_a_registry_the_reason_names_the_setting() -> None:
    result = decoded_json(STAR, None, GOOD)
    assert "the settings name no registry: give [schema_registry] in the settings file" in getattr(result, "reason", "")


def test_a_short_record_of_many_columns_is_measured_too() -> None:
    names = [f"{'a_very_long_name_of_a_column_' * 20}{n}" for n in range(800)]
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]}
    schema["fields"] += [{"name": name, "type": ["null", "int"]} for name in names]  # type: ignore[operator]
    data = avro(1, schema, {"id": 1} | dict.fromkeys(names))
    assert len(data) < 1_000
    assert reason(entity("t", "id", "id int"), None, data, {1: avro_schema(schema)}).startswith("the row is 4")
