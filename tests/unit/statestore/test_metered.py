"""What DynamoDB would charge, word for word as AWS documents it."""

from decimal import Decimal

import pytest

from statestore.keys import Key
from statestore.metered import MeteredStore
from statestore.store import Absent, Delete, Query, Write

ROW = Key("TABLE#star", "a")


@pytest.fixture
def store() -> MeteredStore:
    """A store that holds one row in one index, and has charged nothing yet."""
    store = MeteredStore(3)
    store.write(Write(key=ROW, set={"GSI_1": "x", "note": "n"}))
    store.written = 0
    return store


@pytest.mark.parametrize(
    ("write", "units"),
    [
        (Write(key=Key("TABLE#star", "b"), set={"note": "n"}), 1),
        (Write(key=Key("TABLE#star", "b"), set={"GSI_1": "x", "GSI_2": "y"}), 3),
        (Write(key=Key("TABLE#star", "b"), set={"note": "n" * 2000}), 2),
        (Write(key=ROW, set={"note": "m"}), 2),
        (Write(key=ROW, set={"GSI_1": "z"}), 3),
        (Write(key=ROW, set={"GSI_2": "z"}), 3),
        (Write(key=ROW, set={}, remove=("GSI_1",)), 2),
        (Write(key=ROW, set={"note": "m"}, when=Absent()), 1),
    ],
)
def test_a_write_is_charged_for_the_item_and_for_each_index(store: MeteredStore, write: Write, units: int) -> None:
    store.write(write)
    assert (store.written, store.read) == (units, Decimal(0))


def test_a_delete_is_charged_like_the_write_that_made_the_item(store: MeteredStore) -> None:
    store.delete(Delete(key=ROW))
    assert store.written == 2


def test_reads_are_charged_by_four_kilobytes_and_an_index_by_half(store: MeteredStore) -> None:
    store.write(Write(key=Key("TABLE#star", "b"), set={"GSI_1": "x", "note": "n" * 5000}))
    store.get([ROW, Key("TABLE#star", "b"), Key("TABLE#star", "nobody")])
    assert store.read == 1 + 2 + 1
    store.query(Query(slot="GSI_1", value="x"))
    assert store.read == 4 + 1
    store.query(Query(slot="GSI_1", value="nobody"))
    assert store.read == 5 + Decimal("0.5")
    store.page(Query(slot="GSI_1", value="x"), None, 1)
    assert store.read == 6
