"""Protobuf records, as Confluent's ProtobufConverter writes them, become the changes of the same rows in JSON."""

import base64
import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.required import require_schema_packages

require_schema_packages()

from google.protobuf import descriptor_pb2  # noqa: E402

from processor.job.kafka.registry_client import WriterSchema  # noqa: E402
from processor.values.record import (  # noqa: E402
    Change,
    Rejected,
    SourceTransaction,
)
from tests.unit.engine.protocol.decoding import decoded as decoded_json  # noqa: E402
from tests.unit.engine.protocol.decoding import entity  # noqa: E402
from tests.unit.job.kafka.framed import decoded, head, reason, row  # noqa: E402
from tests.unit.job.kafka.protobuf_files import classes, framed, message, one_column, proto, schema_of  # noqa: E402


@pytest.mark.parametrize(
    ("kind", "value", "declared", "expected"),
    [
        ("int32", -(2**31), "int", -(2**31)),
        ("sint64", -(2**63), "int", -(2**63)),
        ("uint64", 2**64 - 1, "int", 2**64 - 1),
        ("fixed32", 2**32 - 1, "int", 2**32 - 1),
        ("bool", True, "bool", True),
        ("string", "ü€😀", "string", "ü€😀"),
        ("bytes", b"\0\xff", "string", "AP8="),
        ("double", 0.1, "float", Decimal("0.1")),
        ("float", 0.1, "float", Decimal("0.1")),
        ("string[]", ["a", ""], "string[]", ["a", ""]),
        ("double[]", [0.5], "float[]", [Decimal("0.5")]),
        (".app.Kind", 1, "string", "DONE"),
        (".google.protobuf.StringValue", {"value": ""}, "string", ""),
        (".google.protobuf.StringValue", None, "string", None),
        (".google.protobuf.Int64Value", {"value": 5}, "int", 5),
        (".google.protobuf.BytesValue", {"value": b"\1"}, "string", "AQ=="),
        (".google.protobuf.FloatValue", {"value": 3.3}, "float", Decimal("3.3")),
        ("int32?", 0, "int", 0),
        ("int32?", None, "int", None),
        ("int32", None, "int", 0),
        ("string", None, "string", ""),
        ("string[]", None, "string[]", []),
        (".google.protobuf.Timestamp", {"seconds": -1}, "timestamp", "1969-12-31T23:59:59Z"),
        (
            ".google.protobuf.Timestamp",
            {"seconds": 1795214323, "nanos": 797123456},
            "timestamp",
            "2026-11-20T22:38:43.797123456Z",
        ),
        (".google.protobuf.Timestamp", {"seconds": 0, "nanos": 5_000_000}, "json", 5),
        (".google.protobuf.Timestamp", None, "timestamp", None),
        (".google.type.Date", {"year": 1, "month": 1, "day": 1}, "date", "0001-01-01"),
        (".google.type.TimeOfDay", {"hours": 23, "minutes": 59, "seconds": 59, "nanos": 1_000_000}, "int", 86399001),
        ("int64", 1795214323797123, "timestamp(us)", "2026-11-20T22:38:43.797123Z"),
        ("string", '{"a":1}', "json", '{"a":1}'),
        (".google.protobuf.UInt64Value", {"value": 2**64 - 1}, "int", 2**64 - 1),
        (".google.protobuf.Any", {"type_url": "t/x", "value": b"hi"}, "json", {"type_url": "t/x", "value": "aGk="}),
        (".google.protobuf.Duration", {"seconds": 3, "nanos": 5}, "json", {"seconds": 3, "nanos": 5}),
        (".google.protobuf.FieldMask", {"paths": ["a.b"]}, "json", {"paths": ["a.b"]}),
    ],
)
def test_a_field_has_the_value_that_kafka_connect_gives(kind: str, value: Any, declared: str, expected: Any) -> None:
    found = one_column(kind, value, declared)
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("kind", "value", "declared", "why"),
    [
        ("double", float("nan"), "float", "found text 'NaN' (no finite number"),
        (".google.protobuf.FloatValue", {"value": float("inf")}, "float", "found text 'Infinity' (no finite number"),
        (".google.protobuf.Duration", {"seconds": 3}, "string", "expected string, found an object"),
        (".app.Kind", 7, "string", "expected string, found number 7"),
    ],
)
def test_a_field_of_another_kind_than_its_column_is_a_dead_letter(
    kind: str, value: Any, declared: str, why: str
) -> None:
    with pytest.raises(AssertionError, match=re.escape(why)):
        one_column(kind, value, declared)


