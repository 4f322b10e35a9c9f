"""A truncate deletes a stored row that is older, under the version seen, and touches again the markers that it left."""

from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.walks import TruncateGoal, truncate_row
from processor.engine.protocol.write_state import write_state
from processor.language.definitions.load import load
from processor.values.record import Change, Record
from statestore.items import encode_version, read_row
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Item, Refused, Terminal, TooLarge
from tests.support.published_rows import published_below
from tests.unit.engine.protocol.dialogue import crash_step, run_step

PLAN = plan_alone(
    load(
        {
            "entities.yaml": "star: {key: [id], columns: {id: int, who: string}}\n"
            "user: {key: [id], columns: {id: int, name: string}}",
            "p.yaml": "product: p\nroot: user\nfields: [id]\nembed: {stars: {many: star, on: {who: name}, value: id}}",
        }
    ),
    20,
).entities["star"]
STAR = Key("TABLE#star", "1")


def version(offset: int) -> str:
    return encode_version(1, 0, offset)


GOAL = TruncateGoal(version(7), version(7))


def change(offset: int, who: str | None = "ada") -> Change:
    record = Record(topic="star", partition=0, offset=offset, epoch=1, key=None, value=None)
    return Change(entity="star", key=(1,), row={"id": 1, "who": who} if who else None, record=record)


def write(store: MemoryStore, *args: Any, start: int) -> Any:
    return run_step(write_state(change(*args), PLAN, published=published_below(version(start)), expires_at=99), store)[
        1
    ]


def stored(offset: int, who: str | None = "ada") -> MemoryStore:
    """A table with star 1, whose last change has this offset."""
    store = MemoryStore(3)
    write(store, offset, who, start=offset)
    return store


def item(store: MemoryStore) -> Item:
    return store.get([STAR])[STAR]


def truncate(store: MemoryStore, goal: TruncateGoal = GOAL, seen: Item | None = None) -> Any:
    return run_step(truncate_row(seen or item(store), PLAN, goal, expires_at=99), store)[1]


def test_an_older_row_becomes_a_marker_of_the_truncate_that_keeps_its_keys() -> None:
    store = stored(4)
    touch = truncate(store)
    row = read_row(item(store))
    assert (row.columns, row.version, item(store)["ttl"]) == (None, version(7), 99)
    assert (touch.row.version, touch.former_keys, touch.changed, touch.outcome) == (
        version(7),
        {(1, "ada")},
        None,
        "applied",
    )
    assert [(one.slot, one.key) for one in row.pending] == [(1, "ada")]


def test_a_newer_row_stays_and_so_does_an_older_delete_marker() -> None:
    for store in (stored(8), stored(4, None)):
        before = item(store)
        assert truncate(store) is None
        assert item(store) == before


@pytest.mark.parametrize("first", [5, 7], ids=["of the truncate before", "of this truncate"])
def test_a_marker_that_a_crash_left_is_touched_again(first: int) -> None:
    store = stored(4)
    crash_step(
        truncate_row(item(store), PLAN, TruncateGoal(version(first), version(first)), expires_at=99), store, after=1
    )
    touch = truncate(store, TruncateGoal(version(7), version(5)))
    assert (touch.former_keys, touch.outcome) == ({(1, "ada")}, "replayed")


def test_a_truncate_that_a_newer_change_overtook_leaves_the_row_of_that_change() -> None:
    store = stored(4)
    seen = item(store)
    write(store, 9, "bob", start=9)
    assert truncate(store, seen=seen) is None
    assert read_row(item(store)).columns == {"id": 1, "who": "bob"}


def test_a_truncate_that_an_older_change_overtook_deletes_the_row_of_that_change() -> None:
    store = stored(4)
    seen = item(store)
    write(store, 6, "bob", start=6)
    assert truncate(store, seen=seen).former_keys == {(1, "bob")}
    assert read_row(item(store)).columns is None


def test_a_write_over_a_marker_that_the_walk_left_finds_the_keys_of_the_deleted_row() -> None:
    """The walk may have left the marker without its documents, so the write looks for keys from the truncate on."""
    store = stored(4)
    truncate(store)
    assert write(store, 9, "bob", start=7).former_keys == {(1, "ada")}


def test_an_older_change_does_not_bring_the_row_back() -> None:
    store = stored(4)
    truncate(store)
    assert write(store, 6, "bob", start=6).outcome == "superseded"
    assert read_row(item(store)).columns is None


def test_a_row_that_is_gone_by_the_time_of_the_write_stays_gone() -> None:
    before = item(stored(5))
    step = truncate_row(before, PLAN, GOAL, expires_at=99)
    next(step)
    with pytest.raises(StopIteration) as end:
        step.send((Refused(None),))
    assert end.value.value is None


def test_a_delete_marker_that_is_too_large_is_an_error() -> None:
    step = truncate_row(item(stored(5)), PLAN, GOAL, expires_at=99)
    next(step)
    with pytest.raises(Terminal, match="larger than an item may be"):
        step.send((TooLarge(),))
