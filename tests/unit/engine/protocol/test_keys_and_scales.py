"""Keys that a converter wrote as text, and decimals whose source has another scale than their declaration."""

from decimal import Decimal
from typing import Any

import pytest

from processor.values.record import Rejected
from tests.unit.engine.protocol.decoding import change, decoded, entity, envelope, reason, with_schema

CODE = entity("t", "code", "code string, name string")
DECIMAL = "org.apache.kafka.connect.data.Decimal"
PRICE = entity("t", "id", "id int, price decimal(5,3)", decimals="bytes")


@pytest.mark.parametrize("key", [b"Struct{code=a}", b'"Struct{code=a}"', b"Struct{tenant=1,code=a}"])
def test_a_struct_as_text_is_no_key(key: bytes) -> None:
    for value in (None, {"name": "n"}, {"code": "a", "name": "n"}):
        result = decoded(CODE, key, value)
        assert isinstance(result, Rejected), result
        assert result.code == "key-shape"
        assert "JsonConverter" in result.reason


@pytest.mark.parametrize("key", [b"Struct{id=1}", b"Struct{id=1,n=2}"])
def test_a_struct_is_named_in_an_entity_with_another_key(key: bytes) -> None:
    assert "JsonConverter" in reason(entity("t", "id", "id int, n int"), key, None)
    assert "JsonConverter" in reason(entity("t", "id n", "id int, n int"), key, None)


@pytest.mark.parametrize("key", [b'"{\\"code\\":\\"a\\"}"', b'"[\\"a\\"]"', b'"{\\"payload\\":{\\"code\\":\\"a\\"}}"'])
def test_a_tombstone_whose_key_text_holds_json_is_a_dead_letter(key: bytes) -> None:
    result = decoded(CODE, key, None)
    assert isinstance(result, Rejected), result
    assert result.code == "key-shape"


@pytest.mark.parametrize(
    ("key", "code"), [(b"a", "a"), (b'"{a"', "{a"), (b'"[x] y"', "[x] y"), (b"Structure", "Structure")]
)
def test_other_text_is_the_key_of_a_tombstone(key: bytes, code: str) -> None:
    assert change(CODE, key, None) == ((code,), None)


@pytest.mark.parametrize(
    ("scale", "text", "number"),
    [("1", "AeJA", "12345.6"), ("3", "MDk=", "12.345"), ("0", "AeJA", "123456"), ("6", "AeJA", "0.123456")],
)
def test_the_scale_of_a_schema_counts_and_takes_more_digits_than_are_declared(
    scale: str, text: str, number: str
) -> None:
    fields = [{"field": "price", "type": "bytes", "name": DECIMAL, "parameters": {"scale": scale}}]
    plain = change(PRICE, None, with_schema({"id": 1, "price": text}, fields))[1]
    after = {"type": "struct", "fields": fields, "field": "after"}
    wrapped = change(PRICE, None, with_schema(envelope("c", after={"id": 1, "price": text}), [after]))[1]
    assert plain["price"] == wrapped["price"] == Decimal(number)
    assert change(PRICE, None, {"id": 1, "price": {"scale": int(scale), "value": text}})[1]["price"] == Decimal(number)


@pytest.mark.parametrize("text", ["AeJA", "AYag", "/np5wA=="])
def test_bytes_with_more_digits_than_the_declared_type_are_a_dead_letter(text: str) -> None:
    for value in (envelope("c", after={"id": 1, "price": text}), {"id": 1, "price": text}):
        result = decoded(PRICE, None, value)
        assert isinstance(result, Rejected), result
        assert result.code == "column-range"
        assert "the source has another precision or scale" in result.reason


@pytest.mark.parametrize(
    ("text", "number"), [("AYaf", "99.999"), ("/nlh", "-99.999"), ("MDk=", "12.345"), ("AA==", "0")]
)
def test_bytes_with_the_declared_digits_have_the_declared_scale(text: str, number: str) -> None:
    assert change(PRICE, None, envelope("c", after={"id": 1, "price": text}))[1]["price"] == Decimal(number)


def test_a_decimal_without_a_precision_takes_bytes_of_any_length() -> None:
    wide: Any = entity("t", "id", "id int, price decimal(38,3)", decimals="bytes")
    assert change(wide, None, envelope("c", after={"id": 1, "price": "AeJA"}))[1]["price"] == Decimal("123.456")
