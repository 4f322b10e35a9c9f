"""The write stage of one task: what it writes, counts and hands to the driver for the records of its partitions."""

import json
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.epochs import Committed
from processor.engine.protocol.ledger import Run
from processor.engine.protocol.segments import OpenChange, group_of, make_segment
from processor.engine.rounds.round import PublishSetup, Remembered, Round, RoundRules, RoundTopics, StageResult
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.write_stage import write_stage
from processor.errors import TruncateRefused
from processor.language.definitions.load import load
from processor.values.dead_letters import rejected_record
from processor.values.record import Message, Record
from statestore.items import encode_version
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import PAGE
from tests.unit.engine.protocol.example import PLAN, key

ROUND = Round(
    plan=PLAN,
    run=Run(number=1),
    number=1,
    batch=1,
    setup=PublishSetup(),
    rules=RoundRules(expires_at=99, oldest=0.0, dead_letter_topic="rejects"),
)
STAR = key("star", 5)


class Messages:
    """Logs each message, and when the stage waits for all of them."""

    def __init__(self) -> None:
        self.sent: list[Message | str] = []

    def send(self, message: Message) -> None:
        self.sent.append(message)

    def flush(self) -> None:
        self.sent.append("flush")


class Task:
    """A task over a store of its own. `open_rows`: an overlay for each, with this row."""

    def __init__(self, *open_rows: Key) -> None:
        self.store, self.messages = MemoryStore(), Messages()
        changes = [OpenChange("star", row, "001", ((1, "x"),), frozenset()) for row in open_rows]
        self.overlays = tuple(group_of((make_segment(str(n), [one]),)) for n, one in enumerate(changes))

    def write(self, *records: Record, **round_: Any) -> StageResult:
        runner = StepRunner(store=self.store, outbox=self.messages, overlays=self.overlays)
        return write_stage(records, replace(ROUND, **round_), runner)


@pytest.fixture
def task() -> Task:
    return Task()


def record(topic: str, offset: int, id: Any, *, partition: int = 0, at: int = 1, **row: Any) -> Record:
    """A record of a row, or of its delete. `at`: Kafka's time in seconds."""
    value = json.dumps({"id": id, **row}).encode() if row else None
    keyed = json.dumps({"id": id}).encode()
    return Record(topic=topic, partition=partition, offset=offset, timestamp=1_000 * at, key=keyed, value=value)


def emptied(topic: str, offset: int) -> Record:
    return Record(topic=topic, partition=0, offset=offset, key=None, value=b'{"op": "t", "source": {}}')


def test_a_stage_ends_once_the_broker_has_its_dead_letters(task: Task) -> None:
    result = task.write(record("star", 0, 5, who=7), record("star", 1, 6, who="ada", repo=9))
    (letter, flushed) = task.messages.sent
    assert isinstance(letter, Message)
    assert (rejected_record(letter).record.offset, flushed) == (0, "flush")
    assert result.letters.keys() == {("star", "column-type", "who")}
    assert [(kept.place.offset, kept.column) for kept in result.kept] == [(0, "who")]


def test_each_record_counts_by_its_outcome_and_its_topic(task: Task) -> None:
    stars = [record("star", offset, 5, who="ada", repo=offset) for offset in (3, 4, 5)]
    first = task.write(*stars, record("user", 0, 1, name="ada"), record("user", 1, 2, name="bob"))
    assert {name: n for name, n in first.tally.items() if " in " in name} == {
        "applied in star": 1,
        "superseded in star": 2,
        "applied in user": 2,
    }
    late = task.write(*(record("star", offset, 5, who="bob", repo=1) for offset in (1, 2)))
    assert (late.tally["superseded in star"], late.tally["applied in star"], late.tally["read"]) == (2, 0, 2)


def test_a_root_has_the_time_of_the_oldest_record_that_led_to_it(task: Task) -> None:
    task.write(record("user", 0, 1, name="ada"))
    for times in ((5, 2, 9), (2, 9, 5), (9, 5, 2)):
        stars = [record("star", 0, id_, at=at, who="ada", repo=9) for id_, at in zip((5, 6, 7), times, strict=True)]
        assert task.write(*stars).roots == {("profile", "1"): 2.0}
    together = [record("star", offset, 8, at=at, who="ada", repo=9) for offset, at in ((0, 3), (1, 4))]
    assert task.write(*together).roots == {("profile", "1"): 3.0}


