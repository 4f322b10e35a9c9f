"""When every store does a write or a delete, and when it refuses."""

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from statestore.store import (
    Absent,
    AbsentOrBelow,
    AbsentOrWithin,
    Condition,
    Delete,
    Done,
    Equals,
    Item,
    Query,
    Refused,
    Store,
    Write,
)
from tests.contract.stored_items import KEY, item, put, read

UNLIKE = pytest.mark.moto_lies("it compares values of different types, and nothing with null, as Python does")

WITHIN = AbsentOrWithin("v", "1.2", "1.2.5")
UNMARKED = AbsentOrWithin("v", "1.2", "1.2.5", lacks="mark")

HOLD: list[tuple[dict[str, Any] | None, Condition]] = [
    (None, Absent()),
    (None, AbsentOrBelow("v", "5")),
    ({"v": "4"}, AbsentOrBelow("v", "5")),
    ({"v": "49"}, AbsentOrBelow("v", "5")),
    ({"v": 9}, AbsentOrBelow("v", 10)),
    ({"v": Decimal("9.99")}, AbsentOrBelow("v", 10)),
    ({"v": "\uffff"}, AbsentOrBelow("v", "\U00010000")),
    (None, WITHIN),
    ({"v": "1.2"}, WITHIN),
    ({"v": "1.2.4"}, WITHIN),
    (None, UNMARKED),
    ({"v": "1.2.4"}, UNMARKED),
    ({"v": "5"}, Equals("v", "5")),
    ({"v": 5}, Equals("v", Decimal("5.0"))),
    ({"v": None}, Equals("v", None)),
    ({"v": [1, {"a": "b"}]}, Equals("v", [1, {"a": "b"}])),
]
REFUSE = [
    ({"v": "4"}, Absent()),
    ({"v": "5"}, AbsentOrBelow("v", "5")),
    ({"v": "6"}, AbsentOrBelow("v", "5")),
    pytest.param({"v": 9}, AbsentOrBelow("v", "10"), marks=UNLIKE),
    pytest.param({"v": "9"}, AbsentOrBelow("v", 10), marks=UNLIKE),
    ({"v": None}, AbsentOrBelow("v", "5")),
    pytest.param({"v": True}, AbsentOrBelow("v", 10), marks=UNLIKE),
    pytest.param({"v": ["4"]}, AbsentOrBelow("v", "5"), marks=UNLIKE),
    ({"other": "4"}, AbsentOrBelow("v", "5")),
    ({"v": "0.9.9"}, WITHIN),
    ({"v": "1"}, WITHIN),
    ({"v": "1.1.9"}, WITHIN),
    ({"v": "1.2.5"}, WITHIN),
    ({"v": "1.3.0"}, WITHIN),
    ({"other": "0"}, WITHIN),
    ({"v": "1.2.5"}, UNMARKED),
    ({"v": "1.2.4", "mark": True}, UNMARKED),
    ({"v": "1.2.4", "mark": None}, UNMARKED),
    (None, Equals("v", "5")),
    ({"v": "4"}, Equals("v", "5")),
    pytest.param({"v": 1}, Equals("v", True), marks=UNLIKE),
    ({"v": 5}, Equals("v", "5")),
    pytest.param({"other": "5"}, Equals("v", None), marks=UNLIKE),
]


def _put_or_none(store: Store, attributes: dict[str, Any] | None) -> Item | None:
    if attributes is None:
        return None
    put(store, **attributes)
    return item(**attributes)


@pytest.mark.parametrize(("attributes", "when"), HOLD)
def test_a_write_is_done_when_its_condition_holds(
    store: Store, attributes: dict[str, Any] | None, when: Condition
) -> None:
    before = _put_or_none(store, attributes)

    assert store.write(Write(key=KEY, set={"new": 1}, when=when)) == Done(before)
    assert read(store) == {**item(new=1), **(before or {})}


@pytest.mark.parametrize(("attributes", "when"), REFUSE)
def test_a_refused_write_returns_the_stored_item_and_changes_nothing(
    store: Store, attributes: dict[str, Any] | None, when: Condition
) -> None:
    before = _put_or_none(store, attributes)

    assert store.write(Write(key=KEY, set={"new": 1, "GSI_1": "a"}, when=when)) == Refused(before)
    assert read(store) == before
    assert store.query(Query(slot="GSI_1", value="a")) == []


@pytest.mark.moto_lies("of two conditional writes at the same moment, it may do both")
def test_of_many_first_writes_at_once_one_is_done(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: store.write(Write(key=KEY, set={"n": n}, when=Absent())), range(24)))

    assert [type(outcome) for outcome in outcomes].count(Done) == 1
    assert all(outcome.current == read(store) for outcome in outcomes if isinstance(outcome, Refused))


def test_a_delete_returns_the_former_item(store: Store) -> None:
    put(store, name="Mona", GSI_1="a")

    assert store.delete(Delete(key=KEY)) == Done(item(name="Mona", GSI_1="a"))
    assert read(store) is None
    assert store.query(Query(slot="GSI_1", value="a")) == []


def test_a_delete_without_an_item_is_done(store: Store) -> None:
    assert store.delete(Delete(key=KEY)) == Done(None)


def test_a_refused_delete_returns_the_stored_item_and_changes_nothing(store: Store) -> None:
    assert store.delete(Delete(key=KEY, when=Equals("v", "5"))) == Refused(None)
    put(store, v="6")

    assert store.delete(Delete(key=KEY, when=Equals("v", "5"))) == Refused(item(v="6"))
    assert store.delete(Delete(key=KEY, when=Equals("v", "6"))) == Done(item(v="6"))
