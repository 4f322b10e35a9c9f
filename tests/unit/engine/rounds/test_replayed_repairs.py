"""A repair from the source writes directly behind the version that it repairs, and never over a newer one."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.protocol.replays import ReplayReport
from processor.values.dead_letters import REPAIR, DeadLetter, reject_message, rejected_record, repair_record
from processor.values.entity import PLACEHOLDER
from processor.values.record import Rejected
from statestore.items import next_fill
from tests.unit.engine.protocol.replay_world import NARROW, World

USER = NARROW.entities["user"].entity


@pytest.fixture
def world() -> World:
    return World()


def repair(world: World, row: Any, seen: str, number: int = 1) -> str:
    """The outcome of a repair, whose letter went through its topic."""
    record = repair_record(USER, {"id": 1}, None if row is None else {"id": 1, **row}, seen, number)
    message = reject_message(Rejected(record=record, reason="differs", code=REPAIR, entity="user"), "rejects")
    letter = DeadLetter(rejected=rejected_record(message), kept_since=0.0)
    reports: list[ReplayReport] = world.trial.driver.replay([letter])
    return reports[0].outcome


def test_a_repair_gives_the_row_of_the_source_and_later_records_count(world: World) -> None:
    world.batch(world.user(name="stored", bio="kept", age=3, extra="kept, too"))
    seen = world.row().version
    assert repair(world, {"name": "source", "bio": PLACEHOLDER, "age": 4, "extra": PLACEHOLDER}, seen) == "applied"
    row = world.row()
    assert row.version == next_fill(seen)
    assert dict(row.columns or {}) == {"id": 1, "name": "source", "bio": "kept", "age": 4}
    assert row.more == {"extra": "kept, too"}
    assert world.document()["name"] == "source"
    world.batch(world.user(name="later"))
    assert world.document()["name"] == "later"


def test_a_repair_never_overtakes_a_newer_record(world: World) -> None:
    world.batch(world.user(name="stored"))
    seen = world.row().version
    world.batch(world.user(name="newer"))
    assert repair(world, {"name": "source"}, seen) == "superseded"
    assert world.document()["name"] == "newer"


def test_a_missing_row_is_older_than_every_record(world: World) -> None:
    late = replace(world.user(name="late record"), epoch=1)  # the lowest epoch of a job
    assert repair(world, {"name": "source"}, "") == "applied"
    assert world.document()["name"] == "source"
    assert repair(world, {"name": "second"}, world.row().version, number=2) == "applied"
    world.batch(late)
    assert world.document()["name"] == "late record"


def test_a_repair_whose_answer_was_lost_still_publishes_its_document(world: World) -> None:
    """The second attempt finds the row of the first one, whose change nobody holds."""
    assert repair(world, {"name": None}, "") == "applied"
    world.trial.driver.progress.open_changes.held.clear()
    world.trial.driver.progress.open_changes.groups.clear()
    assert repair(world, {"name": None}, "") == "superseded"
    assert world.document() == {"id": 1, "name": None, "bio": None, "age": None, "stars": []}


def test_a_row_that_the_source_has_no_more_goes_and_comes_back(world: World) -> None:
    world.batch(world.user(name="stored"))
    assert repair(world, None, world.row().version) == "applied"
    assert world.document() is None
    assert repair(world, {"name": "again"}, world.row().version, number=2) == "applied"
    assert world.document()["name"] == "again"


def test_a_repair_after_a_truncate_stays(world: World) -> None:
    world.batch(world.user(name="stored"), world.emptied())
    assert world.document() is None
    assert repair(world, {"name": "source"}, "") == "superseded"  # the marker of the truncate is newer
    assert repair(world, {"name": "source"}, world.row().version, number=2) == "applied"
    assert world.document()["name"] == "source"
