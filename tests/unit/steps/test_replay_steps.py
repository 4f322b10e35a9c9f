"""The requests of a replay, one after another: what is durable before what, and an attempt that Spark gave up."""

from dataclasses import replace
from typing import Any

import pytest

from processor.progress.committed import NOTHING
from processor.progress.replays import end_replay, noted_keys, replay_key
from processor.progress.segment import changes_key, read_changes
from processor.records.record import Record
from processor.steps.decode import decode
from processor.steps.replay import replay
from statestore.store import Delete
from statestore.table import TTL
from tests.unit.steps.dialogue import answers_of
from tests.unit.steps.replay_world import WIDE, World, outcomes


@pytest.fixture
def world() -> World:
    return World()


class StepwiseReplay:
    """A replay that goes on only when the test answers. `opens`: the item of its open change. `asked`: the requests that wait for
    answers."""

    def __init__(self, world: World, record: Record) -> None:
        change: Any = decode(record, WIDE.entities[record.topic].entity)
        self._store = world.trial.store
        self.opens = changes_key(1, 1, f"replay{record.offset}", 0)
        plan, note = WIDE.entities[record.topic], replay_key(record)
        self._step = replay(change, plan, note=note, opens=self.opens, expires_at=99)
        self.asked = next(self._step)

    def answer(self) -> Any:
        """Hands the step the answers of the store; returns what it asks next, or its result."""
        try:
            self.asked = self._step.send(answers_of(self._store, self.asked))
        except StopIteration as end:
            return end.value
        return self.asked


def test_every_key_is_durable_before_the_row_is_written_and_the_row_keeps_its_pending_keys(world: World) -> None:
    world.batch(world.star(who="ada"))
    world.trial.committed = NOTHING  # an attempt that never committed
    world.batch(world.star(who="bob"))
    replaying = StepwiseReplay(world, world.star(who="cyd"))
    note, opens = replaying.answer()
    assert (note.key.pk, opens.key) == ("REPLAYS", changes_key(1, 1, "replay3", 0))
    assert TTL in note.set  # the keys go with the markers of their time
    assert TTL not in opens.set
    assert {TTL, "rows"} <= set(end_replay(world.star(), "applied").remove)  # the outcome stays
    (opened,) = read_changes(opens.set)
    assert opened.former == {(1, "ada"), (1, "bob")}
    assert opened.slots == ((1, "cyd"),)
    (write,) = replaying.answer()
    assert write.when.value == world.row("star").version
    replaying.answer()
    assert {p.key for p in world.row("star").pending} == {"ada", "bob"}


def test_a_refused_write_opens_the_keys_of_the_row_that_it_met(world: World) -> None:
    world.batch(world.star(who="ada"))
    bad = world.star(who="cyd")
    replaying = StepwiseReplay(world, bad)
    replaying.answer()
    replaying.answer()
    world.batch(replace(bad, offset=1, value=b'{"id": 1, "who": "bob"}'), world.star(who="dan"))
    note, _ = replaying.answer()
    (opened,) = read_changes(note.set)
    assert (1, "dan") in opened.slots
    assert {(1, "ada"), (1, "cyd")} <= opened.former
    assert replaying.answer().outcome == "superseded"


def test_the_next_attempt_finds_the_keys_of_an_attempt_that_was_given_up(world: World) -> None:
    """Its write came after the driver had closed its open change. The next change of the row forgot the key `ada`."""
    world.trial.driver.adopt(WIDE)  # not at the replay: another plan publishes every document again
    world.batch(world.user(name="ada", bio="", age=1), world.star(who="ada"))
    assert world.document()["stars"] == [1]
    bad = world.star(who="bob")
    world.batch(replace(bad, value=b"{"))
    late = StepwiseReplay(world, bad)
    late.answer()
    late.answer()
    world.trial.store.delete(Delete(key=late.opens))
    late.answer()
    world.batch(world.star(who="cyd"))
    assert world.document()["stars"] == [1]  # the row has lost the key `ada`
    assert (1, "ada") in noted_keys(world.trial.store.get([replay_key(bad)])[replay_key(bad)])
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document()["stars"] == []
