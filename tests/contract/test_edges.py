"""Edges in every store: versions decide, and a partition is read whole, as it is now."""

import pytest

from statestore.items import encode_version
from statestore.keys import Key
from statestore.store import Done, Refused, Store, Write
from statestore.writes import drop_edge, put_edge, row_of

TEAM = Key("TABLE#team#01", "1")
EDGE = ("member_ids[]", "7")
PARTITION = "EDGE#team#member_ids[]=7"
V1, V2, V3 = (encode_version(0, 0, n) for n in (1, 2, 3))


def rows(store: Store, partition: str = PARTITION) -> list[Key]:
    return [row_of(edge) for edge in store.partition(partition)]


def test_an_edge_names_its_row_under_the_key(store: Store) -> None:
    store.write(put_edge(TEAM, EDGE, V1))

    assert store.partition(PARTITION) == [{"PK": PARTITION, "SK": "1", "_f": 1, "_v": V1, "row": "TABLE#team#01"}]
    assert rows(store) == [TEAM]
    assert rows(store, "EDGE#team#member_ids[]=70") == []


def test_an_edge_is_put_by_a_newer_version_only(store: Store) -> None:
    assert isinstance(store.write(put_edge(TEAM, EDGE, V2)), Done)
    assert isinstance(store.write(put_edge(TEAM, EDGE, V1)), Refused)
    assert isinstance(store.write(put_edge(TEAM, EDGE, V2)), Refused)
    assert isinstance(store.write(put_edge(TEAM, EDGE, V3)), Done)


def test_an_edge_is_removed_by_a_newer_version_only(store: Store) -> None:
    store.write(put_edge(TEAM, EDGE, V2))

    assert isinstance(store.delete(drop_edge(TEAM, EDGE, V1)), Refused)
    assert isinstance(store.delete(drop_edge(TEAM, EDGE, V2)), Refused)
    assert rows(store) == [TEAM]
    assert isinstance(store.delete(drop_edge(TEAM, EDGE, V3)), Done)
    assert rows(store) == []
    assert isinstance(store.delete(drop_edge(TEAM, EDGE, V3)), Done)


def test_a_partition_is_read_past_the_first_page_in_the_order_of_sort_keys(store: Store) -> None:
    for n in (11, 2, 7, *range(20, 29)):
        store.write(Write(key=Key(PARTITION, str(n)), set={"row": "TABLE#team", "body": "x" * 200_000}))
    store.write(Write(key=Key("EDGE#team#member_ids[]=8", "1"), set={"row": "TABLE#team"}))

    assert [edge["SK"] for edge in store.partition(PARTITION)] == sorted(map(str, (11, 2, 7, *range(20, 29))))


@pytest.mark.counted
def test_pages_of_a_partition_show_every_edge_that_stays_once(store: Store) -> None:
    for n in range(7):
        store.write(put_edge(Key("TABLE#team", str(n)), EDGE, V1))
    store.write(put_edge(Key("TABLE#team", "7"), ("member_ids[]", "8"), V1))

    first = store.page(PARTITION, None, 3)
    assert [edge["SK"] for edge in first.items] == ["0", "1", "2"]
    assert first.after is not None
    store.delete(drop_edge(Key("TABLE#team", first.after.sk), EDGE, V2))
    found = list(first.items)
    after: Key | None = first.after
    while after is not None:
        page = store.page(PARTITION, after, 3)
        found, after = [*found, *page.items], page.after
    assert [edge["SK"] for edge in found] == list("0123456")
    assert store.page(PARTITION, None, 100).after is None


def test_previous_edges_are_copied_by_the_write_that_replaces_them(store: Store) -> None:
    copy = {"_edges_before": "_edges"}
    store.write(Write(key=TEAM, set={"_edges": '[["ids[]","1"]]'}, copy=copy))
    assert "_edges_before" not in store.get([TEAM])[TEAM]
    store.write(Write(key=TEAM, set={"_edges": "[]"}, copy=copy))
    assert store.get([TEAM])[TEAM] == {
        "PK": TEAM.pk,
        "SK": TEAM.sk,
        "_edges": "[]",
        "_edges_before": '[["ids[]","1"]]',
    }


@pytest.mark.parametrize("key", ["x" * 2000, "ä" * 600])
def test_a_long_key_has_a_partition_too(store: Store, key: str) -> None:
    other = key[:-1] + "y"
    store.write(put_edge(TEAM, ("name", key), V1))
    store.write(put_edge(TEAM, ("name", other), V1))
    assert isinstance(store.delete(drop_edge(TEAM, ("name", key), V2)), Done)
    assert isinstance(store.write(put_edge(TEAM, ("name", other), V1)), Refused)
