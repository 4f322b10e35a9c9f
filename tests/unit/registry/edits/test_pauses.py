"""Who paused a product last, by the history."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from registry.edits.history import current_pauses, last_pause
from registry.model import HistoryEntry, Snapshot

RUNS, PAUSED = {"name": "p", "paused": False}, {"name": "p", "paused": True}


def entry(
    old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, who: str, why: str | None = None
) -> HistoryEntry:
    at = datetime(2026, 11, 24, 3, 5, 7, tzinfo=UTC)
    return HistoryEntry(version=1, at=at, who=who, why=why, entry="products", operation="update", old=old, new=new)


def test_the_pause_that_goes_on_is_named_with_its_reason() -> None:
    history = [
        entry(PAUSED, {**PAUSED, "version": 2}, "an apply"),
        entry(RUNS, {**PAUSED, "name": "other"}, "cyd"),
        entry(RUNS, PAUSED, "ada", "a reader is ill"),
        entry(PAUSED, RUNS, "bob"),
        entry(RUNS, PAUSED, "bob"),
    ]
    assert last_pause(history, "p") == "by ada at 2026-11-24 03:05:07 UTC: a reader is ill"


@pytest.mark.parametrize("history", [[], [entry(None, RUNS, "ada"), entry(RUNS, None, "ada")]])
def test_a_pause_that_the_history_does_not_know_is_not_named(history: list[HistoryEntry]) -> None:
    assert last_pause(history, "p") == ""


def test_a_product_that_begins_paused_without_a_reason_is_named_by_its_author() -> None:
    assert last_pause([entry(None, PAUSED, "ada")], "p") == "by ada at 2026-11-24 03:05:07 UTC"


def test_the_pauses_of_topics_and_products_that_last_are_named(applied: Snapshot) -> None:
    def work(old: list[str], new: list[str], who: str) -> HistoryEntry:
        before, after = ({"paused": False, "paused_topics": topics} for topics in (old, new))
        return replace(entry(before, after, who, "repair"), entry="work")

    name = applied.products[0].name
    stored = replace(
        applied, paused_topics=("a", "b", "unknown"), products=(replace(applied.products[0], paused=True),)
    )
    history = [
        entry({"name": name, "paused": False}, {"name": name, "paused": True}, "eve"),
        work(["a"], ["a", "b"], "bob"),
        work([], ["a"], "ada"),
        work(["b"], [], "cyd"),
        work([], ["b"], "cyd"),
    ]
    found = [(one.kind, one.name, one.who, one.why) for one in current_pauses(stored, history)]
    assert found == [("topic", "a", "ada", "repair"), ("topic", "b", "bob", "repair"), ("product", name, "eve", "")]
