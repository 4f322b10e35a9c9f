"""What every store does with the requests of a turn."""

import pytest

from statestore.keys import Key
from statestore.store import (
    Absent,
    Delete,
    Done,
    Equals,
    Item,
    Page,
    Query,
    Read,
    Refused,
    Store,
    Terminal,
    TooLarge,
    Write,
)
from tests.contract.stored_items import item, put

STARS = [Key("TABLE#star", f"{n:02d}") for n in range(9)]
ICE = Query("GSI_1", "ice")


@pytest.mark.counted
def test_reads_are_answered_in_their_order(store: Store) -> None:
    for key in STARS:
        put(store, key, GSI_1="ice", GSI_2=key.sk)
    rows: list[Item] = [item(key, GSI_1="ice", GSI_2=key.sk) for key in STARS]
    ice: list[Item] = [item(key, GSI_1="ice") for key in STARS]
    reads = [
        Read(Query("GSI_2", "04")),
        Read("TABLE#star", STARS[1], 3),
        Read(ICE._replace(row=STARS[5])),
        Read(ICE, None, 4),
        Read("TABLE#star"),
        Read(Query("GSI_2", "ice")),
        Read(ICE._replace(entity="star"), STARS[6], 4),
        Read("TABLE#nothing", None, 2),
        Read(ICE),
        Read(ICE),
    ]
    assert store.read(reads) == [
        Page([item(STARS[4], GSI_2=STARS[4].sk)], None),
        Page(rows[2:5], STARS[4]),
        Page(ice[5:6], None),
        Page(ice[:4], STARS[3]),
        Page(rows, None),
        Page([], None),
        Page(ice[7:], None),
        Page([], None),
        Page(ice, None),
        Page(ice, None),
    ]


def test_each_write_of_a_turn_succeeds_or_fails_alone(store: Store) -> None:
    for key in STARS[:4]:
        put(store, key, n=1, GSI_1="ice")
    old = [item(key, n=1, GSI_1="ice") for key in STARS]
    requests: list[Write | Delete] = [
        Write(STARS[4], {"n": 2}, when=Absent()),
        Delete(key=STARS[0]),
        Write(STARS[1], {"n": 2}, copy={"prev_1": "GSI_1"}, remove=("GSI_1",)),
        Write(STARS[2], {"n": 2}, when=Absent()),
        Write(STARS[5], {"n": 2}, when=Equals("n", 1)),
        Delete(key=STARS[3], when=Equals("n", 2)),
        Write(STARS[6], {"text": "x" * 500_000}),
        Delete(key=STARS[7]),
    ]
    assert store.write_all(requests) == [
        Done(None),
        Done(old[0]),
        Done(old[1]),
        Refused(old[2]),
        Refused(None),
        Refused(old[3]),
        TooLarge(),
        Done(None),
    ]
    stored = store.get(STARS)
    assert stored.keys() == set(STARS[1:5])
    assert (stored[STARS[1]]["n"], stored[STARS[1]]["prev_1"], stored[STARS[2]]["n"]) == (2, "ice", 1)
    assert store.query(ICE) == [item(key, GSI_1="ice") for key in STARS[2:4]]


def test_a_turn_without_requests_asks_nothing(store: Store) -> None:
    assert store.read([]) == []
    assert store.write_all([]) == []
    assert store.get([]) == {}
    assert store.requests.total() == 0


def test_a_write_of_a_turn_that_no_store_takes_is_refused(store: Store) -> None:
    with pytest.raises(Terminal, match="PK is ''"):
        store.write_all([Write(Key("", "a"), {"n": 1})])
