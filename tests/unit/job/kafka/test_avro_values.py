"""Values in Avro become those that the same values give as JSON with a schema of Kafka Connect."""

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.required import require_schema_packages

require_schema_packages()

from tests.unit.engine.protocol.decoding import entity  # noqa: E402
from tests.unit.job.kafka.avro_tables import ID, assert_same  # noqa: E402
from tests.unit.job.kafka.framed import avro, avro_schema, reader, reason, row  # noqa: E402
from tests.unit.job.kafka.same_values import COLUMNS, Column, semantic  # noqa: E402


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_a_column_has_the_value_that_it_has_in_json_with_a_schema(column: Column) -> None:
    for value in [*column.values, None]:
        assert_same([ID, column], json_copy({"id": 7, column.name: value}), "plain")


ROWS = st.fixed_dictionaries({c.name: st.one_of(st.none(), st.sampled_from(c.values)) for c in COLUMNS})


@settings(max_examples=30)
@given(rows=ROWS, number=st.integers(-(2**31), 2**31 - 1), form=st.sampled_from(["envelope", "flattened", "plain"]))
def test_a_row_gives_the_same_change_in_avro_and_in_json_with_a_schema(
    rows: dict[str, Any], number: int, form: str
) -> None:
    assert_same([ID, *COLUMNS], {"id": number, **json_copy(rows)}, form)


def json_copy(rows: dict[str, Any]) -> dict[str, Any]:
    return {name: dict(value) if isinstance(value, dict) else value for name, value in rows.items()}


@pytest.mark.parametrize("number", [0.1, 3.3, 16777216.0, 3.4028235e38])
def test_a_float_has_the_shortest_digits_of_its_32_bits(number: float) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": "float"}]}
    found = row(
        entity("t", "id", "id int, x float"), None, avro(1, schema, {"id": 1, "x": number}), {1: avro_schema(schema)}
    )
    assert found["x"] == Decimal(repr(number))


def test_not_a_number_breaks_the_contract_as_it_does_in_json() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": "double"}]}
    data = avro(1, schema, {"id": 1, "x": float("nan")})
    found = reason(entity("t", "id", "id int, x float"), None, data, {1: avro_schema(schema)})
    assert found.startswith("column 'x': expected float, found text 'NaN' (no finite number")


@pytest.mark.parametrize(
    ("logical", "base", "raw", "declared", "expected"),
    [
        ("timestamp-millis", "long", 1795214323797, "timestamp", "2026-11-20T22:38:43.797Z"),
        ("timestamp-micros", "long", 1795214323797123, "timestamp", "2026-11-20T22:38:43.797123Z"),
        ("timestamp-nanos", "long", 1795214323797123456, "timestamp", "2026-11-20T22:38:43.797123456Z"),
        ("local-timestamp-micros", "long", -1, "timestamp", "1969-12-31T23:59:59.999999Z"),
        ("local-timestamp-nanos", "long", 1795214317758449123, "timestamp", "2026-11-20T22:38:37.758449123Z"),
        ("date", "int", 19000, "date", "2022-01-08"),
        ("time-millis", "int", 5, "int", 5),
        ("uuid", "string", "0190f3d4-7d1c-7b1e-8f5a-3f1d2c4b5a69", "string", "0190f3d4-7d1c-7b1e-8f5a-3f1d2c4b5a69"),
    ],
)
def test_a_logical_type_of_another_writer_gives_the_unit(
    logical: str, base: str, raw: Any, declared: str, expected: Any
) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": {"type": base, "logicalType": logical}}],
    }
    data = avro(1, schema, {"id": 1, "x": raw})
    assert row(entity("t", "id", f"id int, x {declared}"), None, data, {1: avro_schema(schema)})["x"] == expected


def test_a_logical_type_that_kafka_connect_does_not_have_gives_its_bytes_and_no_number() -> None:
    parts = {"big": "big-decimal", "span": "duration", "name": "uuid"}
    sizes = {"span": 12, "name": 16}
    kinds: dict[str, Any] = {n: {"type": "fixed", "name": n.title(), "size": size} for n, size in sizes.items()}
    kinds["big"] = {"type": "bytes"}
    fields = [{"name": name, "type": kinds[name] | {"logicalType": logical}} for name, logical in parts.items()]
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, *fields]}
    value = {
        "id": 1,
        "big": b"\x04\x30\x39\x06",
        "span": bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
        "name": bytes(range(16)),
    }
    data = avro(1, schema, value)
    found = row(entity("t", "id", "id int, big string, span string, name string"), None, data, {1: avro_schema(schema)})
    assert [found[name] for name in parts] == ["BDA5Bg==", "AQAAAAIAAAADAAAA", "AAECAwQFBgcICQoLDA0ODw=="]
    why = reason(entity("t", "id", "id int, big decimal"), None, data, {1: avro_schema(schema)})
    assert "column 'big': expected decimal, found text 'BDA5Bg==' (its schema says bytes" in why


