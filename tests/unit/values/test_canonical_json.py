"""The JSON reader and writer are exact."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.values import canonical_json

scalars = (
    st.none()
    | st.booleans()
    | st.integers(min_value=-(10**60), max_value=10**60)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(values)
def test_a_written_value_is_read_back_equal(value: object) -> None:
    assert canonical_json.loads(canonical_json.dumps(value)) == value
    assert canonical_json.encode(value) == canonical_json.dumps(value).encode()


@pytest.mark.parametrize(
    "text",
    ['{"b":1,"a":[1.50,-0.0]}', "9223372036854775807", "12345678901234567890.123456789012345678", '"é\\n😀"', "null"],
)
def test_compact_text_is_written_back_unchanged(text: str) -> None:
    assert canonical_json.dumps(canonical_json.loads(text)) == text
    assert canonical_json.loads(text.encode()) == canonical_json.loads(text)


def test_exponents_are_kept() -> None:
    assert canonical_json.loads("1e999999999") == Decimal("1e999999999")
    assert canonical_json.dumps(Decimal("1e999999999")) == "1E+999999999"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not JSON: expecting value at character 1"),
        (b'{"a":1} x', "not JSON: extra data at character 8"),
        (b"\xff", "not UTF-8 at byte 1"),
        (b"[NaN]", "not JSON: NaN"),
        (b"-Infinity", "not JSON: -Infinity"),
        (b"1e99999999999999999999", "not JSON: a number with too large an exponent"),
        (b"1" * 5000, "not JSON: a number of too many digits"),
        (b"[" * 201 + b"]" * 201 + b" " * 400, "nested more than 200 levels"),
        (b'{"a":' * 100_000, "nested more than 200 levels"),
        (b'["\\ud83d"]', "not Unicode: half of a surrogate pair"),
    ],
)
def test_text_that_is_not_json_is_refused_with_a_reason(text: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^") as caught:
        canonical_json.loads(text)
    assert str(caught.value) == reason


def test_200_levels_are_read() -> None:
    assert canonical_json.loads("[" * 200 + "1" + "]" * 200 + " " * 400)


@pytest.mark.parametrize("value", [float("nan"), Decimal("NaN"), Decimal("Infinity"), "\ud800"])
def test_values_without_a_json_form_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"JSON compliant|surrogates"):
        canonical_json.dumps(value)


def test_equality_compares_numbers_by_value_ignores_member_order_and_separates_true_from_one() -> None:
    assert canonical_json.equal({"a": 1, "b": [None, Decimal("1.50")]}, {"b": [None, Decimal("1.5")], "a": 1})
    assert not canonical_json.equal({"a": [True]}, {"a": [1]})
    assert not canonical_json.equal([1, 2], [2, 1])
    assert not canonical_json.equal({"a": None}, {})
