"""What every store finds in an index with an order, in that order."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from statestore.dynamodb.store import DynamoStore
from statestore.keys import Key, index_row, order_text
from statestore.memory import MemoryStore, MeteredStore
from statestore.postgres import PostgresStore
from statestore.store import Delete, Query, Store, Terminal, Write
from statestore.table import FIRST_ORDERED, MAX_SLOTS, range_name
from tests.contract.stored_items import put, read

SLOT, NAME = "GSI_17", "GSI_SK_17"
STARS = Query(SLOT, "octocat", "star")
_made: dict[str, Any] = {}


@pytest.fixture(params=["memory", "postgres", "dynamodb_local", pytest.param("moto", marks=pytest.mark.rest)])
def wide(request: pytest.FixtureRequest) -> Store:
    """A table with all slots. The tests use different values, so they share it."""
    kind = request.param
    if kind not in _made:
        if kind == "memory":
            _made[kind] = MemoryStore(MAX_SLOTS)
        elif kind == "postgres":
            _made[kind] = PostgresStore(url=request.getfixturevalue(kind), table="ordered")
        else:
            _made[kind] = DynamoStore(table="ordered", endpoint_url=request.getfixturevalue(kind), region="eu-west-1")
        _made[kind].create(MAX_SLOTS)
    store: Store = _made[kind]
    for key in [Key(item["PK"], item["SK"]) for item in store.scan(None, 1000).items]:
        store.delete(Delete(key=key))
    return store


@pytest.fixture(scope="module", autouse=True)
def _closed() -> Iterator[None]:
    yield
    for store in _made.values():
        store.close()
    _made.clear()


def star(store: Store, number: int, at: int | None, *, value: str = "octocat") -> None:
    key = Key("TABLE#star", str(number))
    put(store, key, **{SLOT: value, NAME: index_row(key, order_text([(at, True)]))}, GSI_1=value)


def numbers(items: Any) -> list[int]:
    return [int(item["SK"]) for item in items]


def test_the_last_slots_have_range_keys_of_their_own() -> None:
    assert [range_name(f"GSI_{k}") for k in (1, 16, 17, 20)] == ["GSI_SK", "GSI_SK", "GSI_SK_17", "GSI_SK_20"]
    assert FIRST_ORDERED == 17


def test_a_page_begins_with_the_first_rows_of_the_order_and_goes_on_behind_a_name(wide: Store) -> None:
    for number, at in enumerate((5, None, 12, 7, -3, 100)):
        star(wide, number, at)
    put(wide, Key("TABLE#starred", "1"), **{SLOT: "octocat", NAME: index_row(Key("TABLE#starred", "1"))})

    assert numbers(wide.query(STARS)) == [5, 2, 3, 0, 4, 1]
    first = wide.page(STARS, None, 2)
    assert numbers(first.items) == [5, 2]
    rest = wide.page(STARS._replace(start=first.items[-1][NAME]), None, 10)
    assert numbers(rest.items) == [2, 3, 0, 4, 1]
    assert rest.after is None
    assert numbers(wide.query(Query("GSI_1", "octocat", "star"))) == [0, 1, 2, 3, 4, 5]


def test_a_row_whose_order_changes_moves_and_has_one_place(wide: Store) -> None:
    row = Key("TABLE#star", "1")
    star(wide, 1, 10)
    star(wide, 2, 20)
    former = wide.get([row])[row][NAME]
    star(wide, 1, 30)

    assert numbers(wide.query(STARS)) == [1, 2]
    assert wide.query(Query(SLOT, "octocat", row=row, name=former)) == []
    now = wide.get([row])[row][NAME]
    assert numbers(wide.query(Query(SLOT, "octocat", row=row, name=now))) == [1]
    assert wide.query(Query(SLOT, "hubot", row=row, name=now)) == []


def test_a_row_without_a_name_in_the_order_has_the_same_as_elsewhere(wide: Store) -> None:
    key = Key("TABLE#star", "9")
    put(wide, key, **{SLOT: "!none"})

    assert read(wide, key) == {"PK": key.pk, "SK": key.sk, SLOT: "!none", NAME: "star#9", "GSI_SK": "star#9"}
    assert numbers(wide.query(Query(SLOT, "!none", row=key))) == [9]


def test_a_walk_of_an_ordered_index_finds_every_row(wide: Store) -> None:
    for number in range(5):
        star(wide, number, number % 2)

    assert {key.sk for key in wide.walk(STARS, "_deleted")} == {"0", "1", "2", "3", "4"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({NAME: "star#1"}, "sets GSI_SK_17 without its slot"),
        ({SLOT: "a", NAME: ""}, "GSI_SK_17 is ''"),
        ({SLOT: "a", NAME: "x" * 1025}, "GSI_SK_17 has 1025 bytes"),
    ],
)
def test_a_write_of_a_name_that_no_index_takes_is_refused(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Terminal, match=complaint):
        MemoryStore(MAX_SLOTS).write(Write(Key("TABLE#star", "1"), given))


def _places(values: list[Any], *, descending: bool) -> list[str]:
    return [order_text([(value, descending)]) for value in values]


@pytest.mark.parametrize(
    "values",
    [
        [-(10**38), -1000, -99, -10, -9, -1, 0, 1, 9, 10, 99, 100, 101, 10**15, 10**38],
        [Decimal("-1.5"), Decimal("-1.25"), Decimal("-0.001"), Decimal(0), Decimal("0.0009"), Decimal("0.001"), 1, 2.5],
        ["", "\x00", "!", "a", "aa", "ab", "b", "é", "\ue000", "\U0001f600"],
        [False, True],
    ],
)
def test_places_have_the_order_of_the_values_up_and_down_with_nulls_last(values: list[Any]) -> None:
    up, down = _places(values, descending=False), _places(values, descending=True)

    assert up == sorted({*up})
    assert down == sorted({*down}, reverse=True)
    assert max(*up, *down) < order_text([(None, False)]) == order_text([(None, True)])
    for places in (up, down):
        assert not any(other.startswith(one) for one in places for other in places if one != other)


def test_random_places_of_two_terms_have_the_order_of_the_pairs() -> None:
    random = Random(7)
    pairs = [(random.choice(["", "a", "b", "bb"]), Decimal(random.randint(-999, 999)) / 10) for _ in range(300)]

    def place(pair: tuple[str, Decimal]) -> str:
        return order_text([(pair[0], False), (pair[1], True)])

    ordered = sorted(pairs, key=place)
    assert all((a[0], -a[1]) <= (b[0], -b[1]) for a, b in pairwise(ordered))


def test_values_that_differ_far_behind_have_one_place_and_never_a_wrong_one() -> None:
    assert order_text([("x" * 60 + "a", False)]) == order_text([("x" * 60 + "b", False)])
    assert order_text([(Decimal("1E+6000"), False)]) == order_text([(Decimal("2E+6000"), False)])
    assert order_text([(Decimal("1E+6000"), False)]) > order_text([(10**40, False)])
    assert order_text([(Decimal("1E-6000"), False)]) < order_text([(Decimal("0.1"), False)])
    assert order_text([(Decimal("-1E+6000"), False)]) < order_text([(-(10**40), False)])


def test_a_row_that_moves_in_an_order_takes_the_units_of_two_entries() -> None:
    store = MeteredStore(MAX_SLOTS)
    star(store, 1, 10)
    for at, units in ((20, 3), (20, 1)):  # the item and two entries; the item alone
        before = store.written
        star(store, 1, at)
        assert store.written - before == units