def test_decimals_of_another_writer_are_exact_in_bytes_and_in_fixed() -> None:
    fixed = {"type": "fixed", "name": "F", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 3}
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "a", "type": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 10}},
            {"name": "b", "type": fixed},
        ],
    }
    digits = 12345678901234567890123456789012345678
    value = {"id": 1, "a": digits.to_bytes(16, "big"), "b": (-1500).to_bytes(4, "big", signed=True)}
    table = entity("t", "id", "id int, a decimal, b decimal")
    found = row(table, None, avro(1, schema, value), {1: avro_schema(schema)})
    assert found["a"] == Decimal("1234567890123456789012345678.9012345678")
    assert found["b"] == Decimal("-1.5")


def test_a_union_of_several_types_gives_the_value_of_its_branch() -> None:
    inner = {"type": "record", "name": "In", "fields": [{"name": "n", "type": "double"}]}
    other = {"type": "record", "name": "Other", "fields": [{"name": "data", "type": "bytes"}]}
    union = ["null", "string", "long", "double", "bytes", "boolean", inner, other, {"type": "array", "items": "double"}]
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": {"type": "array", "items": union}}],
    }
    values = [None, "a", 1, 2.5, b"\1", True, ("In", {"n": 1.5}), ("Other", {"data": b"\2"}), [0.5]]
    found = row(
        entity("t", "id", "id int, x json"), None, avro(1, schema, {"id": 1, "x": values}), {1: avro_schema(schema)}
    )
    assert found["x"] == [
        None,
        "a",
        1,
        Decimal("2.5"),
        "AQ==",
        True,
        {"n": Decimal("1.5")},
        {"data": "Ag=="},
        [Decimal("0.5")],
    ]


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
FLOATS: list[Any] = ["null", "float", "double"]
BYTES = b"\xd7\x4d\x34"
"""The bytes of -2667212. Their base64 is 1000."""


def written(union: list[Any], branch: int, value: Any) -> bytes:
    """A record whose column x has a value of this branch."""
    plain = json.loads(json.dumps(union[branch]).replace("logicalType", "was"))
    body = avro(1, plain, value)[5:]
    return b"\0\0\0\0\1" + b"\x0e" + bytes([2 * branch]) + body


def union_schema(union: Any) -> dict[int, Any]:
    fields = [{"name": "id", "type": "int"}, {"name": "x", "type": union}]
    return {1: avro_schema({"type": "record", "name": "R", "fields": fields})}


@pytest.mark.parametrize(
    ("union", "branch", "value", "declared", "expected"),
    [
        (FLOATS, 2, 0.1234567890123, "float", Decimal("0.1234567890123")),
        (FLOATS, 1, 0.1, "float", Decimal("0.1")),
        (FLOATS, 2, 0.1, "decimal", Decimal("0.1")),
        (["null", "double", "float"], 2, 0.1, "float", Decimal("0.1")),
        (["null", MONEY, "string"], 1, BYTES, "decimal", Decimal("-26672.12")),
        (["null", MONEY, "string"], 1, BYTES, "decimal(10,2)", Decimal("-26672.12")),
        (["null", MONEY, "string"], 2, "1000", "decimal(10,2)", Decimal("1000")),
        (["string", MONEY], 0, "12.34", "decimal", Decimal("12.34")),
        (["null", MILLIS, "string"], 1, 1795214323797, "timestamp(us)", "2026-11-20T22:38:43.797Z"),
        (["null", MILLIS, "string"], 2, "2026-11-20T22:38:43Z", "timestamp(us)", "2026-11-20T22:38:43Z"),
        (["null", MICROS, "string"], 1, 1795214323797000, "timestamp", "2026-11-20T22:38:43.797Z"),
        (["null", "int", "long"], 2, 2**40, "int", 2**40),
        (["null", {"type": "fixed", "name": "F", "size": 3}, "bytes"], 1, BYTES, "string", "1000"),
    ],
)
def test_the_branch_that_the_record_chose_decides_how_its_value_is_read(
    union: list[Any], branch: int, value: Any, declared: str, expected: Any
) -> None:
    found = row(entity("t", "id", f"id int, x {declared}"), None, written(union, branch, value), union_schema(union))
    assert (found["x"], type(found["x"])) == (expected, type(expected))


def test_a_branch_that_the_declared_type_does_not_take_is_a_dead_letter() -> None:
    union: list[Any] = ["null", {"type": "int", "logicalType": "date"}, MILLIS, "bytes", "string"]
    table = entity("t", "id", "id int, x timestamp(us)")
    assert "its schema says org.apache.kafka.connect.data.Date" in reason(
        table, None, written(union, 1, 20513), union_schema(union)
    )
    assert "its schema says bytes" in reason(table, None, written(union, 3, BYTES), union_schema(union))
    assert row(table, None, written(union, 2, 5), union_schema(union))["x"] == "1970-01-01T00:00:00.005Z"


