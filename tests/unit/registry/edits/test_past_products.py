"""The topics to which products ever published, by the history of the registry."""

from datetime import UTC, datetime
from typing import Any

from registry.edits.history import PastProduct, past_products
from registry.model import HistoryEntry


def row(name: str, topic: str, root: str = "user", *, retracted: bool = False, **definition: Any) -> dict[str, Any]:
    return {
        "name": name,
        "topic": topic,
        "root": root,
        "definition": {"root": root, **definition},
        "retracted": retracted,
    }


def entry(version: int, old: Any, new: Any, table: str = "products") -> HistoryEntry:
    operation = "insert" if old is None else "delete" if new is None else "update"
    at = datetime(2026, 11, 24, tzinfo=UTC)
    return HistoryEntry(version=version, at=at, who="me", why=None, entry=table, operation=operation, old=old, new=new)


def past(*entries: HistoryEntry, entity: str = "user") -> set[tuple[str, str, str]]:
    """`entries`: the oldest first."""
    found = past_products(tuple(reversed(entries)), entity)
    return {(one.name, one.root, one.topic) for one in found}


def test_a_product_that_got_another_topic_has_both() -> None:
    moved = [entry(1, None, row("p", "a")), entry(2, row("p", "a"), row("p", "b"))]
    assert past(*moved) == {PastProduct("p", "user", "a"), PastProduct("p", "user", "b")}


def test_a_product_that_went_with_its_tombstones_left_nothing_in_its_topic() -> None:
    made = [entry(1, None, row("p", "a")), entry(2, row("p", "a"), row("p", "b"))]
    gone = [
        entry(3, row("p", "b"), row("p", "b", retracted=True)),
        entry(4, row("p", "b", retracted=True), None),
    ]
    assert past(*made, *gone) == {("p", "user", "a")}
    assert past(*made, entry(3, row("p", "b"), None)) == {("p", "user", "a"), ("p", "user", "b")}


def test_a_product_of_another_root_counts_if_it_embeds_the_entity() -> None:
    embeds = row("p", "a", "star", embed={"by": [{"one": "user", "on": {"id": "who"}}]})
    assert past(entry(1, None, embeds)) == {("p", "star", "a")}
    assert past(entry(1, None, row("p", "a", "star", fields=["userid"]))) == set()


def test_other_tables_and_waiting_products_published_nothing() -> None:
    assert (
        past(entry(1, None, row("p", "a"), "waiting_products"), entry(2, None, {"name": "user"}, "entities")) == set()
    )
