"""What a write does in every store: the item before and after it, its keys, its copies, its size."""

from typing import Any

import pytest

from statestore.keys import Key
from statestore.store import Absent, AbsentOrBelow, Delete, Done, Query, Refused, Store, Terminal, TooLarge, Write
from tests.contract.stored_items import KEY, item, put, read

KB_400 = 400 * 1024


def test_a_first_write_is_done_and_has_no_former_item(store: Store) -> None:
    assert store.write(Write(key=KEY, set={"name": "Mona"})) == Done(None)
    assert read(store) == item(name="Mona")


def test_a_write_returns_the_former_item_and_keeps_the_attributes_that_it_does_not_name(store: Store) -> None:
    put(store, name="Mona", stars=1)

    assert store.write(Write(key=KEY, set={"stars": 2})) == Done(item(name="Mona", stars=1))
    assert read(store) == item(name="Mona", stars=2)


def test_a_write_removes_the_attributes_that_it_names(store: Store) -> None:
    put(store, name="Mona", stars=1, GSI_1="a")

    assert store.write(Write(key=KEY, set={}, remove=("stars", "GSI_1", "never_there"))) == Done(
        item(name="Mona", stars=1, GSI_1="a")
    )
    assert read(store) == item(name="Mona", GSI_SK="user#octocat")
    assert store.query(Query(slot="GSI_1", value="a")) == []


def test_a_copy_keeps_what_the_same_write_removes(store: Store) -> None:
    put(store, GSI_1="a")

    store.write(Write(key=KEY, set={"v": 2}, copy={"prev_1": "GSI_1"}, remove=("GSI_1",)))
    assert read(store) == item(v=2, prev_1="a", GSI_SK="user#octocat")
    assert store.query(Query(slot="GSI_1", value="a")) == []


@pytest.mark.moto_lies("it fails with HTTP 500 for an UpdateItem without an expression")
def test_a_write_of_nothing_leaves_an_item_of_its_key(store: Store) -> None:
    assert store.write(Write(key=KEY, set={})) == Done(None)
    assert read(store) == item()


def test_an_item_given_back_does_not_change_with_later_writes(store: Store) -> None:
    put(store, _indexed={"stars": 1}, GSI_1="a")
    (found,) = store.query(Query(slot="GSI_1", value="a"))
    put(store, _indexed={"stars": 2})

    assert found["_indexed"] == {"stars": 1}


def test_a_copy_takes_the_source_from_before_the_write(store: Store) -> None:
    put(store, GSI_1="old", GSI_2="kept")
    copy = {"prev_1": "GSI_1", "prev_2": "GSI_2"}

    assert store.write(Write(key=KEY, set={"GSI_1": "new"}, copy=copy)) == Done(item(GSI_1="old", GSI_2="kept"))
    assert read(store) == item(GSI_1="new", GSI_2="kept", prev_1="old", prev_2="kept")


def test_a_copy_of_a_missing_source_leaves_the_target_missing(store: Store) -> None:
    write = Write(key=KEY, set={"GSI_1": "a", "name": ""}, copy={"prev_1": "GSI_1", "prev_2": "GSI_2"})
    assert store.write(write) == Done(None)
    first = item(GSI_1="a", name="")

    assert read(store) == first
    assert store.query(Query(slot="GSI_1", value="a")) == [item(GSI_1="a")]
    assert store.write(Write(key=KEY, set={}, remove=("other",), when=Absent())) == Refused(first)
    assert store.write(Write(key=KEY, set={"name": "Mona"})) == Done(first)


def test_a_copy_of_a_missing_source_removes_an_earlier_copy(store: Store) -> None:
    put(store, GSI_1="a")
    store.write(Write(key=KEY, set={}, copy={"prev_1": "GSI_1"}, remove=("GSI_1",)))
    assert read(store) == item(prev_1="a", GSI_SK="user#octocat")

    store.write(Write(key=KEY, set={"GSI_1": "b"}, copy={"prev_1": "GSI_1"}))
    assert read(store) == item(GSI_1="b")


@pytest.mark.moto_lies("it counts the JSON of the item, so somewhat less is too large already")
@pytest.mark.parametrize("sign", ["x", "é", "🐙"])
def test_an_item_of_400_kb_is_written_and_one_more_byte_is_too_large(store: Store, sign: str) -> None:
    names = len("PK" + KEY.pk + "SK" + KEY.sk + "body")
    room = KB_400 - names
    fits = sign * (room // len(sign.encode())) + "x" * (room % len(sign.encode()))

    assert store.write(Write(key=KEY, set={"body": fits + "x"})) == TooLarge()
    assert store.write(Write(key=KEY, set={"body": fits})) == Done(None)


def test_an_item_that_would_grow_past_400_kb_stays_as_it_was(store: Store) -> None:
    put(store, body="x" * 300_000, GSI_1="a")

    assert store.write(Write(key=KEY, set={"more": "x" * 200_000, "GSI_1": "b"})) == TooLarge()
    assert read(store) == item(body="x" * 300_000, GSI_1="a")
    assert store.query(Query(slot="GSI_1", value="b")) == []


@pytest.mark.parametrize("value", ["x" * 5_000_000, ["x" * 1000] * 500])
def test_a_write_that_is_too_large_by_itself_is_too_large_over_any_item(store: Store, value: Any) -> None:
    put(store, v="5")

    assert store.write(Write(key=KEY, set={"body": value}, when=AbsentOrBelow("v", "4"))) == TooLarge()


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        (Key("", "a"), "PK is '': a key is a non-empty text"),
        (Key("TABLE#user", ""), "SK is '': a key is a non-empty text"),
        (Key("T" * 1025, "a"), "PK has 1025 bytes, at most 1024"),
        (Key("TABLE#user", "é" * 513), "SK has 1026 bytes, at most 1024"),
        (Key("TABLE#user", "x" * 691 + "\x01" * 167), "SK has 1025 bytes, at most 1024"),
    ],
)
def test_a_key_that_no_item_can_have_is_refused(store: Store, key: Key, complaint: str) -> None:
    for ask in (
        lambda: store.write(Write(key=key, set={"a": 1})),
        lambda: store.delete(Delete(key=key)),
        lambda: store.get([KEY, key]),
    ):
        with pytest.raises(Terminal, match=complaint):
            ask()


@pytest.mark.parametrize("value", ["", None, 42, True, ["a"], "x" * 1025, "\x00" * 513])
def test_a_slot_that_is_no_key_is_refused_and_nothing_is_written(store: Store, value: Any) -> None:
    with pytest.raises(Terminal, match="TABLE#user / octocat: GSI_2"):
        store.write(Write(key=KEY, set={"GSI_2": value, "name": "Mona"}))

    assert read(store) is None
