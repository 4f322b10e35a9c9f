"""Writes that add numbers, and writes of several items in one transaction, in every store."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from statestore.keys import Key
from statestore.store import Absent, Condition, Done, Equals, Refused, Store, Terminal, TooLarge, Write
from tests.contract.stored_items import KEY, item, put, read

TOTAL, OTHER = Key("TOTAL#1#star#who=a", "0"), Key("TOTAL#1#star#who=b", "0")


def adding(numbers: Mapping[Key, Any], when: Condition | None = None, **attributes: Any) -> Write:
    also = tuple(Write(key, {"_f": 1}, add={"n": number}) for key, number in numbers.items())
    return Write(KEY, attributes, when=when, also=also)


def test_a_write_adds_numbers_exactly(store: Store) -> None:
    assert store.write(Write(TOTAL, {"_f": 1}, add={"n": 2, "s": Decimal("0.1")})) == Done(None)
    store.write(Write(TOTAL, {}, add={"n": -3, "s": Decimal("0.20"), "t": 10**24}))

    assert read(store, TOTAL) == item(TOTAL, _f=1, n=-1, s=Decimal("0.3"), t=10**24)


def test_a_transaction_writes_all_items_or_none(store: Store) -> None:
    assert store.write(adding({TOTAL: 1}, Absent(), v="1")) == Done(None)
    assert store.write(adding({TOTAL: 1}, Absent(), v="1")) == Refused(item(v="1"))
    assert store.write(adding({TOTAL: -1, OTHER: 1}, Equals("v", "1"), v="2")) == Done(None)
    assert store.write(adding({TOTAL: -1, OTHER: 1}, Equals("v", "1"), v="2")) == Refused(item(v="2"))

    assert [read(store, key) for key in (KEY, TOTAL, OTHER)] == [
        item(v="2"),
        item(TOTAL, _f=1, n=0),
        item(OTHER, _f=1, n=1),
    ]


def test_a_row_that_is_too_large_adds_nothing(store: Store) -> None:
    put(store, v="1", wide="x" * 300_000)

    assert store.write(adding({TOTAL: 1}, Equals("v", "1"), v="2", more="x" * 200_000)) == TooLarge()
    assert read(store, TOTAL) is None


def test_the_transactions_of_a_turn_may_add_to_one_item(store: Store) -> None:
    writes = [
        Write(Key("TABLE#star", str(n)), {"v": "1"}, when=Absent(), also=adding({TOTAL: n}).also) for n in range(5)
    ]

    assert store.write_all(writes) == [Done(None)] * 5
    again = store.write_all([*writes, adding({TOTAL: 100}, Absent(), v="1")])
    assert [type(one) for one in again] == [*[Refused] * 5, Done]
    assert read(store, TOTAL) == item(TOTAL, _f=1, n=110)


def test_only_the_first_write_of_a_transaction_has_a_condition(store: Store) -> None:
    (total,) = adding({TOTAL: 1}).also
    with pytest.raises(Terminal, match="has a condition"):
        store.write(Write(KEY, {"v": "1"}, also=(total._replace(when=Absent()),)))


@pytest.mark.moto_lies("it fails with HTTP 500 for a number with an exponent")
def test_a_sum_beyond_38_digits_is_terminal(store: Store) -> None:
    store.write(Write(TOTAL, {}, add={"n": 1}))
    with pytest.raises(Terminal):
        store.write(Write(TOTAL, {}, add={"n": Decimal("1E-38")}))


def test_transactions_of_one_total_wait_for_each_other(store: Store) -> None:
    rows = [Key("TABLE#star", str(n)) for n in range(24)]
    with ThreadPoolExecutor(8) as pool:
        done = list(
            pool.map(lambda key: store.write(Write(key, {"v": "1"}, when=Absent(), also=adding({TOTAL: 1}).also)), rows)
        )

    # Where the proxy loses an answer, the row is there, so the write is refused.
    assert all(one in (Done(None), Refused(item(key, v="1"))) for one, key in zip(done, rows, strict=True))
    assert read(store, TOTAL) == item(TOTAL, _f=1, n=len(rows))
