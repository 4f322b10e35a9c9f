"""Dead letters that become changes after all: older or newer than their row, twice, and after an attempt that was given up."""

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from processor.definitions.load import load
from processor.model.change import Record, Rejected
from processor.model.debezium import _PLACEHOLDER as LEFT_OUT
from processor.model.open_changes import PARTITION, item_key, read_durable
from processor.model.plan import Plan
from processor.model.replays import Letter, Replayed, end_replay, ended_replays, noted_keys, replay_key
from processor.planning import plan_alone
from processor.replays import replay_part
from processor.settings import Settings
from processor.steps.decode import decode
from processor.steps.replay import replay
from processor.trial import MemoryOutbox, Trial
from statestore.items import Row, read_row
from statestore.store import Write

ENTITIES = {
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
    entities = {**ENTITIES, "user": {"key": ["id"], "columns": {**ENTITIES["user"]["columns"], **age}}}  # type: ignore[dict-item]
    return plan_alone(load({"entities.yaml": json.dumps(entities), "profile.yaml": json.dumps(PROFILE)}), 3)


NARROW, WIDE = plan_with(), plan_with(age="json")


class World:
    """A job without Spark, which keeps its dead letters; `replay` replays them by the wider definitions."""

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

    def replay(self, *records: Record, kept: float = 0.0) -> list[Replayed]:
        letters = [Letter(rejected=Rejected(record=r, reason=""), kept=kept) for r in records]
        self.trial.plan = WIDE
        round_ = self.trial._round(batch=0)
        done = replay_part(letters, round_, self.trial._lockstep(MemoryOutbox()), oldest=0.0)
        for one in done:
            if one.opened is not None:
                self.trial.open.opened(*one.opened, self.trial.now)
        return done

    def row(self, entity: str = "user") -> Row:
        key = WIDE.entities[entity].key("1")
        return read_row(self.trial.store.get([key])[key])

    def document(self) -> Any:
        """The last one, once all is settled."""
        self.trial.finish()
        last = {m.key: m.value for m in self.trial.published.messages}
        value = last.get(ADA)
        return None if value is None else json.loads(value)


@pytest.fixture
def world() -> World:
    return World()


def outcomes(done: Iterable[Replayed]) -> list[str]:
    return [one.outcome for one in done]


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


def test_one_that_is_refused_again_says_why_and_leaves_nothing(world: World) -> None:
    bad = world.user(name=7, bio="", age="old")
    (done,) = world.replay(bad)
    assert (done.outcome, done.reason) == ("refused", "column 'name': expected string, found number 7")
    (other,) = world.replay(replace(bad, topic="gone"))
    assert (other.outcome, other.reason) == ("refused", "no entity has the topic gone any more")
    assert world.trial.store.partition("REPLAYS") == world.trial.store.partition(PARTITION) == []


def test_one_older_than_what_a_delete_leaves_is_refused(world: World) -> None:
    (done,) = world.replay(world.user(name="ada", bio="", age="old"), kept=-1.0)
    assert done.outcome == "refused"
    assert "marker_days" in done.reason
    assert world.document() is None


def test_a_newer_row_stays_as_it_is(world: World) -> None:
    bad = world.user(name="ada", bio="old", age="old")
    world.batch(bad, world.user(name="bob", bio="new", age=2))
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document() == {"id": 1, "name": "bob", "bio": "new", "age": 2, "stars": []}
    assert world.trial.store.partition("REPLAYS") == []


def test_one_of_an_earlier_epoch_never_wins_whatever_its_offset(world: World) -> None:
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
def test_columns_that_later_changes_left_out_are_filled(world: World, batches: int) -> None:
    """However the changes around it were batched: bio and name date from before the dead letter, age does not."""
    first = world.user(name="ada", bio="first", age=1)
    bad = world.user(name="eve", bio="second", age="old")
    third = world.user(name=LEFT_OUT, bio=LEFT_OUT, age=3)
    world.batch(world.star(who="eve"))
    for batch in {1: [(first, bad, third)], 2: [(first, bad), (third,)], 3: [(first,), (bad,), (third,)]}[batches]:
        world.batch(*batch)
    assert world.document() == {"id": 1, "name": "ada", "bio": "first", "age": 3, "stars": []}
    version = world.row().version
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert version < world.row().version < version[:-1] + "9"
    assert world.document() == {"id": 1, "name": "eve", "bio": "second", "age": 3, "stars": [1]}


def test_a_value_that_a_batch_filled_in_dates_from_the_change_that_brought_it(world: World) -> None:
    first = world.user(name="ada", bio="first", age=1)
    bad = world.user(name="eve", bio="second", age="old")
    third = world.user(name=LEFT_OUT, bio="third", age=3)
    world.batch(third)
    world.trial.ends.clear()  # read again, from further back
    world.batch(first, bad, third)
    assert world.document()["name"] == "ada"
    world.replay(bad)
    assert world.document()["name"] == "eve"


def test_columns_that_were_never_known_are_filled_from_the_newest_whatever_the_order(world: World) -> None:
    bad = [world.user(name="ada", bio=f"bio {i}", age="old") for i in range(3)]
    world.batch(*bad, world.user(name=LEFT_OUT, bio=LEFT_OUT, age=7))
    for one in (bad[1], bad[2], bad[0]):
        world.replay(one)
    assert world.document() == {"id": 1, "name": "ada", "bio": "bio 2", "age": 7, "stars": []}


def test_what_a_change_brought_after_a_fill_is_not_filled_again(world: World) -> None:
    bad = [world.user(name="ada", bio=f"bio {i}", age="old") for i in range(2)]
    world.batch(*bad, world.user(name="ada", bio=LEFT_OUT, age=7))
    world.replay(bad[0])
    world.batch(world.user(name="ada", bio="newest", age=8))
    assert outcomes(world.replay(bad[1])) == ["superseded"]
    assert world.document()["bio"] == "newest"


def test_a_change_that_comes_again_after_a_later_dead_letter_fills_what_that_left_out(world: World) -> None:
    """The job was stopped before it wrote the batch, and the dead letter, kept already, was replayed first."""
    first = world.user(name="ada", bio="first", age=1)
    second = world.user(name="ada", bio="second", age=2)
    bad = world.user(name="ada", bio=LEFT_OUT, age="old")
    world.batch(first)
    world.replay(bad)
    world.batch(second, replace(bad, value=b"{"))
    assert world.document() == {"id": 1, "name": "ada", "bio": "second", "age": "old", "stars": []}


def test_dead_letters_of_a_key_are_replayed_in_their_order(world: World) -> None:
    bad = [world.user(name=f"name {i}", bio="", age="old") for i in range(3)]
    assert outcomes(world.replay(*reversed(bad))) == ["applied", "applied", "applied"]
    assert world.document()["name"] == "name 2"


def test_a_second_replay_writes_nothing_new(world: World) -> None:
    bad = world.user(name="ada", bio="", age="old")
    world.replay(bad)
    world.document()
    before, sent = world.row(), len(world.trial.published.messages)
    assert outcomes(world.replay(bad)) == ["superseded"]
    world.document()
    assert (world.row(), len(world.trial.published.messages)) == (before, sent)


def test_the_end_of_a_replay_is_remembered(world: World) -> None:
    bad = world.user(name="ada", bio="", age="old")
    world.replay(bad)
    store = world.trial.store
    assert ended_replays(store.partition("REPLAYS")) == {}
    store.write(end_replay(bad, "applied"))
    assert ended_replays(store.partition("REPLAYS")) == {replay_key(bad): "applied"}
    opened = store.partition(PARTITION)
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert store.partition(PARTITION) == opened


class Asked:
    """A replay, request by request."""

    def __init__(self, world: World, record: Record) -> None:
        change: Any = decode(record, WIDE.entities[record.topic].entity)
        self._store = world.trial.store
        self._opens = item_key(1, 1, f"replay{record.offset}", 0)
        self._step: Any = replay(
            change, WIDE.entities[record.topic], note=replay_key(record), opens=self._opens, forget=99
        )
        self.asks = next(self._step)

    def answer(self) -> Any:
        """Sends what it asks and hands it the answers: what it asks next, or how it ended."""
        reads = {} if isinstance(self.asks[0], Write) else self._store.get(self.asks)
        answers = tuple(self._store.write(a) if isinstance(a, Write) else reads.get(a) for a in self.asks)
        try:
            self.asks = self._step.send(answers)
        except StopIteration as end:
            return end.value
        return self.asks


def test_every_key_is_durable_before_the_row_is_written_and_no_pending_key_is_dropped(world: World) -> None:
    world.batch(world.star(who="ada"))
    world.trial.ends.clear()  # an attempt that never committed
    world.batch(world.star(who="bob"))
    going = Asked(world, world.star(who="cyd"))
    note, opens = going.answer()
    assert {write.key.pk for write in (note, opens)} == {"REPLAYS", PARTITION}
    (entry,) = read_durable(opens.set)
    assert entry.former == {(1, "ada"), (1, "bob")}
    assert entry.slots == ((1, "cyd"),)
    (write,) = going.answer()
    assert write.when.value == world.row("star").version
    going.answer()
    assert {p.key for p in world.row("star").pending} == {"ada", "bob"}


def test_a_write_that_meets_another_opens_its_keys_first(world: World) -> None:
    world.batch(world.star(who="ada"))
    bad = world.star(who="cyd")
    going = Asked(world, bad)
    going.answer()
    going.answer()
    world.batch(replace(bad, offset=1, value=b'{"id": 1, "who": "bob"}'), world.star(who="dan"))
    note, _ = going.answer()
    (entry,) = read_durable(note.set)
    assert (1, "dan") in entry.slots
    assert {(1, "ada"), (1, "cyd")} <= entry.former
    assert going.answer().outcome == "superseded"


def test_the_next_attempt_finds_the_keys_of_one_that_was_given_up(world: World) -> None:
    """Its write landed after what it had opened was closed, and the next change forgot the key before it."""
    world.batch(world.user(name="ada", bio="", age=1), world.star(who="ada"))
    assert world.document()["stars"] == [1]
    bad = world.star(who="bob")
    world.batch(replace(bad, value=b"{"))
    late = Asked(world, bad)
    late.answer()
    late.answer()
    late.answer()
    world.batch(world.star(who="cyd"))
    assert world.document()["stars"] == [1]  # nobody knows of ada any more
    assert (1, "ada") in noted_keys(world.trial.store.get([replay_key(bad)])[replay_key(bad)])
    assert outcomes(world.replay(bad)) == ["superseded"]
    assert world.document()["stars"] == []