@pytest.mark.parametrize("scale", [0, 3, 20])
def test_a_decimal_is_exact(scale: int) -> None:
    file = proto(
        message(
            "Row",
            id="int32",
            same=f".confluent.type.Decimal({scale})",
            wider=f".confluent.type.Decimal({scale + 2})",
            free=".confluent.type.Decimal",
        )
    )
    table, new = entity("t", "id", "id int, same decimal, wider decimal, free decimal"), classes(file)("app.Row")
    for number in (0, 1, -1, 255, -256, 10**28 + 1, -(10**37) + 1):
        value = {"value": number.to_bytes(17, "big", signed=True), "precision": 38, "scale": scale}
        made = new(id=7, same=value, wider=value, free=value)
        found = row(table, None, framed(1, made), {1: schema_of(file)})
        expected = Decimal(f"{number}E-{scale}")
        assert [found[name] for name in ("same", "wider", "free")] == [expected] * 3


def test_a_decimal_finer_than_its_field_is_a_dead_letter() -> None:
    file = proto(message("Row", id="int32", x=".confluent.type.Decimal(1)"))
    table, new = entity("t", "id", "id int, x decimal"), classes(file)("app.Row")
    for scale, why in ((2, "more than the 1 digits after the point"), (2**31 - 1, "2147483647 digits after the point")):
        data = framed(1, new(id=1, x={"value": b"\1", "scale": scale}))
        assert why in reason(table, None, data, {1: schema_of(file)})


def test_maps_and_free_forms_are_those_of_json() -> None:
    texts = message("TextsEntry", key="string", value="bytes")
    numbers = message("NumbersEntry", key="int32", value="double")
    for entry in (texts, numbers):
        entry.options.map_entry = True
    made = message(
        "Row",
        id="int32",
        texts=".app.Row.TextsEntry[]",
        numbers=".app.Row.NumbersEntry[]",
        form=".google.protobuf.Struct",
    )
    made.nested_type.extend([texts, numbers])
    file = proto(made)
    value = classes(file)("app.Row")(id=1, texts={"a": b"\1"}, numbers={5: 0.5}, form={"n": 3, "x": [1.5, None]})
    columns = "id int, texts json, numbers json, form json"
    assert row(entity("t", "id", columns), None, framed(1, value), {1: schema_of(file)}) == {
        "id": 1,
        "texts": {"a": "AQ=="},
        "numbers": [[5, Decimal("0.5")]],
        "form": {"n": 3, "x": [Decimal("1.5"), None]},
    }


def test_a_member_of_a_choice_is_a_column_and_the_others_are_null() -> None:
    made = message("Row", id="int32", a="int32", b="string")
    made.oneof_decl.add(name="choice")
    for field in made.field[1:]:
        field.oneof_index = 0
    file = proto(made)
    table, value = entity("t", "id", "id int, a int, b string"), classes(file)("app.Row")(id=1, b="")
    assert row(table, None, framed(1, value), {1: schema_of(file)}) == {"id": 1, "a": None, "b": ""}


