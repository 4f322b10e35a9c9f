"""Every store gives back the values that it took, and refuses those that it cannot keep."""

from decimal import Decimal
from typing import Any

import pytest

from statestore.limits import MAX_CHANGES
from statestore.store import Done, Store, Terminal, Write
from tests.contract.stored_items import KEY, item, put, read


@pytest.mark.parametrize(
    ("written", "back"),
    [
        ("", ""),
        ("ünï → 🐙", "ünï → 🐙"),
        (None, None),
        (True, True),
        (False, False),
        (0, 0),
        (-42, -42),
        (2**63, 2**63),
        (10**40, 10**40),
        (Decimal("42.00"), 42),
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal("-0.0000001"), Decimal("-0.0000001")),
        (Decimal("12345678901234567890.123456789012345678"), Decimal("12345678901234567890.123456789012345678")),
        (99999999999999999999999999999999999999, 99999999999999999999999999999999999999),
        ([1, "a", None, [True]], [1, "a", None, [True]]),
        ((1, 2), [1, 2]),
        ({"json": "{}", "deep": {"n": Decimal("0.10")}}, {"json": "{}", "deep": {"n": Decimal("0.1")}}),
        (b"", b""),
        (b"\x00\xff", b"\x00\xff"),
        ([], []),
        ({}, {}),
    ],
)
def test_a_value_is_read_back_exactly(store: Store, written: Any, back: Any) -> None:
    put(store, value=written)
    found = read(store)

    assert found == item(value=back)
    assert repr(found["value"]) == repr(back)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (1.5, "a float cannot be stored exactly; give an int or a Decimal"),
        ([{"a": 1.5}], "a float cannot be stored exactly"),
        (10**38 + 1, "a number beyond 38 digits"),
        (Decimal("1E+126"), "a number beyond 38 digits or beyond 1E-130"),
        (Decimal("1E-131"), "a number beyond 38 digits or beyond 1E-130"),
        (Decimal("NaN"), "NaN is not a number that can be stored"),
        ({1: "a"}, "1 cannot name an entry of a map"),
        ("\ud83d", "a text with half a surrogate pair has no UTF-8"),
    ],
)
def test_a_value_that_cannot_be_kept_exactly_is_refused_by_name(store: Store, value: Any, complaint: str) -> None:
    with pytest.raises(Terminal, match=f"TABLE#user / octocat: attribute stars: {complaint}"):
        store.write(Write(key=KEY, set={"stars": value}))

    assert read(store) is None


def test_columns_called_almost_like_our_own_attributes_are_ordinary(store: Store) -> None:
    columns: dict[str, Any] = {
        "GSI_code": None,
        "prev_name": "",
        "size": 1,
        "#a0": 2,
        ":v0": 3,
        "a.b": 4,
        "Größe": 5,
        "PK2": "",
    }
    assert store.write(Write(key=KEY, set=columns)) == Done(None)

    assert read(store) == item(**columns)


@pytest.mark.moto_lies("its parser recurses once an attribute, beyond Python's usual limit")
def test_the_widest_write_is_taken(store: Store) -> None:
    columns: dict[str, Any] = {f"column_{number}": number for number in range(MAX_CHANGES - 6)}
    copies = {f"prev_{k}": f"GSI_{k}" for k in (1, 2, 3)}
    write = Write(key=KEY, set=columns | {"GSI_1": "a"}, copy=copies, remove=("gone", "older"))
    assert store.write(write) == Done(None)
    assert store.write(write) == Done(item(**columns, GSI_1="a"))
