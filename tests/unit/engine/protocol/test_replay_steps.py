"""The requests of a replay, one after another: what is durable before what, and an attempt that Spark gave up."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.step import OVERSIZED
from processor.engine.protocol.decode import decode
from processor.engine.protocol.epochs import NOTHING
from processor.engine.protocol.replays import ReplayedChange, end_replay, noted_keys, replay, replay_key
from processor.engine.protocol.segments import changes_key, read_changes
from processor.values.entity import PLACEHOLDER
from processor.values.record import Record
from statestore.items import encode_version
from statestore.store import MAX_ITEM_BYTES, Delete, Done, Refused, TooLarge, Write
from statestore.table import TTL
from tests.unit.engine.protocol.dialogue import answers_of
from tests.unit.engine.protocol.replay_world import WIDE, World, outcomes


@pytest.fixture
def world() -> World:
    return World()


class StepwiseReplay:
    """A replay that continues only when the test answers. `opens`: the item of its open change. `asked`: the requests that wait
    for answers."""

    def __init__(self, world: World, record: Record, **row: Any) -> None:
        decoded: Any = decode(record, WIDE.entities[record.topic].entity)
        change = decoded._replace(row={**decoded.row, **row})
        self._store = world.trial.store
        self.opens = changes_key(1, 1, f"replay{record.offset}", 0)
        plan, note = WIDE.entities[record.topic], replay_key(record)
        self._step = replay(change, plan, note=note, opens=self.opens, expires_at=99)
        self.asked = next(self._step)

    def answer(self) -> Any:
        """Hands the step the answers of the store; returns what it asks next, or its result."""
        return self.answer_with(answers_of(self._store, self.asked))

    def answer_with(self, answers: tuple[Any, ...]) -> Any:
        """Hands the step these answers."""
        try:
            self.asked = self._step.send(answers)
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
    """Its write came after the driver had closed its open change. The next change of the row publishes what the replay did."""
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
    assert world.document()["stars"] == []
    assert (1, "ada") in noted_keys(world.trial.store.get([replay_key(bad)])[replay_key(bad)])
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document()["stars"] == []


def replayed(world: World, record: Record, *answers: Any, **row: Any) -> ReplayedChange:
    """The result of a replay whose row write gets these answers. `row`: other values of its columns."""
    replaying = StepwiseReplay(world, record, **row)
    replaying.answer()
    waiting = iter(answers)
    while True:
        if any(isinstance(one, Write) and one.key.pk.startswith("TABLE#") for one in replaying.asked):
            found = replaying.answer_with((next(waiting),))
        else:
            found = replaying.answer()
        if isinstance(found, ReplayedChange):
            return found


def test_a_replay_marks_the_row_that_it_writes_and_opens_no_key_that_the_row_has(world: World) -> None:
    world.batch(world.star(who="ada"))
    (done,) = world.replay(again := world.star(who="ada"))
    assert (done.outcome, world.row("star").replayed) == ("applied", True)
    replaying = StepwiseReplay(world, again)
    note, opens = replaying.answer()
    for written in (note, opens):
        (opened,) = read_changes(written.set)
        assert (opened.slots, opened.former) == (((1, "ada"),), frozenset())
    done = replaying.answer()
    assert (done.outcome, done.row) == ("superseded", world.row("star"))


def test_the_next_attempt_opens_a_row_without_join_keys_that_an_attempt_wrote(world: World) -> None:
    """Its answer was lost, so nobody may have published the row."""
    bad = world.user(name=None, bio="", age="old")
    first = StepwiseReplay(world, bad)
    for _ in range(2):
        first.answer()
    assert first.answer().outcome == "applied"
    again = StepwiseReplay(world, bad)
    note, opens = again.answer()
    (opened,) = read_changes(opens.set)
    assert (note.key.pk, opened.version, opened.former) == ("REPLAYS", world.row().version, frozenset())


def test_a_replay_that_fills_columns_marks_the_row_too(world: World) -> None:
    bad = world.star(who="ada")
    world.batch(world.star(who=PLACEHOLDER))
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.row("star").replayed


def test_a_replay_of_a_change_from_another_partition_than_the_row_is_refused(world: World) -> None:
    world.batch(world.star(who="ada"))
    replaying = StepwiseReplay(world, replace(world.star(who="bob"), partition=1))
    done = replaying.answer()
    assert (done.outcome, done.opened) == ("refused", None)
    assert "the row has changes from partition 0 too" in done.reason


def test_a_replay_whose_row_has_no_room_is_refused_with_its_change_open(world: World) -> None:
    for who, answers in (("a" * MAX_ITEM_BYTES, ()), ("ada", (TooLarge(),))):
        done = replayed(world, world.star(who=""), *answers, who=who)
        assert (done.outcome, done.reason) == ("refused", OVERSIZED)
        assert done.opened is not None


def test_a_replay_opens_the_keys_of_all_rows_that_its_writes_met(world: World) -> None:
    """Also the key that a refused write would have set: the store may have done it, and the answer may be lost."""
    late = world.star(who="eve")
    stored = [
        {"PK": "TABLE#star", "SK": "1", "_f": 1, "_v": encode_version(0, 0, 0), "_l": 1, "id": 1, "GSI_1": who}
        for who in ("bob", "cyd")
    ]
    done = replayed(world, late, Refused(stored[0]), Refused(stored[1]), Done(stored[1]))
    assert done.outcome == "applied"
    assert done.row is not None
    assert done.row.slots == {1: "eve"}
    assert done.opened is not None
    assert done.opened.former == {(1, "bob"), (1, "cyd")}


def test_a_replay_of_a_change_without_a_key_is_an_error(world: World) -> None:
    change: Any = decode(world.star(who="ada"), WIDE.entities["star"].entity)
    at = changes_key(1, 1, "replay", 0)
    with pytest.raises(ValueError, match="a star without a key reached the table"):
        next(replay(change._replace(key=(None,)), WIDE.entities["star"], note=at, opens=at, expires_at=99))
