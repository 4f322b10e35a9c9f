"""The lines of the history: a line for each version, and below it what changed."""

from datetime import UTC, datetime
from typing import Any

from processor.tools.inspect.board import history_lines
from registry.model import HistoryEntry

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SLOT = {"entity": "star", "slot": 3, "columns": ["owner", "name"], "state": "planned", "changed_version": 4}
JOIN = {"id": 8, "child": "star", "child_columns": ["who"], "parent": "user", "parent_columns": ["name"]}


def entry(version: int, table: str, operation: str, old: Any, new: Any, why: str | None = "a test") -> HistoryEntry:
    row = {"old": old, "new": new}
    return HistoryEntry(version=version, at=AT, who="ada", why=why, entry=table, operation=operation, **row)


PATH = {"join_id": 8, "direction": "down", "entity": "star", "slot": 3, "edges": None}
PROFILE = {"name": "profile", "version": 1, "definition": {"fields": ["id"]}, "paused": False, "retracted": False}


def lines(*entries: HistoryEntry) -> list[str]:
    """What the history says of a version."""
    return [line.strip() for line in list(history_lines(entries))[1:]]


def test_each_version_has_its_author_and_reason_and_each_entry_a_short_change() -> None:
    entries = [
        entry(5, "products", "update", PROFILE, PROFILE | {"version": 2, "definition": {"fields": ["id", "name"]}}),
        entry(5, "assignments", "update", SLOT, SLOT | {"state": "writing", "changed_version": 5}),
        entry(4, "work", "update", {"one": True, "paused": False}, {"one": True, "paused": True}, why=None),
    ]
    assert list(history_lines(entries)) == [
        "version 5, 2026-01-02 03:04:05 UTC, ada: a test",
        "  product profile: version 2 took the place of 1",
        "  product profile: fields.name: added, name",
        "  slot GSI_3 of star, owner#name: planned -> writing",
        "version 4, 2026-01-02 03:04:05 UTC, ada: no reason given",
        "  paused all work",
    ]


def test_a_join_of_a_product_is_one_line_with_its_slot_and_no_line_for_each_row_of_the_registry() -> None:
    joined = entry(3, "product_joins", "insert", None, {"product": "profile", "join_id": 8, "position": 0})
    paths = [
        entry(3, "access_paths", "insert", None, PATH),
        entry(3, "access_paths", "insert", None, PATH | {"slot": None}),
    ]
    assert lines(joined, *paths, entry(3, "joins", "insert", None, JOIN)) == [
        "joined star in profile; slot GSI_3 of star"
    ]
    assert lines(joined) == ["joined entity of join 8 in profile"]  # the history does not go back to the join
    left = entry(4, "product_joins", "delete", {"product": "profile", "join_id": 8}, None)
    assert lines(left, entry(4, "joins", "delete", JOIN, None)) == ["profile joins star no more"]
    waits = entry(5, "waiting_joins", "delete", {"product": "profile", "join_id": 8}, None)
    assert lines(entry(5, "product_joins", "insert", None, {"product": "profile", "join_id": 8}), waits) == []
    moved = entry(6, "access_paths", "update", PATH, PATH | {"slot": 5})
    assert lines(moved) == ["join of entity of join 8 reads star by GSI_5, before by GSI_3"]


def test_a_product_an_entity_a_pause_and_slots_have_their_words() -> None:
    star = {"name": "star", "topic": "db.star", "definition": {"key": ["id"]}, "dropped": {}}
    assert lines(
        entry(2, "products", "insert", None, PROFILE),
        entry(2, "entities", "insert", None, star),
        entry(2, "entities", "update", star, star | {"definition": {"key": ["id"], "shards": 4}}),
        entry(2, "assignments", "delete", SLOT, None),
        entry(2, "work", "update", {"paused_topics": ["a"]}, {"paused_topics": ["b"]}),
        *(entry(2, "slots", "insert", None, {"slot": number}) for number in (6, 7, 8)),
    ) == [
        "product profile: added, version 1",
        "entity star: added, from topic db.star",
        "entity star: shards: added, 4",
        "slot GSI_3 of star: free, held owner#name",
        "paused topic b",
        "resumed topic a",
        "slots GSI_6 to GSI_8 added",
    ]
    assert lines(entry(3, "products", "update", PROFILE, PROFILE | {"paused": True})) == ["paused product profile"]
    assert lines(entry(3, "products", "delete", PROFILE, None), left_of("profile")) == [
        "product profile: removed, was version 1"
    ]
    waiting = entry(3, "waiting_products", "insert", None, PROFILE | {"version": 2})
    assert lines(waiting) == ["product profile: version 2 waits until stored rows have its slots"]
    ended = entry(4, "waiting_products", "delete", PROFILE | {"version": 2}, None)
    assert lines(ended) == ["product profile: version 2 waits no more"]
    live = entry(4, "products", "update", PROFILE, PROFILE | {"version": 2})
    assert lines(live, ended) == ["product profile: version 2 took the place of 1"]


def left_of(product: str) -> HistoryEntry:
    """A join goes with its product."""
    return entry(3, "product_joins", "delete", {"product": product, "join_id": 8}, None)


def test_many_entries_of_a_table_are_counted() -> None:
    rows = [{"topic": "star", "partition": n, "epoch": 2, "from_offset": 9} for n in range(28)]
    found = lines(*(entry(2, "epochs", "insert", None, row) for row in rows))
    assert (len(found), found[-1]) == (4, "and 25 more of epochs")
