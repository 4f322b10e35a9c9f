"""Replays of dead letters: older or newer than their row, twice, and after an attempt that Spark gave up."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from processor.definitions.load import load
from processor.plan.plan import Plan
from processor.plan.planning import plan_alone
from processor.progress.open_changes import PARTITION, changes_key, read_changes
from processor.progress.replays import ReplayReport, end_replay, ended_replays, noted_keys, replay_key
from processor.records.dead_letters import DeadLetter
from processor.records.debezium import PLACEHOLDER
from processor.records.record import Record, Rejected
from processor.settings import Settings
from processor.steps.decode import decode
from processor.steps.replay import replay
from processor.trial.trial import Trial
from statestore.items import Row, read_row
from tests.unit.steps.dialogue import answers_of

ENTITIES: dict[str, dict[str, Any]] = {
    "user": {"key": ["id"], "columns": {"id": "int", "name": "string", "bio": "string", "age": "int"}},
    "star": {"key": ["id"], "columns": {"id": "int", "who": "string"}},
}
PROFILE = {
    "product": "profile",
    "root": "user",
    "fields": ["id", "name", "bio", "age"],
    "embed": {"stars": {"many": "star", "on": {"who": "name"}, "value": "id"}},
}
ADA = b'{"id":1}'


def plan_with(**age: str) -> Plan:
    entities = {**ENTITIES, "user": {"key": ["id"], "columns": {**ENTITIES["user"]["columns"], **age}}}
    return plan_alone(load({"entities.yaml": json.dumps(entities), "profile.yaml": json.dumps(PROFILE)}), 3)


NARROW, WIDE = plan_with(), plan_with(age="json")


class World:
    """A job without Spark. Its definitions refuse a text as `age`; `replay` works with definitions that accept any `age`."""

    def __init__(self) -> None:
        self.trial = Trial(plan=NARROW, settings=Settings())
        self.offset = 0

    def user(self, **row: Any) -> Record:
        return self._record("user", row)

    def star(self, **row: Any) -> Record:
        return self._record("star", row)

    def gone(self, entity: str = "user") -> Record:
        return self._record(entity, None)

    def _record(self, topic: str, row: Any) -> Record:
        self.offset += 1
        value = None if row is None else json.dumps({"id": 1, **row}).encode()
        return Record(topic=topic, partition=0, offset=self.offset, key=ADA, value=value)

    def batch(self, *records: Record) -> None:
        self.trial.batch(records)

    def replay(self, *records: Record, kept: float = 0.0) -> list[ReplayReport]:
        letters = [DeadLetter(rejected=Rejected(record=r, reason=""), kept_since=kept) for r in records]
        self.trial.driver.adopt(WIDE)
        return self.trial.driver.replay(letters)

    def row(self, entity: str = "user") -> Row:
        key = WIDE.entities[entity].key("1")
        return read_row(self.trial.store.get([key])[key])

    def document(self) -> Any:
        """The last document of user 1, after all changes are settled."""
        self.trial.finish()
        last = {m.key: m.value for m in self.trial.published.messages}
        value = last.get(ADA)
        return None if value is None else json.loads(value)


@pytest.fixture
def world() -> World:
    return World()


def outcomes(reports: Iterable[ReplayReport]) -> list[str]:
    return [report.outcome for report in reports]


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


def test_a_dead_letter_that_is_refused_again_gives_the_reason_and_writes_nothing(world: World) -> None:
    bad = world.user(name=7, bio="", age="old")
    (done,) = world.replay(bad)
    assert (done.outcome, done.reason) == ("refused", "column 'name': expected string, found number 7")
    (other,) = world.replay(replace(bad, topic="gone"))
    assert (other.outcome, other.reason) == ("refused", "no entity has the topic gone any more")
    assert world.trial.store.partition("REPLAYS") == world.trial.store.partition(PARTITION) == []


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
    world.trial.ends.clear()  # the next batch reads again, from an earlier offset
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
    opened = store.partition(PARTITION)
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert store.partition(PARTITION) == opened


class StepwiseReplay:
    """A replay that goes on only when the test answers. `asked`: the requests that wait for answers."""

    def __init__(self, world: World, record: Record) -> None:
        change: Any = decode(record, WIDE.entities[record.topic].entity)
        self._store = world.trial.store
        opens = changes_key(1, 1, f"replay{record.offset}", 0)
        self._step = replay(change, WIDE.entities[record.topic], note=replay_key(record), opens=opens, expires_at=99)
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
    world.trial.ends.clear()  # an attempt that never committed
    world.batch(world.star(who="bob"))
    replaying = StepwiseReplay(world, world.star(who="cyd"))
    note, opens = replaying.answer()
    assert {write.key.pk for write in (note, opens)} == {"REPLAYS", PARTITION}
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
    world.batch(world.user(name="ada", bio="", age=1), world.star(who="ada"))
    assert world.document()["stars"] == [1]
    bad = world.star(who="bob")
    world.batch(replace(bad, value=b"{"))
    late = StepwiseReplay(world, bad)
    late.answer()
    late.answer()
    late.answer()
    world.batch(world.star(who="cyd"))
    assert world.document()["stars"] == [1]  # the row has lost the key `ada`
    assert (1, "ada") in noted_keys(world.trial.store.get([replay_key(bad)])[replay_key(bad)])
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document()["stars"] == []
