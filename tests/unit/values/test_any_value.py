"""What holds for every value: numbers and instants keep what they are, and whatever comes, only ValueError is raised."""

import base64
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from processor.values.entity import ColumnType, parse_type
from processor.values.values import DEBEZIUM, PLAIN, Reading, canonical_value
from tests.unit.values.test_values import BASE64_2, TYPES


@given(st.integers(min_value=-(10**38) + 1, max_value=10**38 - 1), st.integers(min_value=0, max_value=38))
def test_debezium_bytes_are_read_exactly(unscaled: int, scale: int) -> None:
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    text = base64.b64encode(unscaled.to_bytes(length, "big", signed=True)).decode()
    value = canonical_value(text, ColumnType(name="decimal"), Reading(text="bytes", scale=scale))
    assert value == Decimal(f"{unscaled}E-{scale}")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=10))
def test_equal_decimals_have_equal_text(number: Decimal) -> None:
    one = canonical_value(number, ColumnType(name="decimal"))
    other = canonical_value(f"{number:f}000", ColumnType(name="decimal"))
    assert str(one) == str(other)
    assert one == number


@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e100, max_value=1e100, allow_subnormal=False))
def test_a_float_is_the_shortest_decimal_of_its_double(number: float) -> None:
    if number and abs(number) < 1e-130:
        return
    assert float(canonical_value(Decimal(repr(number)), ColumnType(name="float"))) == number


@given(st.datetimes(), st.integers(min_value=-23 * 60, max_value=23 * 60))
def test_an_instant_has_one_text_whatever_its_zone(moment: datetime, minutes: int) -> None:
    try:
        local = moment + timedelta(minutes=minutes)
    except OverflowError:
        return
    sign, hours = "+" if minutes >= 0 else "-", divmod(abs(minutes), 60)
    text = f"{local.isoformat()}{sign}{hours[0]:02d}:{hours[1]:02d}"
    column = ColumnType(name="timestamp")
    assert canonical_value(text, column) == canonical_value(moment.isoformat() + "Z", column)
    micros = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert canonical_value(micros, ColumnType(name="timestamp", unit="us")) == canonical_value(text, column)


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.decimals() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["scale", "value"]) | st.text(), inner),
    max_leaves=8,
)


@given(
    st.sampled_from(TYPES),
    st.booleans(),
    st.sampled_from([PLAIN, DEBEZIUM, BASE64_2, Reading(text="json")]),
    anything,
)
def test_only_value_errors_are_raised(text: str, array: bool, reading: Reading, value: Any) -> None:
    column = parse_type(f"{text}[]" if array else text)
    try:
        result = canonical_value(value, column, reading)
    except ValueError:
        return
    if column.name not in ("json", "date", "timestamp") and reading is PLAIN:
        assert canonical_value(result, column) == result
