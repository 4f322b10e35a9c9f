"""Replays of dead letters: older or newer than their row, twice, and after an attempt that Spark gave up."""

from dataclasses import replace

import pytest

from processor.engine.protocol.epochs import NOTHING
from processor.engine.protocol.replays import end_replay, ended_replays, replay_key
from processor.engine.protocol.segments import open_items
from processor.values.entity import PLACEHOLDER
from tests.unit.engine.protocol.replay_world import World, outcomes


@pytest.fixture
def world() -> World:
    return World()


def test_a_dead_letter_that_decodes_now_is_applied_and_its_documents_are_published(world: World) -> None:
    world.batch(world.star(who="ada"), bad := world.user(name="ada", bio="b", age="old"))
    assert world.document() is None
    assert outcomes(world.replay(bad)) == ["applied"]
    assert world.document() == {"id": 1, "name": "ada", "bio": "b", "age": "old", "stars": [1]}


def test_the_documents_of_the_old_and_of_the_new_key_are_published(world: World) -> None:
    world.batch(world.user(name="ada", bio="", age=1), world.star(who="ada"))
    assert world.document()["stars"] == [1]
    assert outcomes(world.replay(replace(world.star(who="bob"), offset=9))) == ["applied"]
    assert world.document()["stars"] == []


def test_a_dead_letter_from_before_a_truncate_brings_no_row_back(world: World) -> None:
    world.batch(bad := world.user(name="ada", bio="b", age="old"), world.emptied())
    world.trial.finish()
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document() is None
    later = world.user(name="ada", bio="b", age="new")
    assert outcomes(world.replay(later)) == ["applied"]
    assert world.document()["age"] == "new"


def test_a_replayed_truncate_is_refused(world: World) -> None:
    (report,) = world.replay(world.emptied())
    assert (report.outcome, "a replay deletes no rows" in report.reason) == ("refused", True)


def test_a_dead_letter_that_is_refused_again_gives_the_reason_and_writes_nothing(world: World) -> None:
    bad = world.user(name=7, bio="", age="old")
    (done,) = world.replay(bad)
    assert (done.outcome, done.reason) == ("refused", "column 'name': expected string, found number 7")
    (other,) = world.replay(replace(bad, topic="gone"))
    assert (other.outcome, other.reason) == ("refused", "no entity has the topic gone any more")
    assert world.trial.store.partition("REPLAYS") == list(open_items(world.trial.store)) == []


def test_a_dead_letter_older_than_any_delete_marker_is_refused(world: World) -> None:
    (done,) = world.replay(world.user(name="ada", bio="", age="old"), kept=-40 * 86_400.0)
    assert done.outcome == "refused"
    assert "marker_days" in done.reason
    assert world.document() is None


def test_a_newer_row_stays_as_it_is(world: World) -> None:
    bad = world.user(name="ada", bio="old", age="old")
    world.batch(bad, world.user(name="bob", bio="new", age=2))
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document() == {"id": 1, "name": "bob", "bio": "new", "age": 2, "stars": []}
    assert world.trial.store.partition("REPLAYS") == []


def test_a_dead_letter_of_an_earlier_epoch_never_wins_at_any_offset(world: World) -> None:
    bad = replace(world.user(name="ada", bio="old", age="old"), epoch=1, offset=900)
    world.batch(replace(world.user(name="bob", bio="new", age=2), epoch=2, offset=1))
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document()["name"] == "bob"


