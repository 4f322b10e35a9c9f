"""How keys are spelt: what every reader of a key relies on, over generated keys."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from statestore import keys
from statestore.keys import LIMIT, Key

TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.text(st.sampled_from("#!%~25a"), max_size=6)
LONG = st.text(st.characters(codec="utf-8"), min_size=250, max_size=1200)
NUMBER = st.integers() | st.decimals(allow_nan=False, allow_infinity=False, places=3)
TEXTS = st.lists(TEXT, min_size=1, max_size=4)


def part_bytes(key: str | None) -> int:
    assert key is not None
    return len(key.encode())


@given(TEXTS, TEXTS)
def test_two_different_texts_never_have_one_spelling(one: list[str], other: list[str]) -> None:
    assert (keys.spell(one) == keys.spell(other)) == (one == other)


@given(st.lists(LONG, min_size=1, max_size=2), st.lists(LONG, min_size=1, max_size=2))
def test_keys_past_the_limit_stay_different(one: list[str], other: list[str]) -> None:
    assert (keys.spell(one) == keys.spell(other)) == (one == other)


def test_keys_that_differ_only_past_the_limit_stay_different() -> None:
    assert keys.spell(["x" * 2000 + "a"]) != keys.spell(["x" * 2000 + "b"])


@given(NUMBER, NUMBER)
def test_two_numbers_have_one_spelling_exactly_if_they_are_equal(one: int | Decimal, other: int | Decimal) -> None:
    assert (keys.spell([one]) == keys.spell([other])) == (one == other)


@given(st.integers(-(10**6), 10**6), st.integers(0, 9))
def test_a_number_is_spelt_alike_whatever_holds_it(number: int, zeros: int) -> None:
    spelt = keys.spell([number])

    assert spelt == str(number)
    assert keys.spell([Decimal(f"{number}.{'0' * zeros}")]) == spelt
    assert keys.spell([Decimal(number).normalize()]) == spelt
    assert keys.spell([float(number)]) == spelt


@pytest.mark.parametrize(
    ("value", "spelt"),
    [
        (42, "42"),
        (42.0, "42"),
        (Decimal("42.00"), "42"),
        (Decimal("4.2E+1"), "42"),
        (Decimal("-0.00"), "0"),
        (-0.0, "0"),
        (0.1, "0.1"),
        (Decimal("1E-7"), "0.0000001"),
        (True, "true"),
        ("octocat", "octocat"),
        ("a b/c", "a b/c"),
        ("a#b", "a%23b"),
        ("50%", "50%25"),
        ("!a!", "%21a!"),
        ("", "%"),
    ],
)
def test_ordinary_values_are_readable(value: object, spelt: str) -> None:
    assert keys.spell([value]) == spelt
    assert keys.spell([value, "x"]) == f"{spelt}#x"


@given(st.lists(TEXT | NUMBER | st.booleans() | LONG, min_size=1, max_size=4))
def test_a_key_is_never_empty_and_never_past_the_limit(parts: list[object]) -> None:
    assert 1 <= part_bytes(keys.spell(parts)) <= LIMIT


def test_a_key_of_exactly_the_limit_is_not_cut() -> None:
    assert keys.spell(["x" * LIMIT]) == "x" * LIMIT
    assert part_bytes(keys.spell(["x" * (LIMIT + 1)])) == LIMIT


@given(st.lists(TEXT | st.none(), min_size=1, max_size=4))
def test_null_joins_nothing(parts: list[str | None]) -> None:
    assert (keys.spell(parts) is None) == (None in parts)


@given(st.lists(TEXT | LONG | NUMBER | st.booleans(), min_size=1, max_size=4), TEXTS)
def test_no_value_is_spelt_like_the_absence_of_one(parts: list[object], key: list[str]) -> None:
    sk = keys.spell(key)
    assert sk is not None
    absence = keys.no_key(keys.row_key("user", 1, sk))

    assert keys.spell(parts) != absence
    assert keys.is_no_key(absence)
    assert not keys.is_no_key(keys.spell(parts) or "")


@given(TEXTS | st.lists(LONG, min_size=1), TEXTS | st.lists(LONG, min_size=1), st.sampled_from(["a", "ab"]))
def test_the_absence_of_a_key_is_each_rows_own(one: list[str], other: list[str], entity: str) -> None:
    here = Key("TABLE#a", keys.spell(one) or "")
    there = Key(f"TABLE#{entity}", keys.spell(other) or "")

    assert (keys.no_key(here) == keys.no_key(there)) == (here == there)
    assert len(keys.no_key(here).encode()) <= LIMIT


@given(st.integers(1, 100), TEXTS)
def test_a_row_is_always_in_the_same_shard_of_its_entity(shards: int, parts: list[str]) -> None:
    sk = keys.spell(parts)
    assert sk is not None
    pk = keys.partition("star", shards, sk)

    assert pk == keys.partition("star", shards, sk)
    assert pk in keys.partitions("star", shards)
    assert keys.entity_of(pk) == "star"
    assert pk == "TABLE#star" if shards == 1 else 0 <= int(pk.removeprefix("TABLE#star#")) < shards


def test_a_value_that_makes_no_key_is_refused() -> None:
    with pytest.raises(TypeError, match="a list cannot be part of a key"):
        keys.spell([["a"]])
