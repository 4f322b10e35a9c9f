"""The job's part of `dead-letters replay`: a portion at a time, an outcome only once the documents are published."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from processor.engine.protocol.open_changes import OpenChanges, SettledSegment
from processor.engine.protocol.replays import ReplayReport, drop, letter_position
from processor.engine.protocol.segments import OpenChange, make_segment
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.operators import AGAIN_SECONDS, LiveReplays, RequestedLetters
from processor.errors import KafkaError
from processor.values.dead_letters import DeadLetter
from processor.values.record import Record, Rejected
from registry.model import GONE, Lease, LetterOutcome, LetterPosition, WaitingLetters
from statestore.keys import Key
from statestore.memory import MemoryStore

LEASE = Lease(job="main", generation=1, owner="here", lanes=1)
ROW = Key("TABLE#user", "1")
CHANGE = OpenChange("user", ROW, "v", (), frozenset(), again=True)


def letter(offset: int) -> DeadLetter:
    record = Record(topic="user", partition=0, offset=offset, epoch=1, timestamp=5, key=b"1", value=b"{")
    return DeadLetter(rejected=Rejected(record=record, reason=f"x{offset} is no int"), kept_since=0, last_seen=0)


def place(offset: int) -> LetterPosition:
    return letter_position(letter(offset).rejected.record)


@dataclass(kw_only=True)
class Desk:
    """A registry with one request."""

    waiting: list[LetterPosition]
    noted: list[LetterOutcome] = field(default_factory=list)
    withdrawn: bool = False

    def next_letters(self, most: int) -> WaitingLetters | None:
        left = [one for one in self.waiting if one not in {noted.place for noted in self.noted}]
        return WaitingLetters(1, tuple(left[:most])) if left and not self.withdrawn else None

    def note(self, lease: Lease, request: int, outcomes: Collection[LetterOutcome]) -> None:
        assert (lease, request) == (LEASE, 1)
        self.noted += outcomes


class FakeDriver:
    """A driver whose replays open a change of one row, which the test settles."""

    def __init__(self) -> None:
        self.store = MemoryStore(5, lag=0, clock=lambda: 0.0)
        self.now, self.unsettled, self.replayed = 0.0, True, list[list[int]]()
        self.clock = SimpleNamespace(now=lambda: self.now)
        self.progress = SimpleNamespace(
            open_changes=OpenChanges(wait=5, settle=5),
            fan_outs=SimpleNamespace(waiting=dict[tuple[Any, ...], object]()),
            walks=SimpleNamespace(behind=False, walks=dict[tuple[str, str], Any]()),
            backlog=SimpleNamespace(stopped=dict[str, str]()),
        )
        self.plan = SimpleNamespace(products={"profile": SimpleNamespace(paused=False)})
        self.rounds = SimpleNamespace(incarnations={})
        self.ended: list[ReplayReport] = []
        self.refused = False
        self.events: list[str] = []

    def report(self, event: JobEvent) -> None:
        self.events.append(event.text)

    def replay(self, letters: Any) -> list[ReplayReport]:
        records = [one.rejected.record for one in letters]
        self.replayed.append([record.offset for record in records])
        if self.refused:
            return [
                ReplayReport(record=record, outcome="refused", reason=f"x{record.offset} is no int", plain="no int")
                for record in records
            ]
        self.progress.open_changes.add([make_segment("1", [CHANGE])], self.now, again=True)
        opened = ((Key("OPEN", "1"), CHANGE),)
        return [ReplayReport(record=record, outcome="applied", opened=opened) for record in records]

    def end_replays(self, reports: Sequence[ReplayReport]) -> None:
        self.ended += reports


@pytest.fixture
def desk() -> Desk:
    return Desk(waiting=[place(1), place(2), place(3)])


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def replays(desk: Desk, driver: Any) -> LiveReplays:
    def read(places: Sequence[LetterPosition]) -> RequestedLetters:
        found = [letter(n) for n in (1, 2, 3) if place(n) in places]
        return RequestedLetters(portions=(found[:2], found[2:]))

    return LiveReplays(driver=driver, requests=desk, lease=LEASE, read=read)


def settle(driver: FakeDriver) -> None:
    driver.progress.open_changes.record([SettledSegment("1", None)], driver.now)


def test_a_portion_has_its_outcome_once_its_changes_are_settled_and_then_comes_the_next(
    replays: LiveReplays, desk: Desk, driver: FakeDriver
) -> None:
    for _ in range(3):
        replays.turn()
    assert (driver.replayed, driver.ended, desk.noted) == ([[1, 2]], [], [])
    settle(driver)
    replays.turn()
    assert desk.noted == [LetterOutcome(place(1), "applied"), LetterOutcome(place(2), "applied")]
    assert [report.record.offset for report in driver.ended] == [1, 2]
    assert driver.replayed == [[1, 2], [3]]
    settle(driver)
    replays.turn()
    assert [noted.place.offset for noted in desk.noted] == [1, 2, 3]
    assert not replays.pending


def test_an_outcome_waits_for_the_fan_outs_and_walks_that_publish_the_documents(
    replays: LiveReplays, desk: Desk, driver: FakeDriver
) -> None:
    replays.turn()
    settle(driver)
    driver.progress.fan_outs.waiting["profile", 0, "octo"] = object()
    driver.progress.walks.walks["publish", "profile"] = SimpleNamespace(done=False)
    replays.turn()
    driver.progress.fan_outs.waiting.clear()
    driver.progress.fan_outs.waiting["profile", 0, "of later work"] = object()
    replays.turn()
    assert desk.noted == []
    driver.progress.walks.walks["publish", "profile"] = SimpleNamespace(done=True)
    replays.turn()
    assert [noted.place.offset for noted in desk.noted] == [1, 2]


def test_a_stopped_or_paused_product_holds_no_outcome_up(replays: LiveReplays, desk: Desk, driver: FakeDriver) -> None:
    driver.plan.products["paused"] = SimpleNamespace(paused=True)
    driver.progress.walks.walks |= {("publish", name): SimpleNamespace(done=False) for name in ("paused", "profile")}
    driver.progress.backlog.stopped["profile"] = "its topic refuses it"
    replays.turn()
    settle(driver)
    replays.turn()
    assert [noted.place.offset for noted in desk.noted] == [1, 2]


def test_a_job_that_writes_rows_first_begins_no_replay(replays: LiveReplays, driver: FakeDriver) -> None:
    driver.progress.walks.behind = True
    replays.turn()
    assert driver.replayed == []
    driver.progress.walks.behind = False
    replays.turn()
    assert driver.replayed == [[1, 2]]


def test_a_withdrawn_request_ends_after_its_portion(replays: LiveReplays, desk: Desk, driver: FakeDriver) -> None:
    replays.turn()
    desk.withdrawn = True
    settle(driver)
    replays.turn()
    assert [noted.place.offset for noted in desk.noted] == [1, 2]
    assert driver.replayed == [[1, 2]]
    assert not replays.pending


def test_a_letter_whose_replay_has_ended_or_that_somebody_dropped_is_not_replayed_again(
    replays: LiveReplays, desk: Desk, driver: FakeDriver
) -> None:
    record = letter(2).rejected.record
    driver.store.write(drop(record, who="ann", why="a test", at=datetime.now(UTC)))
    replays.turn()
    assert driver.replayed == [[1]]
    assert [(noted.place.offset, noted.outcome) for noted in desk.noted] == [(2, "dropped")]
    assert driver.ended == []


def test_a_letter_that_left_its_topic_is_refused(replays: LiveReplays, desk: Desk, driver: FakeDriver) -> None:
    desk.waiting = [place(9)]
    replays.turn()
    assert desk.noted == [LetterOutcome(place(9), "refused", GONE)]
    assert driver.replayed == []


def test_the_registry_gets_no_value_of_a_refused_record(replays: LiveReplays, desk: Desk, driver: FakeDriver) -> None:
    driver.refused = True
    replays.turn()
    replays.turn()
    assert desk.noted[:2] == [LetterOutcome(place(1), "refused", ""), LetterOutcome(place(2), "refused", "")]


def test_a_job_looks_for_requests_once_a_second(replays: LiveReplays, desk: Desk, driver: FakeDriver) -> None:
    asked, desk.waiting = desk.waiting, []
    replays.turn()
    desk.waiting = asked
    replays.turn()
    assert driver.replayed == []
    driver.now = 1.0
    replays.turn()
    assert driver.replayed == [[1, 2]]


def test_a_topic_of_dead_letters_that_cannot_be_read_ends_no_job(replays: LiveReplays, driver: FakeDriver) -> None:
    read = replays.read

    def away(_: Sequence[LetterPosition]) -> RequestedLetters:
        raise KafkaError("the job may not read statestore.rejects")

    replays.read = away
    replays.turn()
    assert driver.events == ["request 1 waits, the job tries again in 30 s: the job may not read statestore.rejects"]
    replays.read, driver.now = read, AGAIN_SECONDS
    replays.turn()
    assert driver.replayed == [[1, 2]]


def test_a_letter_whose_record_is_out_of_reach_is_replayed_as_the_part_that_it_keeps(
    replays: LiveReplays, driver: FakeDriver
) -> None:
    def away(_: DeadLetter) -> DeadLetter:
        raise KafkaError("no topic user")

    replays.whole = away
    replays.turn()
    assert driver.replayed == [[1, 2]]
