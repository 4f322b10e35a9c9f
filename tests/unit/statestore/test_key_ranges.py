"""Many keys of a partition are read by ranges where that costs less, and never for much more."""

from collections.abc import Collection
from decimal import Decimal

import pytest

from statestore.key_ranges import CALLS, FIRST, MANY, TRIES, KeyRanges, RangePage
from statestore.keys import Key
from statestore.memory import MemoryStore, MeteredStore
from statestore.store import Item, Write

ROW = {"body": "x" * 150}


def key(number: int, pk: str = "TABLE#repo") -> Key:
    return Key(pk, f"{number:06}")


def stored(rows: int, **values: str) -> MeteredStore:
    store = MeteredStore(1)
    for n in range(rows):
        MemoryStore.write(store, Write(key(n), {"_v": "1", **(values or ROW)}))
    store.requests.clear()
    return store


def units(store: MeteredStore, keys: Collection[Key], *, weak: bool = False) -> tuple[Decimal, dict[Key, Item]]:
    before = store.read_units
    found = store.get_weak(keys) if weak else store.get(keys)
    return store.read_units - before, found


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("every", [1, 3, 7])
def test_wanted_rows_that_are_close_together_cost_a_part_of_their_reads_by_key(every: int, weak: bool) -> None:
    store = stored(6_000)
    wanted = [key(n) for n in range(0, 6_000, every)]
    cost, found = units(store, wanted, weak=weak)
    assert list(found) == wanted
    assert cost * (2 if weak else 1) < len(wanted) * 0.06 * every + FIRST


def test_wanted_rows_that_are_far_apart_cost_what_their_keys_cost() -> None:
    store = stored(6_000)
    wanted = [key(n) for n in range(0, 6_000, 50)]
    for _ in range(3):
        cost, found = units(store, wanted)
        assert list(found) == wanted
        assert cost == len(wanted)
    assert store.requests == {"Query": TRIES, "BatchGetItem": 3 * 2}


def test_a_partition_is_asked_for_a_range_again_after_some_calls() -> None:
    store = stored(6_000)
    wanted = [key(n) for n in range(0, 6_000, 50)]
    for _ in range(CALLS + 1):
        units(store, wanted)
    assert store.requests["Query"] == TRIES
    units(store, wanted)
    assert store.requests["Query"] == 2 * TRIES


def test_large_rows_behind_small_ones_cost_no_more_than_the_small_ones_saved() -> None:
    """Each large row has 40 KB, and nobody wants them."""
    store = stored(300)
    for n in range(300, 2_000):
        MemoryStore.write(store, Write(key(n), {"_v": "1", "body": "x" * (40_000 if n % 50 else 10)}))
    wanted = [key(n) for n in (*range(300), *range(300, 2_000, 50))]
    cost, found = units(store, wanted)
    assert list(found) == wanted
    assert cost < len(wanted) + FIRST * 10  # one small page of large rows


def test_few_keys_of_a_partition_are_read_by_key() -> None:
    store = stored(MANY)
    wanted = [key(n) for n in range(MANY - 1)]
    assert units(store, [*wanted, key(0, "TABLE#user")])[0] == MANY
    assert store.requests == {"BatchGetItem": 1}


def test_keys_without_a_row_are_answered_too() -> None:
    store = stored(200)
    wanted = [key(n) for n in range(150, 400)]
    cost, found = units(store, wanted)
    assert list(found) == wanted[:50]
    assert cost < 10


def test_the_keys_of_several_partitions_are_found() -> None:
    store = stored(200)
    for n in range(5):
        MemoryStore.write(store, Write(key(n, "TABLE#user"), {"_v": "1"}))
    wanted = [*(key(n) for n in range(200)), *(key(n, "TABLE#user") for n in range(6))]
    assert set(units(store, wanted)[1]) == set(wanted[:-1])


def test_a_page_ends_where_it_says_and_the_next_one_begins_at_the_next_wanted_key() -> None:
    asked: list[tuple[str, int]] = []

    def ask(_pk: str, first: str, _last: str, limit: int, wanted: Collection[str]) -> RangePage:
        asked.append((first, limit))
        end = f"{int(first) + limit - 1:06}"
        items: list[tuple[Key, Item]] = [
            (key(n), {}) for n in range(int(first), int(first) + limit) if f"{n:06}" in wanted
        ]
        return RangePage(items, limit, limit / 16, end if int(end) < 998 else None)

    keys = [key(n) for n in range(0, 1_000, 2)]
    found, rest = KeyRanges().read(keys, ask)
    assert (list(found), list(rest)) == (keys, [])
    assert asked[:3] == [("000000", 16), ("000016", 128), ("000144", 1024)]