def test_a_deleted_row_stays_deleted(world: World) -> None:
    bad = world.user(name="ada", bio="", age="old")
    world.batch(world.user(name="ada", bio="", age=1), bad)
    world.batch(world.gone())
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document() is None


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_columns_that_later_changes_did_not_send_are_filled(world: World, batches: int) -> None:
    """In any batches. The stored name and bio are older than the dead letter, the stored age is newer."""
    first = world.user(name="ada", bio="first", age=1)
    bad = world.user(name="eve", bio="second", age="old")
    third = world.user(name=PLACEHOLDER, bio=PLACEHOLDER, age=3)
    world.batch(world.star(who="eve"))
    for batch in {1: [[first, bad, third]], 2: [[first, bad], [third]], 3: [[first], [bad], [third]]}[batches]:
        world.batch(*batch)
    assert world.document() == {"id": 1, "name": "ada", "bio": "first", "age": 3, "stars": []}
    version = world.row().version
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert version < world.row().version < version[:-1] + "9"
    assert world.document() == {"id": 1, "name": "eve", "bio": "second", "age": 3, "stars": [1]}


def test_a_value_that_a_batch_filled_has_the_version_of_the_change_that_sent_it(world: World) -> None:
    first = world.user(name="ada", bio="first", age=1)
    bad = world.user(name="eve", bio="second", age="old")
    third = world.user(name=PLACEHOLDER, bio="third", age=3)
    world.batch(third)
    world.trial.committed = NOTHING  # the next batch reads again, from an earlier offset
    world.batch(first, bad, third)
    assert world.document()["name"] == "ada"
    world.replay(bad)
    assert world.document()["name"] == "eve"


def test_columns_without_a_value_are_filled_from_the_newest_dead_letter_in_any_order(world: World) -> None:
    bad = [world.user(name="ada", bio=f"bio {i}", age="old") for i in range(3)]
    world.batch(*bad, world.user(name=PLACEHOLDER, bio=PLACEHOLDER, age=7))
    for letter in (bad[1], bad[2], bad[0]):
        world.replay(letter)
    assert world.document() == {"id": 1, "name": "ada", "bio": "bio 2", "age": 7, "stars": []}


def test_a_replay_does_not_overwrite_a_column_that_a_later_change_sent(world: World) -> None:
    bad = [world.user(name="ada", bio=f"bio {i}", age="old") for i in range(2)]
    world.batch(*bad, world.user(name="ada", bio=PLACEHOLDER, age=7))
    world.replay(bad[0])
    world.batch(world.user(name="ada", bio="newest", age=8))
    assert outcomes(world.replay(bad[1])) == ["superseded"]
    assert world.document()["bio"] == "newest"


def test_a_change_that_comes_after_a_newer_dead_letter_fills_the_column_that_it_did_not_send(world: World) -> None:
    """The job stopped before it wrote the batch. The dead letter was durable, and an operator replayed it first."""
    first = world.user(name="ada", bio="first", age=1)
    second = world.user(name="ada", bio="second", age=2)
    bad = world.user(name="ada", bio=PLACEHOLDER, age="old")
    world.batch(first)
    world.replay(bad)
    world.batch(second, replace(bad, value=b"{"))
    assert world.document() == {"id": 1, "name": "ada", "bio": "second", "age": "old", "stars": []}


def test_dead_letters_of_a_key_are_replayed_in_the_order_of_their_offsets(world: World) -> None:
    bad = [world.user(name=f"name {i}", bio="", age="old") for i in range(3)]
    assert outcomes(world.replay(*reversed(bad))) == ["applied", "applied", "applied"]
    assert world.document()["name"] == "name 2"


def test_a_second_replay_changes_no_row_and_publishes_nothing(world: World) -> None:
    bad = world.user(name="ada", bio="", age="old")
    world.replay(bad)
    world.document()
    before, sent = world.row(), len(world.trial.published.messages)
    assert outcomes(world.replay(bad)) == ["superseded"]
    world.document()
    assert (world.row(), len(world.trial.published.messages)) == (before, sent)


def test_a_replay_that_has_ended_opens_nothing(world: World) -> None:
    bad = world.user(name="ada", bio="", age="old")
    world.replay(bad)
    store = world.trial.store
    assert ended_replays(store.partition("REPLAYS")) == {}
    store.write(end_replay(bad, "applied"))
    assert ended_replays(store.partition("REPLAYS")) == {replay_key(bad): "applied"}
    opened = list(open_items(store))
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert list(open_items(store)) == opened
