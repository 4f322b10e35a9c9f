"""The encoding of keys: the properties that every reader relies on, over generated keys."""

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
def test_two_different_texts_never_have_one_key(one: list[str], other: list[str]) -> None:
    assert (keys.encode(one) == keys.encode(other)) == (one == other)


@given(st.lists(LONG, min_size=1, max_size=2), st.lists(LONG, min_size=1, max_size=2))
def test_keys_past_the_limit_stay_different(one: list[str], other: list[str]) -> None:
    assert (keys.encode(one) == keys.encode(other)) == (one == other)


def test_keys_that_differ_only_past_the_limit_stay_different() -> None:
    assert keys.encode(["x" * 2000 + "a"]) != keys.encode(["x" * 2000 + "b"])


@given(NUMBER, NUMBER)
def test_two_numbers_have_one_key_exactly_if_they_are_equal(one: int | Decimal, other: int | Decimal) -> None:
    assert (keys.encode([one]) == keys.encode([other])) == (one == other)


@given(st.integers(-(10**6), 10**6), st.integers(0, 9))
def test_int_decimal_and_float_give_one_key_for_one_number(number: int, zeros: int) -> None:
    encoded = keys.encode([number])

    assert encoded == str(number)
    assert keys.encode([Decimal(f"{number}.{'0' * zeros}")]) == encoded
    assert keys.encode([Decimal(number).normalize()]) == encoded
    assert keys.encode([float(number)]) == encoded


@pytest.mark.parametrize(
    ("value", "encoded"),
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
def test_ordinary_values_are_readable(value: object, encoded: str) -> None:
    assert keys.encode([value]) == encoded
    assert keys.encode([value, "x"]) == f"{encoded}#x"


@given(st.lists(TEXT | NUMBER | st.booleans() | LONG, min_size=1, max_size=4))
def test_a_key_is_never_empty_and_never_past_the_limit(parts: list[object]) -> None:
    assert 1 <= part_bytes(keys.encode(parts)) <= LIMIT


def test_a_key_of_exactly_the_limit_is_not_cut() -> None:
    assert keys.encode(["x" * LIMIT]) == "x" * LIMIT
    assert part_bytes(keys.encode(["x" * (LIMIT + 1)])) == LIMIT


@given(st.lists(TEXT | st.none(), min_size=1, max_size=4))
def test_null_joins_nothing(parts: list[str | None]) -> None:
    assert (keys.encode(parts) is None) == (None in parts)


@given(st.lists(TEXT | LONG | NUMBER | st.booleans(), min_size=1, max_size=4), TEXTS)
def test_no_value_has_the_encoding_of_a_missing_key(parts: list[object], key: list[str]) -> None:
    sk = keys.encode(key)
    assert sk is not None
    absence = keys.no_key(keys.row_key("user", 1, sk))

    assert keys.encode(parts) != absence
    assert keys.is_no_key(absence)
    assert not keys.is_no_key(keys.encode(parts) or "")


@given(TEXTS | st.lists(LONG, min_size=1), TEXTS | st.lists(LONG, min_size=1), st.sampled_from(["a", "ab"]))
def test_each_row_has_its_own_encoding_of_a_missing_key(one: list[str], other: list[str], entity: str) -> None:
    here = Key("TABLE#a", keys.encode(one) or "")
    there = Key(f"TABLE#{entity}", keys.encode(other) or "")

    assert (keys.no_key(here) == keys.no_key(there)) == (here == there)
    assert len(keys.no_key(here).encode()) <= LIMIT


@given(st.integers(1, 100), TEXTS)
def test_a_row_is_always_in_the_same_shard_of_its_entity(shards: int, parts: list[str]) -> None:
    sk = keys.encode(parts)
    assert sk is not None
    pk = keys.partition("star", shards, sk)

    assert pk == keys.partition("star", shards, sk)
    assert pk in keys.partitions("star", shards)
    assert keys.entity_of(pk) == "star"
    assert pk == "TABLE#star" if shards == 1 else 0 <= int(pk.removeprefix("TABLE#star#")) < shards


def test_a_value_that_makes_no_key_is_refused() -> None:
    with pytest.raises(TypeError, match="a list cannot be part of a key"):
        keys.encode([["a"]])


def test_the_prefix_of_an_entity_begins_each_of_its_partitions_and_no_other() -> None:
    prefix = keys.partition_prefix("star")

    assert all(pk.startswith(prefix) for pk in keys.partitions("star", 12))
    assert not any(pk.startswith(prefix) for pk in keys.partitions("starred", 12))


def test_the_name_of_a_row_in_an_index_begins_with_its_entity_and_is_its_own() -> None:
    rows = [keys.row_key("star", shards, sk) for shards in (1, 12) for sk in ("a#b", "a#c", "x" * 1024)]
    names = [keys.index_row(row) for row in rows]

    assert names[0] == "star#a#b"
    assert len(set(names)) == 3
    assert all(len(name) <= keys.LIMIT and name.startswith(keys.index_rows("star")) for name in names)
    assert not any(name.startswith(keys.index_rows("sta")) for name in names)


def test_progress_has_partitions_of_its_own() -> None:
    assert keys.progress_partition("RUNS") == "RUNS"
    assert keys.progress_partition("LEDGER", "user_profile") == "LEDGER#user_profile"