@pytest.mark.parametrize(
    ("proven", "open_rows", "leaves"),
    [
        ({"star"}, (), True),
        (set(), (), False),
        ({"user"}, (), False),
        ({"star"}, (STAR,), False),
        ({"star"}, (key("star", 6), STAR), False),
        ({"star"}, (key("star", 6),), True),
    ],
    ids=["all shown", "no proof", "of another entity", "open", "open in one overlay", "another row is open"],
)
def test_a_deleted_row_leaves_the_indexes_only_where_all_are_shown_and_no_overlay_has_the_row(
    proven: set[str], open_rows: tuple[Key, ...], leaves: bool
) -> None:
    task = Task(*open_rows)
    task.write(record("star", 0, 5, who="ada", repo=9))
    committed = Committed({("star", 0, 0): (0, 1)})
    task.write(
        record("star", 1, 5), remembered=Remembered(proven=frozenset(proven)), topics=RoundTopics(committed=committed)
    )
    assert ("GSI_1" not in task.store.get([STAR])[STAR]) is leaves


def test_the_edges_of_a_row_are_written_before_it_and_go_with_it(task: Task) -> None:
    task.write(record("team", 0, 4, members=[1, 2]))
    assert [one["row"] for one in task.store.partition("EDGE#team#members[]=2")] == ["TABLE#team"]
    task.write(record("team", 1, 4, members=[1]))
    assert list(task.store.partition("EDGE#team#members[]=2")) == []
    assert len(list(task.store.partition("EDGE#team#members[]=1"))) == 1


def test_where_the_last_change_of_a_key_is_refused_the_one_before_it_counts(task: Task) -> None:
    """The rows have changes of two partitions, in no order: those of the other one become dead letters, the newest first."""
    task.write(record("star", 9, 5, partition=1, who="cyd", repo=1))
    task.write(*(record("star", offset, 5, who="ada", repo=offset) for offset in (0, 1, 2)))
    letters = [rejected_record(one) for one in task.messages.sent if isinstance(one, Message)]
    assert [(one.record.offset, one.code) for one in letters] == [(n, "other-partition") for n in (2, 1, 0)]


TRUNCATED = plan_alone(
    load(
        {
            "entities.yaml": "star: {key: [id], truncate: delete, columns: {id: int, who: string}}\n"
            "user: {key: [id], columns: {id: int, name: string}}",
            "p.yaml": "product: p\nroot: user\nfields: [id]\nembed: {stars: {many: star, on: {who: name}, value: id}}",
        }
    ),
    20,
)


def test_a_truncate_is_refused_where_its_place_among_the_changes_is_unknown(task: Task) -> None:
    for partitions in ({}, {"star": 1}):
        found = task.write(
            emptied("star", 3), emptied("star", 4), plan=TRUNCATED, topics=RoundTopics(partitions=partitions)
        )
        assert found.truncates == tuple(("star", encode_version(0, 0, offset)) for offset in (3, 4))
        assert (found.tally["truncates"], found.tally["applied in star"]) == (2, 2)
    with pytest.raises(TruncateRefused, match="the topic has 2 partitions"):
        task.write(
            record("star", 0, 5, who="ada"),
            emptied("star", 3),
            plan=TRUNCATED,
            topics=RoundTopics(partitions={"star": 2}),
        )
    with pytest.raises(TruncateRefused, match="the rows would stay"):
        task.write(
            record("user", 0, 1, name="ada"),
            emptied("user", 1),
            plan=TRUNCATED,
            topics=RoundTopics(partitions={"user": 2}),
        )
    assert task.store.get([key("star", 5), key("user", 1)]) == {}  # a stage refuses before it writes


def test_a_stage_opens_what_its_rows_show_in_indexes_but_not_in_a_store_without_late_ones(task: Task) -> None:
    (segment,) = task.write(record("star", 0, 5, who="ada", repo=9), record("repo", 0, 9, title="ice")).opened
    assert [(one.key, one.slots) for one in segment.changes()] == [(STAR, ((1, "ada"), (2, "9")))]
    assert segment.name.startswith("0000000001.0000000001.")
    task.store.consistent = True
    assert task.write(record("star", 1, 5, who="bob", repo=9)).opened == ()


def test_a_stage_says_what_operators_ask_of_its_records(task: Task) -> None:
    broken = replace(record("star", 3, 8), value=b"{")
    found = task.write(
        record("star", 0, 5, who="ada", repo=9), record("star", 1, 6, who=7), record("star", 2, 7, who="x"), broken,
        record("star", 4, 6, who=7),
    )  # fmt: skip
    assert [text.split(":")[0] for text in found.letters.values()] == ["star/0 offset 3", "star/0 offset 4"]
    assert (found.updates["star"].writes, found.absent["star"].rows) == (2, 2)
    assert sum(found.absent["star"].lacking.values()) == 1


def test_a_stage_of_changes_with_many_roots_finds_the_rest_in_later_rounds(task: Task) -> None:
    task.write(*(record("user", n, n, name="ada") for n in range(PAGE + 1)))
    found = task.write(record("pull", 0, 3, author="ada", title="t"))
    assert len(found.roots) == PAGE
    assert [(one.product, one.key) for one in found.fan_outs] == [("profile", "ada")]
