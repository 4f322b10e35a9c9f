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


def test_each_version_has_its_author_and_reason_and_each_entry_a_short_change() -> None:
    product = {"name": "profile", "version": 1, "definition": {"fields": ["x" * 50]}}
    entries = [
        entry(5, "products", "update", product, product | {"version": 2, "definition": {}}),
        entry(5, "assignments", "update", SLOT, SLOT | {"state": "writing", "changed_version": 5}),
        entry(4, "work", "update", {"one": True, "paused": False}, {"one": True, "paused": True}, why=None),
        entry(3, "joins", "insert", None, JOIN),
        entry(3, "access_paths", "insert", None, {"join_id": 8, "direction": "up"}),
        entry(3, "waiting_joins", "delete", {"product": "profile", "join_id": 8}, None),
    ]
    assert list(history_lines(entries)) == [
        "version 5, 2026-01-02 03:04:05 UTC, ada: a test",
        '  products profile: version 1 -> 2, definition {"fields": ["xxxxxxxxxxxxxxxxxxxxxxxx... -> {}',
        "  assignments star GSI_3 owner#name: state planned -> writing",
        "version 4, 2026-01-02 03:04:05 UTC, ada: no reason given",
        "  work: paused false -> true",
        "version 3, 2026-01-02 03:04:05 UTC, ada: a test",
        "  joins 8, star(who) = user(name): insert",
        "  access_paths of join 8 up: insert",
        "  waiting_joins profile, join 8: delete",
    ]
