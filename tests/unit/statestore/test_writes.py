"""The writes of rows, compared whole."""

from typing import Any

import pytest

from statestore.items import Image, PendingKey, Row, encode_version, read_row, version_prefixes, written_row
from statestore.keys import Key, index_row, no_key
from statestore.memory import MemoryStore
from statestore.store import MAX_ITEM_BYTES, Absent, AbsentOrWithin, Equals, Write
from statestore.values import item_size
from statestore.writes import keep_indexed, leaves_room, merge_image, put_back, write_image

STAR = Key("TABLE#star", "7")
V1, V2, V3 = (encode_version(1, 0, offset) for offset in (1, 2, 3))
FIELDS = "star.tags"


def image(**other: Any) -> Image:
    """An update of a row with two slots, of which one has no key, and an edge."""
    return Image(
        **{
            "key": STAR,
            "version": V2,
            "columns": {"id": 7, "name": "sun", "size": 3},
            "more": {},
            "declared": ("id", "name", "size"),
            "slots": {1: "sun", 2: None},
            "edges": frozenset({(FIELDS, "hot")}),
            "layout": 4,
            "indexed": frozenset({"name"}),
            **other,
        }
    )


def row(**other: Any) -> Row:
    """The stored row before the update."""
    return Row(
        **{
            "key": STAR,
            "version": V1,
            "columns": {"id": 7, "name": "moon", "size": 3},
            "more": {},
            "slots": {1: "moon", 2: "x"},
            "pending": (),
            "edges": frozenset({(FIELDS, "cold")}),
            "layout": 4,
            "indexed": frozenset({"name"}),
            **other,
        }
    )


SETS = {
    "_f": 1,
    "_v": V2,
    "_l": 4,
    "_edges": f'[["{FIELDS}","hot"]]',
    "id": 7,
    "size": 3,
    "GSI_1": "sun",
    "GSI_2": no_key(STAR),
    "_indexed_v": V2,
    "_indexed": {"name": "sun"},
}
GONE = ("_deleted", "ttl", "_more", "name")


def test_the_first_write_of_a_change_keeps_its_keys_and_drops_the_pending_ones() -> None:
    assert write_image(image(), below=V2, since=V1) == Write(
        key=STAR,
        set=SETS,
        copy={"prev_1": "GSI_1", "prev_2": "GSI_2", "_edges_before": "_edges"},
        remove=(*GONE, "_pending"),
        when=AbsentOrWithin("_v", V1, V2, "_replayed"),
    )


def test_a_delete_that_leaves_the_indexes_keeps_the_keys_of_the_slots_that_it_empties() -> None:
    deleted = image(columns=None, slots={}, emptied=(1, 2), edges=frozenset(), forget=99)
    assert write_image(deleted, below=V2, since=V1) == Write(
        key=STAR,
        set={"_f": 1, "_v": V2, "_l": 4, "_edges": "[]", "_deleted": True, "ttl": 99, "_indexed_v": V2},
        copy={"prev_1": "GSI_1", "prev_2": "GSI_2", "_edges_before": "_edges"},
        remove=("_indexed", "_more", "id", "name", "size", "_pending", "GSI_1", "GSI_2"),
        when=AbsentOrWithin("_v", V1, V2, "_replayed"),
    )


def test_a_write_of_an_entity_without_slots_and_edges_sets_nothing_of_them() -> None:
    assert write_image(image(slots={}, edges=None, more={"x": 1}), below=V2, since=V1) == Write(
        key=STAR,
        set={"_f": 1, "_v": V2, "_l": 4, "id": 7, "size": 3, "_more": '{"x":1}'},
        remove=("_deleted", "ttl", "_indexed", "_indexed_v", "name", "_pending"),
        when=AbsentOrWithin("_v", V1, V2, "_replayed"),
    )


def test_a_write_of_a_row_that_indexes_show_whole_moves_all_columns_into_the_map() -> None:
    write = write_image(image(indexed=None, more={"x": 1}), below=V2, since=V1)
    assert {name for name in write.set if not name.startswith(("_", "GSI"))} == set()
    assert write.set["_indexed"] == {"id": 7, "name": "sun", "size": 3, "_more": '{"x":1}'}
    assert write.remove == ("_deleted", "ttl", "_more", "id", "name", "size", "_pending")


