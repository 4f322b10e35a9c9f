"""What an item says of itself, so that no other package needs the names of its attributes."""

from typing import Any

import pytest

from statestore import items, keys, writes
from statestore.items import FORMAT, are_comparable, decode_version, encode_version, next_fill
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Absent, Delete, Done, Query, Refused, Write

KEY = Key("TABLE#star#07", "octocat#tool#acme")
V1, V2 = encode_version(0, 0, 1), encode_version(0, 0, 2)


def image(**changes: Any) -> items.Image:
    values: dict[str, Any] = {
        "key": KEY,
        "version": V1,
        "columns": {"username": "octocat", "_f": 1},
        "more": {},
        "declared": ("username", "_f"),
        "slots": {1: "octocat", 2: None},
        **changes,
    }
    return items.Image(**values)


def stored(write: Write) -> Any:
    store = MemoryStore()
    assert isinstance(store.write(write), Done)
    return store.get([write.key])[write.key]


def test_an_item_says_its_key_its_entity_and_its_version() -> None:
    item = stored(writes.write_image(image(), below=V1))

    assert items.key_of_item(item) == KEY
    assert items.entity_of_item(item) == "star"
    assert items.version_of_item(item) == V1


@pytest.mark.parametrize("edges", [None, frozenset(), frozenset({("ids[]", "7"), ("ids[]", "8")})])
def test_a_write_of_a_row_says_its_version_and_the_edges_that_it_names(edges: frozenset[items.Edge] | None) -> None:
    first = writes.write_image(image(edges=edges), below=V1)
    second = writes.merge_image(image(edges=edges, version=V2), None)

    assert (writes.version_in(first), writes.edges_in(first)) == (V1, edges)
    assert (writes.version_in(second), writes.edges_in(second)) == (V2, edges)


def test_a_write_of_no_row_names_no_edges() -> None:
    assert writes.edges_in(writes.write_note(KEY, {"seq": 1})) is None


def test_a_note_has_the_format_version_and_a_condition() -> None:
    key = Key(keys.progress_partition("LEDGER", "user_profile"), "octo@example.org")
    note = writes.write_note(key, {"seq": 1}, remove=("rows",), when=Absent())

    assert note == Write(key=key, set={"_f": FORMAT, "seq": 1}, remove=("rows",), when=Absent())
    assert stored(note) == {"PK": "LEDGER#user_profile", "SK": "octo@example.org", "_f": 1, "seq": 1}


def test_a_refused_note_changes_nothing() -> None:
    store = MemoryStore()
    store.write(writes.write_note(KEY, {"seq": 1}))

    assert isinstance(store.write(writes.write_note(KEY, {"seq": 2}, when=Absent())), Refused)
    assert isinstance(store.delete(Delete(key=KEY, when=Absent())), Refused)


def test_people_read_the_key_of_an_item_first_then_its_slots_then_the_rest() -> None:
    item = stored(writes.write_image(image(), below=V1))

    assert list(items.readable_attributes(item).items()) == [
        ("PK", KEY.pk),
        ("SK", KEY.sk),
        ("GSI_1", "octocat"),
        ("GSI_2", keys.no_key(KEY)),
        ("._f", 1),
        ("_indexed", {}),
        ("_indexed_v", V1),
        ("_v", V1),
        ("username", "octocat"),
    ]


@pytest.mark.parametrize(
    ("query", "covered"),
    [
        (Query("GSI_1", "a"), True),
        (Query("GSI_1", "a", "star"), True),
        (Query("GSI_1", "a", "sta"), False),
        (Query("GSI_1", "a", row=KEY), True),
        (Query("GSI_1", "a", row=Key("TABLE#star#07", "other")), False),
    ],
)
def test_a_query_covers_the_keys_of_the_rows_that_it_reads(query: Query, covered: bool) -> None:
    assert query.covers(KEY) is covered


def test_a_version_gives_back_its_position_also_after_fills() -> None:
    version = encode_version(3, 12, 4567)
    assert decode_version(version) == (3, 12, 4567)
    assert decode_version(next_fill(next_fill(version))) == (3, 12, 4567)


def test_text_order_is_the_order_of_epochs_then_of_offsets_and_a_fill_comes_before_the_next_offset() -> None:
    first, second, moved = encode_version(1, 5, 9), encode_version(1, 5, 10), encode_version(2, 0, 0)
    assert first < next_fill(first) < next_fill(next_fill(first)) < second < moved


def test_offsets_of_two_partitions_have_an_order_only_across_epochs() -> None:
    assert are_comparable(encode_version(1, 5, 9), next_fill(encode_version(1, 5, 10)))
    assert are_comparable(encode_version(1, 5, 9), encode_version(2, 6, 1))
    assert not are_comparable(encode_version(1, 5, 9), encode_version(1, 6, 10))
