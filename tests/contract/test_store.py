"""What every store does, asserted as its user notices it."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest

from statestore.errors import Terminal
from statestore.keys import Key, index_row
from statestore.limits import MAX_CHANGES, is_slot
from statestore.store import (
    Absent,
    AbsentOrBelow,
    Condition,
    Delete,
    Done,
    Equals,
    Item,
    Query,
    Refused,
    Store,
    TooLarge,
    Write,
)

KEY = Key("TABLE#user", "octocat")
KB_400 = 400 * 1024


def item(key: Key = KEY, **attributes: Any) -> dict[str, Any]:
    """An item as a store returns it. The store names an item with a slot for its indexes."""
    name = {"GSI_SK": index_row(key)} if any(map(is_slot, attributes)) else {}
    return {"PK": key.pk, "SK": key.sk, **name, **attributes}


def put(store: Store, key: Key = KEY, **attributes: Any) -> None:
    assert isinstance(store.write(Write(key=key, set=attributes)), Done)


def read(store: Store, key: Key = KEY) -> Item | None:
    return store.get([key]).get(key)


# Writing


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


@pytest.mark.moto_lies("it fails with HTTP 500 for an UpdateItem without an expression")
def test_a_write_of_nothing_leaves_an_item_of_its_key(store: Store) -> None:
    assert store.write(Write(key=KEY, set={})) == Done(None)
    assert read(store) == item()


def test_an_item_given_back_does_not_change_with_later_writes(store: Store) -> None:
    put(store, stars=1, GSI_1="a")
    (found,) = store.query(Query(slot="GSI_1", value="a"))
    put(store, stars=2)

    assert found["stars"] == 1


# Values


@pytest.mark.parametrize(
    ("written", "back"),
    [
        ("", ""),
        ("ünï → 🐙", "ünï → 🐙"),
        (None, None),
        (True, True),
        (False, False),
        (0, 0),
        (-42, -42),
        (2**63, 2**63),
        (10**40, 10**40),
        (Decimal("42.00"), 42),
        (Decimal("1.50"), Decimal("1.5")),
        (Decimal("-0.0000001"), Decimal("-0.0000001")),
        (Decimal("12345678901234567890.123456789012345678"), Decimal("12345678901234567890.123456789012345678")),
        (99999999999999999999999999999999999999, 99999999999999999999999999999999999999),
        ([1, "a", None, [True]], [1, "a", None, [True]]),
        ((1, 2), [1, 2]),
        ({"json": "{}", "deep": {"n": Decimal("0.10")}}, {"json": "{}", "deep": {"n": Decimal("0.1")}}),
        (b"", b""),
        (b"\x00\xff", b"\x00\xff"),
        ([], []),
        ({}, {}),
    ],
)
def test_a_value_is_read_back_exactly(store: Store, written: Any, back: Any) -> None:
    put(store, value=written)
    found = read(store)

    assert found == item(value=back)
    assert repr(found["value"]) == repr(back)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        (1.5, "a float cannot be stored exactly; give an int or a Decimal"),
        ([{"a": 1.5}], "a float cannot be stored exactly"),
        (10**38 + 1, "a number beyond 38 digits"),
        (Decimal("1E+126"), "a number beyond 38 digits or beyond 1E-130"),
        (Decimal("1E-131"), "a number beyond 38 digits or beyond 1E-130"),
        (Decimal("NaN"), "NaN is not a number that can be stored"),
        ({1: "a"}, "1 cannot name an entry of a map"),
        ("\ud83d", "a text with half a surrogate pair has no UTF-8"),
    ],
)
def test_a_value_that_cannot_be_kept_exactly_is_refused_by_name(store: Store, value: Any, complaint: str) -> None:
    with pytest.raises(Terminal, match=f"TABLE#user / octocat: attribute stars: {complaint}"):
        store.write(Write(key=KEY, set={"stars": value}))

    assert read(store) is None


def test_columns_called_almost_like_our_own_attributes_are_ordinary(store: Store) -> None:
    columns: dict[str, Any] = {
        "GSI_code": None,
        "prev_name": "",
        "size": 1,
        "#a0": 2,
        ":v0": 3,
        "a.b": 4,
        "Größe": 5,
        "PK2": "",
    }
    assert store.write(Write(key=KEY, set=columns)) == Done(None)

    assert read(store) == item(**columns)


@pytest.mark.moto_lies("its parser recurses once an attribute, beyond Python's usual limit")
def test_the_widest_write_is_taken(store: Store) -> None:
    columns: dict[str, Any] = {f"column_{number}": number for number in range(MAX_CHANGES - 6)}
    copies = {f"prev_{k}": f"GSI_{k}" for k in (1, 2, 3)}
    write = Write(key=KEY, set=columns | {"GSI_1": "a"}, copy=copies, remove=("gone", "older"))
    assert store.write(write) == Done(None)
    assert store.write(write) == Done(item(**columns, GSI_1="a"))


# Conditions

UNLIKE = pytest.mark.moto_lies("it compares values of different types, and nothing with null, as Python does")

HOLD: list[tuple[dict[str, Any] | None, Condition]] = [
    (None, Absent()),
    (None, AbsentOrBelow("v", "5")),
    ({"v": "4"}, AbsentOrBelow("v", "5")),
    ({"v": "49"}, AbsentOrBelow("v", "5")),
    ({"v": 9}, AbsentOrBelow("v", 10)),
    ({"v": Decimal("9.99")}, AbsentOrBelow("v", 10)),
    ({"v": "\uffff"}, AbsentOrBelow("v", "\U00010000")),
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


def test_of_many_first_writes_at_once_one_is_done(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: store.write(Write(key=KEY, set={"n": n}, when=Absent())), range(24)))

    assert [type(outcome) for outcome in outcomes].count(Done) == 1
    assert all(outcome.current == read(store) for outcome in outcomes if isinstance(outcome, Refused))


# Copies


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
    assert store.query(Query(slot="GSI_1", value="a")) == [first]
    assert store.write(Write(key=KEY, set={}, remove=("other",), when=Absent())) == Refused(first)
    assert store.write(Write(key=KEY, set={"name": "Mona"})) == Done(first)


def test_a_copy_of_a_missing_source_removes_an_earlier_copy(store: Store) -> None:
    put(store, GSI_1="a")
    store.write(Write(key=KEY, set={}, copy={"prev_1": "GSI_1"}, remove=("GSI_1",)))
    assert read(store) == item(prev_1="a", GSI_SK="user#octocat")

    store.write(Write(key=KEY, set={"GSI_1": "b"}, copy={"prev_1": "GSI_1"}))
    assert read(store) == item(GSI_1="b")


# Sizes


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


# Keys and slots


def test_keys_of_the_longest_kind_are_kept(store: Store) -> None:
    key = Key("TABLE#" + "u" * 100, "x" * 1024)
    put(store, key, GSI_1="y" * 2048)

    assert read(store, key) == item(key, GSI_1="y" * 2048)
    assert store.query(Query(slot="GSI_1", value="y" * 2048)) == [item(key, GSI_1="y" * 2048)]


@pytest.mark.parametrize(
    ("key", "complaint"),
    [
        (Key("", "a"), "PK is '': a key is a non-empty text"),
        (Key("TABLE#user", ""), "SK is '': a key is a non-empty text"),
        (Key("T" * 1025, "a"), "PK has 1025 bytes, at most 1024"),
        (Key("TABLE#user", "é" * 513), "SK has 1026 bytes, at most 1024"),
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


@pytest.mark.parametrize("value", ["", None, 42, True, ["a"], "x" * 2049])
def test_a_slot_that_is_no_key_is_refused_and_nothing_is_written(store: Store, value: Any) -> None:
    with pytest.raises(Terminal, match="TABLE#user / octocat: GSI_2"):
        store.write(Write(key=KEY, set={"GSI_2": value, "name": "Mona"}))

    assert read(store) is None


# Deleting


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


# Reading by key


def test_keys_are_read_at_once_and_missing_ones_left_out(store: Store) -> None:
    other = Key("TABLE#star", "octocat")
    put(store, name="Mona")
    put(store, other, name="star")
    found = store.get([KEY, Key("TABLE#user", "hubot"), other, KEY])

    assert found == {KEY: item(name="Mona"), other: item(other, name="star")}


@pytest.mark.counted
def test_250_keys_cost_three_requests_however_often_each_is_named(store: Store) -> None:
    keys = [Key("TABLE#user", f"{number:03d}") for number in range(250)]
    for key in keys[::10]:
        put(store, key, name=key.sk)
    store.requests.clear()

    assert store.get(keys + keys) == {key: item(key, name=key.sk) for key in keys[::10]}
    assert store.requests == Counter(BatchGetItem=3)


def test_no_keys_cost_nothing(store: Store) -> None:
    assert store.get([]) == {}
    assert store.requests.total() == 0


def test_items_of_more_than_16_mb_are_all_read(store: Store) -> None:
    keys = [Key("TABLE#user", f"{number:02d}") for number in range(60)]
    for key in keys:
        put(store, key, body="x" * 300_000)

    assert store.get(keys).keys() == set(keys)


# Querying


def _stars(store: Store) -> dict[str, Item]:
    """Rows of three partitions under one value, and others that no query below may find."""
    rows: dict[str, Item] = {
        name: item(Key(pk, name), GSI_1=value, stars=1)
        for name, pk, value in (
            ("pull", "TABLE#pull_request", "octocat"),
            ("one", "TABLE#star#01", "octocat"),
            ("two", "TABLE#star#00", "octocat"),
            ("near", "TABLE#starred", "octocat"),
            ("other", "TABLE#star#00", "hubot"),
        )
    }
    for row in rows.values():
        put(store, Key(row["PK"], row["SK"]), GSI_1=row["GSI_1"], stars=1)
    put(store, Key("TABLE#star#00", "elsewhere"), GSI_2="octocat")
    put(store, Key("TABLE#star#00", "nowhere"), name="octocat")
    return rows


def test_a_query_finds_the_rows_of_its_value_by_entity_and_sort_key(store: Store) -> None:
    rows = _stars(store)

    assert store.query(Query(slot="GSI_1", value="octocat")) == [rows[name] for name in ("pull", "one", "two", "near")]
    assert store.query(Query(slot="GSI_1", value="nobody")) == []
    assert store.query(Query(slot="GSI_3", value="octocat")) == []


def test_a_pinned_query_finds_the_rows_of_its_entity_in_all_shards(store: Store) -> None:
    rows = _stars(store)

    assert store.query(Query(slot="GSI_1", value="octocat", entity="star")) == [rows["one"], rows["two"]]
    assert store.query(Query(slot="GSI_1", value="octocat", entity="sta")) == []


def test_a_query_of_a_row_finds_that_row_under_its_value_only(store: Store) -> None:
    rows = _stars(store)
    two = Key("TABLE#star#00", "two")

    assert store.query(Query(slot="GSI_1", value="octocat", row=two)) == [rows["two"]]
    assert store.query(Query(slot="GSI_1", value="hubot", row=two)) == []
    assert store.query(Query(slot="GSI_1", value="octocat", row=Key("TABLE#star#00", "other"))) == []


def test_the_items_of_a_partition_come_by_sort_key(store: Store) -> None:
    rows = [item(Key("TABLE#repo", f"{n:02d}"), text="x" * 200_000) for n in range(12)]
    for row in reversed(rows):
        put(store, Key(row["PK"], row["SK"]), text=row["text"])
    put(store, Key("TABLE#repo#00", "1"), text="x")

    assert list(store.items("TABLE#repo")) == rows
    assert list(store.items("TABLE#other")) == []


def test_a_row_that_moves_is_found_under_its_new_value_only(store: Store) -> None:
    put(store, GSI_1="old", GSI_2="same")
    put(store, GSI_1="new")

    assert store.query(Query(slot="GSI_1", value="old")) == []
    assert store.query(Query(slot="GSI_1", value="new")) == [item(GSI_1="new", GSI_2="same")]
    assert store.query(Query(slot="GSI_2", value="same")) == [item(GSI_1="new", GSI_2="same")]


def test_rows_of_one_partition_and_value_are_all_found(store: Store) -> None:
    for number in range(20):
        put(store, Key("TABLE#star", str(number)), GSI_1="octocat")
    store.delete(Delete(key=Key("TABLE#star", "7")))

    found = {row["SK"] for row in store.query(Query(slot="GSI_1", value="octocat", entity="star"))}
    assert found == {str(number) for number in range(20)} - {"7"}


def test_a_walk_returns_the_keys_of_a_query_or_a_partition_without_marked_items(store: Store) -> None:
    rows = _stars(store)
    put(store, Key("TABLE#star#00", "gone"), GSI_1="octocat", _gone=True)

    query = Query(slot="GSI_1", value="octocat", entity="star")
    assert list(store.walk(query, "_gone")) == [Key(rows[name]["PK"], rows[name]["SK"]) for name in ("one", "two")]
    walked = list(store.walk("TABLE#star#00", "_gone"))
    assert walked == [Key("TABLE#star#00", name) for name in ("elsewhere", "nowhere", "other", "two")]
    assert list(store.walk("TABLE#nothing", "_gone")) == []


def test_a_walk_goes_past_the_first_page(store: Store) -> None:
    for number in range(12):
        put(store, Key("TABLE#star", f"{number:02}"), GSI_1="octocat", body="x" * 200_000)

    assert [key.sk for key in store.walk("TABLE#star", "_gone")] == [f"{number:02}" for number in range(12)]
    assert len(list(store.walk(Query(slot="GSI_1", value="octocat"), "_gone"))) == 12


def test_a_query_reads_past_the_first_page(store: Store) -> None:
    for number in range(12):
        put(store, Key("TABLE#star", str(number)), GSI_1="octocat", body="x" * 200_000)

    assert len(store.query(Query(slot="GSI_1", value="octocat"))) == 12


@pytest.mark.counted
def test_pages_of_a_query_show_every_row_that_stays_once(store: Store) -> None:
    keys = [Key("TABLE#star", str(number)) for number in range(7)]
    for key in keys:
        put(store, key, GSI_1="octocat")
    put(store, Key("TABLE#user", "octocat"), GSI_1="octocat")
    query = Query(slot="GSI_1", value="octocat", entity="star")

    first = store.page(query, None, 3)
    assert len(first.items) == 3
    assert first.after is not None
    store.delete(Delete(key=first.after))
    found = list(first.items)
    after: Key | None = first.after
    while after is not None:
        page = store.page(query, after, 3)
        found, after = [*found, *page.items], page.after
    assert sorted(row["SK"] for row in found) == [key.sk for key in keys]
    assert store.page(query, None, 100).after is None


def test_a_query_of_an_index_that_the_table_does_not_have_is_refused(store: Store) -> None:
    with pytest.raises(Terminal, match="GSI_4"):
        store.query(Query(slot="GSI_4", value="octocat"))


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        (Query(slot="GSI_1", value=""), "with an empty value"),
        (Query(slot="GSI_1", value="a", entity=""), "with an empty entity"),
        (Query(slot="GSI_1", value="a", row=Key("TABLE#a", "")), "SK is ''"),
        (Query(slot="GSI_1", value="a", entity="a", row=Key("TABLE#a", "b")), "with both entity and row"),
    ],
)
def test_a_malformed_query_is_refused_and_costs_nothing(store: Store, query: Query, complaint: str) -> None:
    with pytest.raises(Terminal, match=complaint):
        store.query(query)

    assert store.requests.total() == 0


# Counting


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