@pytest.mark.parametrize("declared", ["_v", "ttl", "GSI_1", ".dotted"])
def test_columns_with_names_of_other_attributes_and_those_that_a_write_drops_get_a_leading_dot(declared: str) -> None:
    named = image(columns={declared: "a"}, declared=(declared,), dropped=("_f",))
    write = write_image(named, below=V2, since=V1)
    assert write.set[f".{declared}"] == "a"
    assert "._f" in write.remove


def test_a_first_write_names_the_versions_of_its_own_epoch_and_partition() -> None:
    whole = write_image(image(), below=V2)
    assert whole.when == AbsentOrWithin("_v", version_prefixes(V2)[1], V2, "_replayed")


@pytest.mark.parametrize("slots", [{1: "sun"}, {}], ids=["slots", "no slots"])
def test_a_replay_says_so_until_a_merge_over_its_row(slots: dict[int, str | None]) -> None:
    replayed = merge_image(image(replayed=True, slots=slots), row(replayed=True))
    assert replayed.set["_replayed"] is True
    assert "_replayed" not in replayed.remove
    merged = merge_image(image(slots=slots), row(replayed=True))
    assert "_replayed" not in merged.set
    assert "_replayed" in merged.remove
    assert "_replayed" not in merge_image(image(slots=slots), row()).remove


def test_a_merge_over_the_row_of_a_replay_keeps_former_keys_pending_at_its_own_version_whatever_is_published() -> None:
    seen = row(replayed=True, pending=(PendingKey(1, "mars", V1),), slots={1: "sun", 2: "x"})
    write = merge_image(image(slots={1: "sun", 2: "x"}, edges=seen.edges), seen, published=lambda _: True)
    assert write.set["_pending"] == [[1, "mars", V2]]


def test_a_merge_over_no_row_sets_the_same_and_copies_nothing() -> None:
    assert merge_image(image(), None) == Write(
        key=STAR, set=SETS, remove=(*GONE, "_pending", "prev_1", "prev_2", "_edges_before"), when=Absent()
    )


def test_a_merge_keeps_all_former_keys_of_the_row_seen_pending() -> None:
    seen = row(pending=(PendingKey(1, "mars", V1), PendingKey(FIELDS, "old", V1)))
    pending = [[1, "mars", V1], [FIELDS, "old", V1], [1, "moon", V2], [2, "x", V2], [FIELDS, "cold", V2]]
    write = merge_image(image(), seen)
    assert sorted(write.set["_pending"], key=str) == sorted(pending, key=str)
    assert write == Write(
        key=STAR,
        set={**SETS, "_pending": write.set["_pending"]},
        remove=(*GONE, "prev_1", "prev_2", "_edges_before"),
        when=Equals("_v", V1),
    )


def test_a_merge_drops_the_former_keys_whose_write_is_published() -> None:
    seen = row(pending=(PendingKey(1, "mars", V1), PendingKey(1, "pluto", V3)), slots={1: "sun", 2: "x"})
    write = merge_image(image(slots={1: "sun", 2: "x"}, edges=seen.edges), seen, published=lambda version: version < V2)
    assert write.set["_pending"] == [[1, "pluto", V3]]
    write = merge_image(image(slots={1: "sun", 2: "x"}, edges=seen.edges), seen, published=lambda _: True)
    assert "_pending" not in write.set
    assert "_pending" in write.remove


def test_a_merge_keeps_no_key_pending_that_the_row_still_has() -> None:
    seen = row(slots={1: "sun", 2: "x"}, edges=frozenset({(FIELDS, "hot"), (FIELDS, "cold")}))
    write = merge_image(image(), seen)
    assert sorted(write.set["_pending"], key=str) == [[FIELDS, "cold", V2], [2, "x", V2]]


