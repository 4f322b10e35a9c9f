"""How every store reads items by key, and how it counts requests."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from statestore.keys import Key
from statestore.store import Absent, Delete, Query, Store, Write
from tests.contract.stored_items import KEY, item, put


@pytest.mark.parametrize("weak", [False, True])
def test_keys_are_read_at_once_and_missing_ones_left_out(store: Store, weak: bool) -> None:
    """No store here is late with a weak read; the simulator has one that is."""
    other = Key("TABLE#star", "octocat")
    put(store, name="Mona")
    put(store, other, name="star")
    found = (store.get_weak if weak else store.get)([KEY, Key("TABLE#user", "hubot"), other, KEY])

    assert found == {KEY: item(name="Mona"), other: item(other, name="star")}


@pytest.mark.counted
@pytest.mark.bundled
def test_250_keys_cost_three_requests_however_often_each_is_named(store: Store) -> None:
    """Each partition has too few of them for a range."""
    keys = [Key(f"TABLE#user#{number % 3:02}", f"{number:03d}") for number in range(250)]
    for key in keys[::10]:
        put(store, key, name=key.sk)
    store.requests.clear()

    assert store.get(keys + keys) == {key: item(key, name=key.sk) for key in keys[::10]}
    assert store.requests == Counter(BatchGetItem=3)
    assert store.get_weak(keys + keys) == store.get(keys)
    assert store.requests == Counter(BatchGetItem=9)


@pytest.mark.parametrize("weak", [False, True])
@pytest.mark.parametrize("every", [2, 40])
def test_many_keys_of_a_partition_are_all_read(store: Store, weak: bool, every: int) -> None:
    """The wanted rows are close together, or far apart; some are not there."""
    for number in range(150):
        put(store, Key("TABLE#user", f"{number:05d}"), name=f"{number}")
    keys = [Key("TABLE#user", f"{number:05d}") for number in range(0, 120 * every, every)]

    found = (store.get_weak if weak else store.get)(keys)
    assert found == {key: item(key, name=f"{int(key.sk)}") for key in keys if int(key.sk) < 150}


def test_no_keys_cost_nothing(store: Store) -> None:
    assert store.get([]) == store.get_weak([]) == {}
    assert store.requests.total() == 0


@pytest.mark.long_on("faulty_dynamodb_local")
def test_items_of_more_than_16_mb_are_all_read(store: Store) -> None:
    keys = [Key("TABLE#user", f"{number:02d}") for number in range(60)]
    for key in keys:
        put(store, key, body="x" * 300_000)

    assert store.get(keys).keys() == set(keys)


@pytest.mark.counted
def test_requests_are_counted_by_their_names(store: Store) -> None:
    store.write(Write(key=KEY, set={"GSI_1": "a"}))
    store.write(Write(key=KEY, set={"a": 1}, when=Absent()))
    store.delete(Delete(key=KEY))
    store.get([KEY])
    store.query(Query(slot="GSI_1", value="a"))

    assert store.requests == Counter(UpdateItem=2, DeleteItem=1, BatchGetItem=1, Query=1)


@pytest.mark.counted
def test_the_requests_of_many_threads_are_all_counted(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: put(store, n=n), range(24)))

    assert store.requests == Counter(UpdateItem=24)