NUMBER, TEXT = b"\x08\x07", b"\x0a\x01a"
"""Field 1 as the number 7, and as the text `a`."""


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"\x0a\x011\x10\x05", "the bytes of field 'id' (1) are of another type"),
        (NUMBER + b"\x10\x05", "the bytes of field 's' (2) are of another type"),
        (NUMBER + b"\x1a\x03" + TEXT, "the bytes of field 'n' (1) are of another type"),
        (NUMBER + b"\x22\x05" + TEXT + b"\x10\x05", ""),
        (NUMBER + b"\x22\x06" + TEXT + b"\x12\x01a", "the bytes of field 'value' (2) are of another type"),
        (NUMBER + b"\x22\x04" + NUMBER + b"\x10\x05", "the bytes of field 'key' (1) are of another type"),
        (NUMBER + b"\x2a\x03" + TEXT, "the bytes of field 'value' (1) are of another type"),
        (NUMBER + b"\x32\x03" + TEXT, "the bytes of field 'seconds' (1) are of another type"),
        (NUMBER + b"\x38\x05", "the bytes of field 'below' (7) are of another type"),
        (NUMBER + b"\x78\x05", ""),
    ],
)
def test_bytes_that_do_not_fit_their_schema_are_a_dead_letter(body: bytes, why: str) -> None:
    entry = message("CountsEntry", key="string", value="int64")
    entry.options.map_entry = True
    columns = {"id": "int64", "s": "string", "below": ".app.Below", "counts": ".app.Row.CountsEntry[]"}
    columns |= {"wrapped": ".google.protobuf.Int64Value", "at": ".google.protobuf.Timestamp", "more": ".app.Below[]"}
    made = message("Row", **columns)
    made.field[6].name = "below"
    made.field[2].name = "first"
    made.nested_type.append(entry)
    file = proto(made, message("Below", n="int64"))
    table, data = entity("t", "id", "id int"), head(1) + b"\0" + body
    if why:
        assert reason(table, None, data, {1: schema_of(file)}) == f"value: the body does not fit schema 1: {why}"
    else:  # an entry of a map that fits, and a field of a number that the schema does not have
        assert row(table, None, data, {1: schema_of(file)})["id"] == 7


def test_an_enum_value_that_a_closed_enum_does_not_have_is_a_dead_letter() -> None:
    file = proto(message("Row", id="int32", x=".app.Kind"))
    file.syntax = "proto2"
    file.enum_type.add(name="Kind").value.add(name="NEW", number=0)
    why = reason(
        entity("t", "id", "id int, x string"), None, head(1) + b"\0" + NUMBER + b"\x10\x05", {1: schema_of(file)}
    )
    assert why.endswith("the bytes of field 'x' (2) are of another type")


def test_bytes_of_a_field_are_no_digits() -> None:
    assert "its schema says bytes" in str(one_column_reason("bytes", b"\xd7\x6d\xf8", "decimal"))
    assert "its schema says bytes" in str(
        one_column_reason(".google.protobuf.BytesValue", {"value": b"\xd7\x6d\xf8"}, "float")
    )


def one_column_reason(kind: str, value: Any, declared: str) -> str:
    file = proto(message("Row", id="int32", x=kind))
    data = framed(1, classes(file)("app.Row")(id=7, x=value))
    return reason(entity("t", "id", f"id int, x {declared}"), None, data, {1: schema_of(file)})


VALUE = {"id": "int32", "price": ".confluent.type.Decimal(2)", "at": ".google.protobuf.Timestamp", "bio": "string?"}


def envelope_file() -> descriptor_pb2.FileDescriptorProto:
    envelope = message(
        "Envelope", before=".app.Value", after=".app.Value", source=".app.Source", op="string", ts_ms="int64?"
    )
    return proto(envelope, message("Value", **VALUE), message("Source", table="string"))


def test_an_envelope_names_its_transaction() -> None:
    envelope = message("Envelope", after=".app.Value", source=".app.Source", transaction=".app.block", op="string")
    block = message("block", id="string", total_order="int64", data_collection_order="int64")
    source = message("Source", connector="string", db="string", schema="string", table="string")
    file = proto(envelope, message("Value", id="int32"), source, block)
    table = replace(entity("t", "id", "id int"), transactions="app.transaction")
    place = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "t"}
    for transaction, named in (
        ({"id": "760:1", "total_order": 3, "data_collection_order": 2}, SourceTransaction("760", "public.t", 2)),
        (None, None),
    ):
        made = classes(file)("app.Envelope")(after={"id": 7}, source=place, transaction=transaction, op="c")
        assert decoded(table, None, framed(1, made), {1: schema_of(file)}).transaction == named


