"""What an undo puts back, from entries of the history, and what it refuses."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.edits.history import NoUndo, Reversal, reverse
from registry.edits.operations import pause, remove
from registry.model import HistoryEntry, Requirements, Snapshot
from tests.unit.registry.edits.test_waiting import ALL, with_join

OLD = {"root": "user", "fields": ["email", "username"]}
NEW = {"root": "user", "fields": ["email"]}


def entry(version: int, table: str, old: Any, new: Any) -> HistoryEntry:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    operation = "update" if old and new else "insert" if new else "delete"
    named = [one and {"name": "user_profile", **one} for one in (old, new)]
    return HistoryEntry(
        version=version, at=at, who="ada", why="", entry=table, operation=operation, old=named[0], new=named[1]
    )


def row(definition: Any, *, paused: bool = False, retracted: bool = False) -> dict[str, Any]:
    return {"definition": definition, "paused": paused, "retracted": retracted}


def switch(*topics: str, paused: bool = False) -> dict[str, Any]:
    """The row of pauses of all work and of topics."""
    return {"paused": paused, "paused_topics": list(topics)}


@pytest.fixture
def changed(applied: Snapshot) -> Snapshot:
    """The registry after its product got the definition NEW."""
    return replace(applied, version=2, products=(replace(applied.products[0], definition=NEW, version=2),))


def test_a_changed_product_gets_its_old_definition(changed: Snapshot) -> None:
    history = [entry(2, "products", row(OLD), row(NEW)), entry(1, "products", None, row(OLD))]
    assert reverse(changed, history, 2) == Reversal(products={"user_profile": OLD})


def test_a_waiting_version_that_went_live_by_steps_of_the_job_is_undone_too(changed: Snapshot) -> None:
    history = [
        entry(4, "waiting_products", row(NEW), None),
        entry(4, "products", row(OLD), row(NEW)),
        entry(3, "assignments", {"state": "planned"}, {"state": "writing"}),
        entry(2, "waiting_products", None, row(NEW)),
        entry(1, "products", None, row(OLD)),
    ]
    assert reverse(changed, history, 2) == Reversal(products={"user_profile": OLD})
    with pytest.raises(
        NoUndo, match="version 4 cannot be undone: it only published the same documents again, or was a"
    ):
        reverse(changed, history, 4)
    with pytest.raises(NoUndo, match="version 3 cannot be undone: it only changed slots"):
        reverse(changed, history, 3)


def test_an_added_product_is_removed_and_its_new_entity_stays(applied: Snapshot) -> None:
    star = next(one for one in applied.entities if one.name == "star")
    history = [
        entry(1, "products", None, row(OLD)),
        entry(1, "entities", None, {"name": "star", "definition": star.definition}),
    ]
    assert reverse(applied, history, 1) == Reversal(removed=("user_profile",), added=("star",))


def test_a_removed_or_retracted_product_comes_back(applied: Snapshot) -> None:
    gone = edited(applied, remove(applied, "user_profile", tombstones=False))
    assert reverse(gone, [entry(2, "products", row(OLD), None)], 2).products == {"user_profile": OLD}
    going = edited(applied, remove(applied, "user_profile", tombstones=True))
    change = entry(2, "products", row(OLD), row(OLD, retracted=True))
    assert reverse(going, [change], 2).products == {"user_profile": OLD}


def test_a_pause_ends(applied: Snapshot) -> None:
    paused = edited(applied, pause(applied, "user_profile", paused=True))
    change = entry(2, "products", row(OLD), row(OLD, paused=True))
    assert reverse(paused, [change], 2) == Reversal(paused={"user_profile": False})
    paused = edited(applied, pause(applied, None, paused=True))
    work = entry(2, "work", switch(paused=False), switch(paused=True))
    assert reverse(paused, [work], 2) == Reversal(paused={None: False})
    with pytest.raises(NoUndo):
        reverse(applied, [entry(3, "work", switch(paused=True), switch(paused=False)), work], 2)
    topics = entry(2, "work", switch("a", "b"), switch("b", "c"))
    assert reverse(replace(applied, paused_topics=("c", "d")), [topics], 2) == Reversal(topics={"a": True, "c": False})
    with pytest.raises(NoUndo):
        reverse(replace(applied, paused_topics=("a",)), [topics], 2)


def test_added_slots_stay(applied: Snapshot) -> None:
    with pytest.raises(NoUndo, match="version 2 cannot be undone: it added slots, and the table keeps their indexes"):
        reverse(applied, [entry(2, "slots", None, {"slot": 21})], 2)


def test_a_product_that_a_later_edit_changed_is_not_undone(applied: Snapshot, github: Requirements) -> None:
    later = edited(applied, apply(applied, with_join(github), has_run=ALL))
    later = replace(later, waiting=(replace(later.waiting[0], definition={"other": 1}),))
    history = [
        entry(3, "waiting_products", None, row({"other": 1})),
        entry(2, "products", row(NEW), row(OLD)),
    ]
    with pytest.raises(NoUndo, match="a later edit changed product user_profile again: undo that one first"):
        reverse(later, history, 2)
    with pytest.raises(NoUndo, match="version 9 cannot be undone: the history has no edit of this version"):
        reverse(later, history, 9)