def test_elements_of_several_branches_are_read_only_where_all_agree() -> None:
    array = {"type": "array", "items": ["null", MONEY, "string"]}
    schemas = union_schema(array)
    money = b"\2\6" + BYTES
    text = b"\4\x0812.3"

    def data(*elements: bytes) -> bytes:
        count = bytes([2 * len(elements)]) if elements else b""
        return b"\0\0\0\0\1\x0e" + count + b"".join(elements) + b"\0"

    table = entity("t", "id", "id int, x decimal[]")
    assert row(table, None, data(money, b"\0", money), schemas)["x"] == [
        Decimal("-26672.12"),
        None,
        Decimal("-26672.12"),
    ]
    assert row(table, None, data(text, text), schemas)["x"] == [Decimal("12.3")] * 2
    assert row(table, None, data(b"\0"), schemas)["x"] == [None]
    assert row(table, None, data(), schemas)["x"] == []
    assert "its schema says one of several types" in reason(table, None, data(money, text), schemas)
    assert row(entity("t", "id", "id int, x json"), None, data(money, text), schemas)["x"] == ["1000", "12.3"]


def test_a_union_of_rows_in_an_envelope_keeps_the_types_of_its_columns() -> None:
    old = {"type": "record", "name": "Old", "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": MILLIS}]}
    new = {"type": "record", "name": "New", "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": MICROS}]}
    fields = [{"name": "op", "type": "string"}, {"name": "before", "type": ["null", old, new]}]
    schema = {"type": "record", "name": "E", "fields": [*fields, {"name": "after", "type": ["null", "Old", "New"]}]}
    schemas, table = {1: avro_schema(schema)}, entity("t", "id", "id int, x timestamp(ns)")
    for name, unit in (("Old", "005Z"), ("New", "000005Z")):
        data = avro(1, schema, {"op": "c", "before": None, "after": (name, {"id": 1, "x": 5})})
        assert row(table, None, data, schemas)["x"] == f"1970-01-01T00:00:00.{unit}"


def test_a_topic_may_have_records_of_several_types() -> None:
    row_a = {"type": "record", "name": "A", "fields": [{"name": "id", "type": "int"}]}
    row_b = {"type": "record", "name": "B", "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": "string"}]}
    schemas = {1: avro_schema([row_a, row_b])}
    table = entity("t", "id", "id int, x string")
    assert row(table, None, avro(1, [row_a, row_b], ("B", {"id": 1, "x": "b"})), schemas) == {"id": 1, "x": "b"}
    assert row(table, None, avro(1, [row_a, row_b], ("A", {"id": 2})), schemas) == {"id": 2, "x": None}


def test_a_map_with_keys_that_are_no_text_is_an_array_of_pairs() -> None:
    entry = {
        "type": "record",
        "name": "MapEntry",
        "namespace": "io.confluent.connect.avro",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "bytes"}],
    }
    schema = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": {"type": "array", "items": entry}}],
    }
    data = avro(1, schema, {"id": 1, "x": [{"key": 5, "value": b"\1"}]})
    assert row(entity("t", "id", "id int, x json"), None, data, {1: avro_schema(schema)})["x"] == [[5, "AQ=="]]


def test_a_type_may_contain_itself_but_not_without_end() -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "n", "type": "double"}, {"name": "below", "type": {"type": "array", "items": "Tree"}}],
    }
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": tree}]}
    table, schemas = entity("t", "id", "id int, x json"), reader({1: avro_schema(schema)})

    def deep(levels: int) -> dict[str, Any]:
        return {"n": 0.5, "below": [deep(levels - 1)] if levels else []}

    small = {"n": Decimal("0.5"), "below": [{"n": Decimal("0.5"), "below": []}]}
    assert row(table, None, avro(1, schema, {"id": 1, "x": deep(1)}), schemas)["x"] == small
    assert "nested more than 200 levels" in reason(table, None, avro(1, schema, {"id": 1, "x": deep(150)}), schemas)


def test_types_of_references_count_in_their_own_namespace() -> None:
    money = {"type": "record", "name": "Money", "namespace": "shared", "fields": [{"name": "unit", "type": "Unit"}]}
    unit = {"type": "enum", "name": "Unit", "namespace": "shared", "symbols": ["EUR", "USD"]}
    schema = {
        "type": "record",
        "name": "R",
        "namespace": "app",
        "fields": [
            {"name": "id", "type": "int"},
            {"name": "a", "type": "shared.Money"},
            {"name": "b", "type": ["null", "shared.Unit"]},
        ],
    }
    whole = json.loads(
        json.dumps(schema).replace('"shared.Money"', json.dumps(money).replace('"Unit"', json.dumps(unit)))
    )
    data = avro(1, whole, {"id": 1, "a": {"unit": "USD"}, "b": "EUR"})
    references = {"shared.Money": json.dumps(money), "shared.Unit": json.dumps(unit)}
    found = row(entity("t", "id", "id int, a json, b string"), None, data, {1: avro_schema(schema, references)})
    assert found == {"id": 1, "a": {"unit": "USD"}, "b": "EUR"}


def test_semantic_names_win_over_logical_types() -> None:
    column = semantic("long", "io.debezium.time.MicroTimestamp", logicalType="timestamp-millis")
    schema = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}, {"name": "x", "type": column}]}
    data = avro(1, schema, {"id": 1, "x": 1_000_000})
    assert (
        row(entity("t", "id", "id int, x timestamp"), None, data, {1: avro_schema(schema)})["x"]
        == "1970-01-01T00:00:01Z"
    )