@pytest.mark.parametrize("more", [{}, {"x": 1}], ids=["none", "some"])
def test_an_update_that_no_index_shows_sets_its_unshown_columns_alone(more: dict[str, Any]) -> None:
    write = merge_image(image(indexed_version=V1, more=more, dropped=("old",)), row())
    packed, gone = ({"_more": '{"x":1}'}, ()) if more else ({}, ("_more",))
    assert write == Write(
        key=STAR,
        set={"_f": 1, "_v": V2, "id": 7, "size": 3, **packed},
        remove=("old", *gone),
        when=Equals("_v", V1),
    )


def test_a_marker_that_comes_back_has_no_key_in_each_slot_and_its_own_version() -> None:
    marker = row(columns=None, slots={})
    assert put_back(marker, [1, 2]) == Write(
        key=STAR, set={"GSI_1": no_key(STAR), "GSI_2": no_key(STAR), "_indexed_v": V1}, when=Equals("_v", V1)
    )


def test_a_write_has_room_up_to_the_last_byte_of_its_item_with_a_copy_of_its_keys_and_edges() -> None:
    """The item after an update that sets as much: names of keys, the row's name in the indexes, and all copies count."""
    edges = frozenset((FIELDS, f"{n:04d}" * 30) for n in range(1_000))
    large = image(edges=edges)
    write = write_image(large, below=V2, since=V1)
    copies = {"prev_1": "sun", "prev_2": no_key(STAR), "_edges_before": write.set["_edges"]}
    after = {"PK": STAR.pk, "SK": STAR.sk, "GSI_SK": index_row(STAR), **write.set, **copies}
    spare = MAX_ITEM_BYTES - item_size(after)
    assert spare > 0
    for size, has_room in ((spare - len("wide"), True), (spare - len("wide") + 1, False)):
        wide = Write(STAR, {**write.set, "wide": "w" * size})
        assert leaves_room(large, wide) is has_room


def test_an_update_that_no_index_shows_has_room_for_its_columns_alone() -> None:
    update = image(indexed_version=V1, columns={"id": 7, "name": "sun", "size": "w" * (MAX_ITEM_BYTES // 2)})
    assert leaves_room(update, merge_image(update, row()))


def test_an_update_over_a_row_with_an_empty_slot_leaves_alone_what_the_indexes_show() -> None:
    seen = row(columns={"id": 7, "name": "sun", "size": 1}, slots={1: "sun", 2: no_key(STAR)}, edges=image().edges)
    assert keep_indexed(image(), seen).indexed_version == V1


@pytest.mark.parametrize("more", [{}, {"x": 2}, {"x": 1, "y": 1}])
def test_an_update_of_an_undeclared_column_of_a_row_that_indexes_show_whole_changes_what_they_show(
    more: dict[str, Any],
) -> None:
    whole = image(indexed=None, more={"x": 1})
    seen = row(columns=whole.columns, slots={1: "sun", 2: no_key(STAR)}, edges=whole.edges, indexed=None, more={"x": 1})
    assert keep_indexed(whole, seen).indexed_version == V1
    assert keep_indexed(whole._replace(more=more), seen).indexed_version == ""


def test_a_write_of_a_row_without_slots_has_no_name_in_indexes() -> None:
    bare = image(slots={}, edges=None)
    write = write_image(bare, below=V2, since=V1)
    spare = MAX_ITEM_BYTES - item_size({"PK": STAR.pk, "SK": STAR.sk, **write.set}) - len("wide")
    assert leaves_room(bare, Write(STAR, {**write.set, "wide": "w" * spare}))
    assert not leaves_room(bare, Write(STAR, {**write.set, "wide": "w" * (spare + 1)}))


@pytest.mark.parametrize("seen", [None, row()], ids=["no row", "a row"])
def test_the_stored_row_is_the_written_one(seen: Row | None) -> None:
    store = MemoryStore()
    if seen is not None:
        before = image(version=V1, columns=seen.columns, slots=seen.slots, edges=seen.edges)
        store.write_all([write_image(before, below=V1)])
    store.write_all([write_image(image(), below=V2)])
    (item,) = store.get([STAR]).values()
    assert read_row(item) == written_row(image(), seen)
