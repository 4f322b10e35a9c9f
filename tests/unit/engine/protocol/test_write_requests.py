"""The requests of the step that writes a change: which answers end it, and which touch it returns."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.row_image import declared_row, image_of
from processor.engine.plan.step import OVERSIZED, UNDECLARED, RefusedChange, Request, Step, Touch, WeakKey
from processor.engine.protocol.epochs import NOTHING, Committed, Published, published_before
from processor.engine.protocol.write_state import write_state
from processor.values.record import UNAVAILABLE, Change, Record
from statestore.store import MAX_ITEM_BYTES, Done, Item, Refused, TooLarge, Write, WriteOutcome
from statestore.writes import keep_indexed, merge_image, write_image
from tests.unit.engine.protocol.dialogue import dialogue
from tests.unit.engine.protocol.example import PLAN, V, key, row_item

STAR, PLACE = key("star", 5), ("star", 0, 0)
PLANNED = PLAN.entities["star"]
NO_KEY = "!TABLE#star!5"
NEW = published_before(NOTHING, PLACE, 2, "~")
"""A batch has committed nothing."""
COMMITTED = published_before(Committed({PLACE: (0, 2)}), PLACE, 2, "~")
"""Batches have committed the offsets 0 and 1."""


def change(who: Any = "ada", *, offset: int = 2, deleted: bool = False, key: int | None = 5) -> Change:
    record = Record(topic="star", partition=0, offset=offset, key=b"{}", value=b"{}")
    row = None if deleted else {"id": 5, "who": who, "repo": 9}
    return Change(record=record, entity="star", key=(key,), row=row)


def item(version: str, who: str = "bob", **more: Any) -> Item:
    shown = {"id": 5, "who": who, "repo": 9}
    own = {"PK": STAR.pk, "SK": STAR.sk, "_f": 1, "_v": version, "_l": 1}
    return {**own, "GSI_1": who, "GSI_2": "9", "_indexed": shown, "_indexed_v": version, **more}


def step(one: Change, published: Published = NEW, **options: Any) -> Step[Touch | RefusedChange]:
    return write_state(one, PLANNED, published=published, expires_at=99, **options)


def first(one: Change, published: Published = NEW, **other: Any) -> Request:
    """The first write of a change."""
    image = image_of(one, PLANNED, STAR, None, 99)._replace(**other)
    return write_image(image, below=published.below, since=published.since)


def merge(one: Change, seen: Item | None, published: Published = NEW) -> Write:
    """The write of a change over a row."""
    row = None if seen is None else declared_row(seen, PLANNED)
    image = image_of(one, PLANNED, STAR, row, 99)
    if row is not None and published(row.version):
        image = keep_indexed(image, row)
    return merge_image(image, row, published=published)


def touched(outcome: Touch | RefusedChange) -> Touch:
    assert isinstance(outcome, Touch)
    return outcome


def test_a_change_without_a_key_is_an_error() -> None:
    with pytest.raises(ValueError, match="a star without a key reached the table"):
        dialogue(step(change(key=None)))


def test_a_first_write_touches_the_keys_that_it_replaces() -> None:
    old = item(V[1])
    touch = touched(dialogue(step(change(), COMMITTED), [(first(change(), COMMITTED), Done(old))]))
    assert touch == Touch("star", touch.row, frozenset({(1, "bob")}), frozenset({"who"}), "applied")


@pytest.mark.parametrize("version", [V[2], V[3]], ids=["replayed", "superseded"])
def test_a_change_that_the_table_already_has_ends_with_one_request(version: str) -> None:
    stored = item(version, _pending=[[1, "cyd", V[1]], [2, "9", V[1]]])
    touch = touched(dialogue(step(change()), [(first(change()), Refused(stored))]))
    assert (touch.outcome, touch.changed) == ("replayed" if version == V[2] else "superseded", None)
    assert touch.former_keys == {(1, "cyd")}


def test_an_older_row_that_no_batch_committed_keeps_its_keys_pending_and_counts_as_changed() -> None:
    older = item(V[1], _pending=[[1, "cyd", V[0]]])
    turns = [(first(change()), Refused(older))], [(merge(change(), older), Done(older))]
    touch = touched(dialogue(step(change()), *turns))
    assert touch == Touch("star", touch.row, frozenset({(1, "bob"), (1, "cyd")}), None, "applied")


def test_an_older_row_that_a_batch_committed_counts_as_if_the_first_write_had_succeeded() -> None:
    one = change(offset=3)
    published = published_before(Committed({PLACE: (0, 3)}), PLACE, 2, "~")  # a batch reads offset 2 once more
    older = item(V[1])
    turns = [(first(one, published), Refused(older))], [(merge(one, older, published), Done(older))]
    touch = touched(dialogue(step(one, published), *turns))
    assert touch == Touch("star", touch.row, frozenset({(1, "bob")}), frozenset({"who"}), "applied")


def test_a_row_that_changes_between_two_writes_is_merged_as_the_refusal_shows_it() -> None:
    older, newer = item(V[0]), item(V[1], "cyd")
    turns = (
        [(first(change()), Refused(older))],
        [(merge(change(), older), Refused(newer))],
        [(merge(change(), newer), Done(newer))],
    )
    assert touched(dialogue(step(change()), *turns)).former_keys == {(1, "cyd")}


def test_a_row_that_another_task_writes_between_two_writes_ends_the_step() -> None:
    older, same = item(V[0]), item(V[2], "ada")
    turns = [(first(change()), Refused(older))], [(merge(change(), older), Refused(same))]
    assert touched(dialogue(step(change()), *turns)).outcome == "replayed"


UNSENT = change(UNAVAILABLE)


@pytest.mark.parametrize("stored", [item(V[1]), None], ids=["a row", "no row"])
def test_a_value_that_was_not_sent_is_read_first_and_a_write_needs_no_second_read(stored: Item | None) -> None:
    turns = [(WeakKey(STAR), stored)], [(merge(UNSENT, stored), Done(stored))]
    touch = touched(dialogue(step(UNSENT), *turns))
    assert (touch.row.columns or {})["who"] == (None if stored is None else "bob")


def test_a_weak_read_that_leads_to_no_write_is_repeated_strongly_consistent() -> None:
    newer = item(V[3])
    assert touched(dialogue(step(UNSENT), [(WeakKey(STAR), newer)], [(STAR, newer)])).outcome == "superseded"


def test_a_row_that_is_read_first_is_merged_even_if_all_values_are_there() -> None:
    older = item(V[1])
    turns = [(WeakKey(STAR), older)], [(merge(change(), older), Done(older))]
    assert touched(dialogue(step(change(), reads=True), *turns)).outcome == "applied"


@pytest.mark.parametrize("published", [NEW, COMMITTED], ids=["new", "committed"])
def test_an_update_leaves_alone_what_the_indexes_show_only_of_a_row_that_a_batch_committed(
    published: Published,
) -> None:
    same = item(V[1], "ada")
    write = merge(change(), same, published)
    assert ("_indexed" in write.set) is (published is NEW)
    touch = touched(dialogue(step(change(), published, reads=True), [(WeakKey(STAR), same)], [(write, Done(same))]))
    assert touch.row.version_in_indexes() == (V[2] if published is NEW else V[1])


@pytest.mark.parametrize("sure", [True, False])
def test_a_merge_that_does_not_fit_is_refused_by_the_row_that_the_table_has(sure: bool) -> None:
    older = item(V[1])
    if sure:
        refused = dialogue(step(change()), [(first(change()), Refused(older))], [(merge(change(), older), TooLarge())])
    else:
        large: tuple[Request, WriteOutcome] = merge(UNSENT, older), TooLarge()
        refused = dialogue(step(UNSENT), [(WeakKey(STAR), older)], [large], [(STAR, older)], [large])
    assert isinstance(refused, RefusedChange)
    assert refused.reason == OVERSIZED


def test_a_row_without_room_for_its_updates_is_refused_before_the_write() -> None:
    refused = dialogue(step(change("a" * MAX_ITEM_BYTES)))
    assert isinstance(refused, RefusedChange)
    assert refused.reason == OVERSIZED
    refused = dialogue(step(change()), [(first(change()), TooLarge())])
    assert isinstance(refused, RefusedChange)
    older = item(V[1])
    refused = dialogue(step(change("a" * MAX_ITEM_BYTES), reads=True), [(WeakKey(STAR), older)], [(STAR, older)])
    assert isinstance(refused, RefusedChange)


DELETE = change(deleted=True)
LEAVES = {"slots": {}, "emptied": (1, 2)}


def test_a_delete_leaves_the_indexes_only_if_they_have_shown_the_row() -> None:
    stays = touched(dialogue(step(DELETE, COMMITTED), [(first(DELETE, COMMITTED), Done(item(V[1])))]))
    assert stays.row.slots == {1: NO_KEY, 2: NO_KEY}
    written = first(DELETE, COMMITTED, **LEAVES)
    leaves = touched(dialogue(step(DELETE, COMMITTED, is_shown=lambda _: True), [(written, Done(item(V[1])))]))
    assert leaves.row.slots == {}
    assert stays.former_keys == leaves.former_keys == {(1, "bob"), (2, "9")}


def test_a_change_that_the_table_already_has_touches_no_key_whose_write_is_published() -> None:
    stored = item(V[3], _pending=[[1, "cyd", V[1]], [1, "dan", V[2]]])
    touch = touched(dialogue(step(change(), COMMITTED), [(first(change(), COMMITTED), Refused(stored))]))
    assert touch.former_keys == {(1, "dan")}


REPLAYED = item(V[1], "ada", _replayed=True, prev_1="abe", _pending=[[1, "abel", V[0]]])
"""A row whose documents nobody may have published, although a batch has committed its record."""


@pytest.mark.parametrize("made", [change(), DELETE], ids=["an update", "a delete"])
def test_a_change_over_a_row_that_a_replay_wrote_keeps_its_former_keys_pending_at_its_own_version(made: Change) -> None:
    write = merge_image(image_of(made, PLANNED, STAR, None, 99), declared_row(REPLAYED, PLANNED))
    turns = ([(first(made, COMMITTED), Refused(REPLAYED))], [(write, Done(REPLAYED))])
    touch = touched(dialogue(step(made, COMMITTED), *turns))
    assert {(1, "abe"), (1, "abel")} <= touch.former_keys
    assert touch.changed is None
    pending = {(slot, key): version for slot, key, version in write.set["_pending"]}
    assert pending[1, "abe"] == pending[1, "abel"] == write.set["_v"]
    assert "_replayed" in write.remove


def test_an_older_change_touches_all_former_keys_of_a_row_that_a_replay_wrote() -> None:
    stored = {**REPLAYED, "_v": V[3]}
    touch = touched(dialogue(step(change(), COMMITTED), [(first(change(), COMMITTED), Refused(stored))]))
    assert touch.former_keys == {(1, "abe"), (1, "abel")}


@pytest.mark.parametrize("old", [None, row_item("star", 5, _deleted=True, _l=1)], ids=["no row", "a marker"])
def test_a_delete_of_nothing_changes_nothing(old: Item | None) -> None:
    touch = touched(dialogue(step(DELETE, COMMITTED), [(first(DELETE, COMMITTED), Done(old))]))
    assert touch.changed == frozenset()


def test_a_column_that_no_product_reads_is_no_change() -> None:
    user = PLAN.entities["user"]
    record = Record(topic="user", partition=0, offset=2, key=b"{}", value=b"{}")
    for name, changed in (("ada", set()), ("bob", {"name"})):
        one = Change(record=record, entity="user", key=(5,), row={"id": 5, "name": name, "bio": "new"})
        published = published_before(Committed({("user", 0, 0): (0, 2)}), ("user", 0, 0), 2, "~")
        writing = write_state(one, user, published=published, expires_at=99)
        next(writing)
        with pytest.raises(StopIteration) as end:
            writing.send((Done(row_item("user", 5, name="ada", bio="old", GSI_1="ada")),))
        assert end.value.value.changed == changed


@pytest.mark.parametrize(
    ("whole", "extra", "changed"),
    [(True, "new", {UNDECLARED}), (True, "old", set()), (False, "new", set())],
    ids=["another value", "the same", "no product shows it"],
)
def test_an_undeclared_column_is_a_change_where_a_product_shows_whole_rows(
    whole: bool, extra: str, changed: set[str]
) -> None:
    plan = replace(PLANNED, used=None) if whole else PLANNED
    one = change()._replace(row={**(change().row or {}), "extra": extra})
    writing = write_state(one, plan, published=COMMITTED, expires_at=99)
    next(writing)
    with pytest.raises(StopIteration) as end:
        writing.send((Done(item(V[1], "ada", _more='{"extra":"old"}')),))
    assert end.value.value.changed == changed