@pytest.mark.parametrize(("price", "bio"), [(1234, None), (-1, "text"), (0, "")])
def test_an_envelope_gives_the_change_that_it_gives_in_json_with_a_schema(price: int, bio: str | None) -> None:
    file = envelope_file()
    new = classes(file)
    size = 1 if -128 <= price < 128 else 2
    unscaled = price.to_bytes(size, "big", signed=True)
    value = new("app.Value")(
        id=7, price={"value": unscaled, "scale": 2}, at={"seconds": 1795214323, "nanos": 797_000_000}
    )
    if bio is not None:
        value.bio = bio
    data = framed(1, new("app.Envelope")(after=value, source={"table": "t"}, op="c", ts_ms=1))
    table = entity("t", "id", "id int, price decimal, at timestamp, bio string")
    key_file = proto(message("Key", id="int32"))
    key = framed(2, classes(key_file)("app.Key")(id=7))
    found = decoded(table, key, data, {1: schema_of(file), 2: schema_of(key_file)})
    connect = "org.apache.kafka.connect.data."
    fields = [
        {"field": "price", "type": "bytes", "name": f"{connect}Decimal", "parameters": {"scale": "2"}},
        {"field": "at", "type": "int64", "name": f"{connect}Timestamp"},
    ]
    after = {"id": 7, "price": base64.b64encode(unscaled).decode(), "at": 1795214323797, "bio": bio}
    payload = {"before": None, "after": after, "source": {"table": "t"}, "op": "c", "ts_ms": 1}
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    expected = decoded_json(table, {"id": 7}, {"schema": schema, "payload": payload})
    assert isinstance(found, Change), found
    assert isinstance(expected, Change), expected
    assert (found.key, found.row) == (expected.key, expected.row)


def test_the_indexes_choose_the_message_also_within_a_message() -> None:
    outer = message("Outer", id="int32")
    outer.nested_type.extend([message("First", name="string"), message("Second", id="int32", x="string")])
    file = proto(message("Other", id="int32"), outer)
    made = classes(file)("app.Outer.Second")(id=7, x="a")
    data = framed(1, made, b"\4\2\2")  # two indexes, 1 and 1, each zigzag
    assert row(entity("t", "id", "id int, x string"), None, data, {1: schema_of(file)}) == {"id": 7, "x": "a"}


def test_imports_come_from_the_references_of_the_schema() -> None:
    unit = proto(message("Unit", code="string"), package="shared")
    unit.name = "unit.proto"
    money = proto(message("Money", amount="int64", unit=".shared.Unit"), package="shared", imports=["unit.proto"])
    money.name = "money.proto"
    file = proto(message("Row", id="int32", x=".shared.Money"), imports=["money.proto", "unit.proto"])
    made = classes(unit, money, file)("app.Row")(id=1, x={"amount": 5, "unit": {"code": "EUR"}})
    schemas = {1: schema_of(file, **{"money.proto": money, "unit.proto": unit})}
    found = row(entity("t", "id", "id int, x json"), None, framed(1, made), schemas)
    assert found == {"id": 1, "x": {"amount": 5, "unit": {"code": "EUR"}}}


ROW_FILE = proto(message("Row", id="int32", x=".google.type.Date"))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "value: the body does not fit schema 1: Unexpected EOF"),
        (b"\2\4\x08\1", "value: the body does not fit schema 1: the schema has no message [2]"),
        (b"\1", "value: the body does not fit schema 1: Invalid msgidx array length"),
        (b"\0\x08", "value: the body does not fit schema 1: "),
        (b"\0\x08\1\x12\4\x08\1\x10\x0d", "value: the body does not fit schema 1: "),
    ],
)
def test_poison_is_a_dead_letter_with_a_reason(body: bytes, why: str) -> None:
    table = entity("t", "id", "id int, x date")
    assert reason(table, None, head(1) + body, {1: schema_of(ROW_FILE)}).startswith(why)


def test_a_registry_that_does_not_compile_schemas_is_named() -> None:
    schemas: Mapping[int, WriterSchema] = {1: WriterSchema("PROTOBUF", 'syntax = "proto3"; message R {}', {})}
    why = "value: schema 1 cannot be read: the registry gives the schema as text, not compiled (format=serialized)"
    assert reason(entity("t", "id", "id int"), None, head(1) + b"\0", schemas) == why


@given(body=st.binary(max_size=60))
@settings(max_examples=100)
def test_no_body_raises(body: bytes) -> None:
    result = decoded(entity("t", "id", "id int"), head(1) + body, head(1) + body, {1: schema_of(envelope_file())})
    assert isinstance(result, Change | Rejected) or result is not None
