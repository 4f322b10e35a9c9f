"""What every store finds in its indexes and partitions."""

from decimal import Decimal
from typing import Any

import pytest

from statestore.keys import Key
from statestore.store import Delete, Item, Query, Store, Terminal
from tests.contract.stored_items import KEY, item, put, read


def _stars(store: Store) -> dict[str, Item]:
    """Rows of three partitions under one value, and others that no query below may find."""
    rows: dict[str, Item] = {
        name: item(Key(pk, name), GSI_1=value, _indexed={"stars": 1})
        for name, pk, value in (
            ("pull", "TABLE#pull_request", "octocat"),
            ("one", "TABLE#star#01", "octocat"),
            ("two", "TABLE#star#00", "octocat"),
            ("near", "TABLE#starred", "octocat"),
            ("other", "TABLE#star#00", "hubot"),
        )
    }
    for row in rows.values():
        put(store, Key(row["PK"], row["SK"]), GSI_1=row["GSI_1"], _indexed={"stars": 1}, note="text")
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
    assert store.query(Query(slot="GSI_1", value="new")) == [item(GSI_1="new")]
    assert store.query(Query(slot="GSI_2", value="same")) == [item(GSI_2="same")]


def test_an_index_shows_the_keys_of_an_item_its_slot_and_four_attributes(store: Store) -> None:
    indexed = {"n": Decimal("1.5"), "text": "é", "none": None, "more": {"json": "[]"}}
    rest: dict[str, Any] = {"prev_1": "former", "_v": "2", "_l": 3, "note": "text", "GSI_2": "b"}
    put(store, GSI_1="a", _f=1, _indexed=indexed, _indexed_v="1", _deleted=True, **rest)

    shown = item(GSI_1="a", _f=1, _indexed=indexed, _indexed_v="1", _deleted=True)
    assert store.query(Query(slot="GSI_1", value="a")) == [shown]
    assert store.page(Query(slot="GSI_1", value="a", row=KEY), None, 5).items == [shown]
    assert read(store) == shown | rest


def test_a_write_of_what_no_index_shows_changes_no_answer(store: Store) -> None:
    put(store, GSI_1="a", _indexed={"n": 1}, _indexed_v="1", note="old")
    before = store.query(Query(slot="GSI_1", value="a"))
    put(store, note="new", _v="2")

    assert store.query(Query(slot="GSI_1", value="a")) == before == [item(GSI_1="a", _indexed={"n": 1}, _indexed_v="1")]
    put(store, _indexed={}, _indexed_v="3")
    assert store.query(Query(slot="GSI_1", value="a")) == [item(GSI_1="a", _indexed={}, _indexed_v="3")]


def test_rows_of_one_partition_and_value_are_all_found(store: Store) -> None:
    for number in range(20):
        put(store, Key("TABLE#star", str(number)), GSI_1="octocat")
    store.delete(Delete(key=Key("TABLE#star", "7")))

    found = {row["SK"] for row in store.query(Query(slot="GSI_1", value="octocat", entity="star"))}
    assert found == {str(number) for number in range(20)} - {"7"}


def test_a_walk_returns_the_keys_of_a_query_or_a_partition_without_marked_items(store: Store) -> None:
    rows = _stars(store)
    put(store, Key("TABLE#star#00", "gone"), GSI_1="octocat", _deleted=True)

    query = Query(slot="GSI_1", value="octocat", entity="star")
    assert list(store.walk(query, "_deleted")) == [Key(rows[name]["PK"], rows[name]["SK"]) for name in ("one", "two")]
    walked = list(store.walk("TABLE#star#00", "_deleted"))
    assert walked == [Key("TABLE#star#00", name) for name in ("elsewhere", "nowhere", "other", "two")]
    assert list(store.walk("TABLE#nothing", "_deleted")) == []


def test_a_walk_goes_past_the_first_page(store: Store) -> None:
    for number in range(12):
        put(store, Key("TABLE#star", f"{number:02}"), GSI_1="octocat", _indexed={"body": "x" * 200_000})

    assert [key.sk for key in store.walk("TABLE#star", "_deleted")] == [f"{number:02}" for number in range(12)]
    assert len(list(store.walk(Query(slot="GSI_1", value="octocat"), "_deleted"))) == 12


def test_a_query_reads_past_the_first_page(store: Store) -> None:
    for number in range(12):
        put(store, Key("TABLE#star", str(number)), GSI_1="octocat", _indexed={"body": "x" * 200_000})

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
