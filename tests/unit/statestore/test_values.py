"""Values on their way to DynamoDB and back, over generated values."""

from decimal import Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from statestore import values

TEXT = st.text(st.characters(codec="utf-8"))
DECIMAL = st.builds(
    lambda digits, exponent: Decimal(digits).scaleb(exponent), st.integers(-(10**37), 10**37), st.integers(-90, 0)
)
SCALAR = TEXT | st.integers(-(10**37), 10**37) | DECIMAL | st.booleans() | st.none()
NAME = st.text(st.characters(codec="utf-8"), min_size=1)
VALUE = st.recursive(SCALAR, lambda inner: st.lists(inner) | st.dictionaries(NAME, inner), max_leaves=8)


@given(VALUE)
def test_a_reader_gets_an_equal_value_and_writes_back_the_same(value: Any) -> None:
    back = values.decode(values.encode(values.canonical(value)))

    assert back == value
    assert repr(values.canonical(back)) == repr(back) == repr(values.canonical(value))


@given(VALUE)
def test_boto3_reads_our_encoding_as_the_same_value(value: Any) -> None:
    canonical = values.canonical(value)

    assert TypeDeserializer().deserialize(values.encode(canonical)) == value
    assert values.decode(TypeSerializer().serialize(canonical)) == value


@given(VALUE, st.integers(0, 200))
def test_an_item_fits_exactly_when_its_bytes_do(value: Any, limit: int) -> None:
    canonical = values.canonical(value)

    assert values.fits({"näme": canonical}, limit) == (len("näme".encode()) + values.size(canonical) <= limit)
