"""The driver: what it makes durable after each round and in which order, with an executor that answers what the test prepared."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from processor.definitions.load import load
from processor.errors import AccountError, Fenced
from processor.plan.planning import plan_alone
from processor.progress.fan_outs import FanOut, FoundRoots, ResumedFanOut
from processor.progress.ledger import Run
from processor.progress.open_changes import OpenChange, SettleOutcome, Sight, changes_key, write_changes
from processor.progress.overlay import DriverOverlay
from processor.rounds.clock import VirtualClock
from processor.rounds.driver import Driver
from processor.rounds.follow_up_parts import backlog_part, resume_part, settle_part
from processor.rounds.round import LaneResult, Part, PartResult, Round
from processor.rounds.write_part import write_part
from processor.settings import Settings
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import AbsentOrBelow, Delete, Done, Refused, Write, WriteOutcome

PLAN = plan_alone(
    load(
        {
            "entities.yaml": """
                user: {key: [id], columns: {id: int, name: string}}
                star: {key: [id], columns: {id: int, who: string}}
            """,
            "profile.yaml": """
                product: profile
                root: user
                fields: [name]
                embed: {stars: {many: star, on: {who: name}, value: id}}
            """,
        }
    ),
    3,
)
RUN_ITEM = Key("RUNS", "0000000002")
CHANGE = OpenChange("star", Key("TABLE#star", "5"), "1", ((1, "ada"),), frozenset())
OPEN_ITEM = changes_key(2, 0, "star.0", 0)
FAN_OUT = FanOut("profile", 0, "ada", Key("TABLE#user", "7"))
FAN_OUT_ITEM = Key("OPEN", "fan-out#profile#stars#ada")
BACKLOG_ITEM = Key("OPEN", "backlog#0000000002.0000000001.000000")
PUBLISHED = Counter(published=1)


class Job:
    """A driver of run 2. `log`: its lease checks, rounds and writes, in order. `lanes`: the results of the next rounds."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.lanes: list[list[LaneResult]] = []
        self.on_write: Callable[[], object] = lambda: None
        self.rounds: list[Round] = []
        self.works: list[Any] = []
        self.store = Table(self)
        self.clock = VirtualClock()
        self.driver = Driver(
            settings=Settings(),
            plan=PLAN,
            store=self.store,
            executor=self,
            clock=self.clock,
            run=Run(number=2),
            check_lease=lambda: self.log.append("check lease"),
        )

    def run_round(self, part: Part, work: Any, round_: Round, overlay: DriverOverlay) -> list[LaneResult]:
        assert overlay is self.driver.open_changes.overlay
        self.log.append(part)
        self.rounds.append(round_)
        self.works.append(work)
        return self.lanes.pop(0) if self.lanes else []

    def run_part(self, part: Part, work: Any, round_: Round) -> list[PartResult]:
        raise AssertionError("no test here replays dead letters")

    def batch(self, *lanes: LaneResult) -> Counter[str]:
        """One micro-batch, whose lanes end with these results."""
        self.lanes.append(list(lanes))
        return self.driver.process_batch([], {})


class Table(MemoryStore):
    """A table that logs the writes and deletes of a job."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def write(self, write: Write) -> WriteOutcome:
        self._job.log.append(write)
        self._job.on_write()
        return super().write(write)

    def delete(self, delete: Delete) -> Done | Refused:
        self._job.log.append(delete)
        return super().delete(delete)


@pytest.fixture
def job() -> Job:
    return Job()


def lane(number: int = 0, *, attempt: int = 0, tally: Counter[str] | None = None, **more: Any) -> LaneResult:
    return LaneResult(lane=number, attempt=attempt, tally=tally or Counter(), **more)


def opening() -> LaneResult:
    """A lane whose stage 1 opened a change."""
    return lane(parts=(PartResult(opened={OPEN_ITEM: (CHANGE,)}),))


def settling(*, shown: bool, due: float = 5.0, again: bool = False) -> LaneResult:
    """A lane whose stage 1 settled the change that was due then."""
    due_change = CHANGE._replace(due=due, again=again)
    return lane(parts=(PartResult(settled=(SettleOutcome(due_change, "1", CHANGE.slots, shown),)),))


def end_of_round(through: int, **attempts: Any) -> Write:
    return Write(RUN_ITEM, {"_f": 1, "through": through, **attempts}, when=AbsentOrBelow("through", through))


def fan_out_write(after: str, pages: int) -> Write:
    values = {
        "_f": 1,
        "run": 2,
        "product": "profile",
        "path": ["stars"],
        "key": "ada",
        "after": ["TABLE#user", after],
        "again": False,
        "pages": pages,
    }
    return Write(FAN_OUT_ITEM, values, when=AbsentOrBelow("run", 3))


BACKLOG_WRITE = Write(BACKLOG_ITEM, {"_f": 1, "product": "profile", "roots": '["8"]'})


# Rounds and their ends


def test_the_driver_checks_the_lease_before_each_round(job: Job) -> None:
    job.batch()
    job.batch()
    assert job.log == ["check lease", write_part, "check lease", write_part]


def test_a_driver_that_lost_the_lease_runs_no_round(job: Job) -> None:
    def lost() -> None:
        raise Fenced("another run took over")

    job.driver.check_lease = lost
    with pytest.raises(Fenced):
        job.batch(lane(tally=PUBLISHED))
    assert job.log == []
    assert job.driver.number == 0


def test_the_end_of_a_round_with_messages_is_durable(job: Job) -> None:
    job.batch(lane(tally=PUBLISHED))
    assert job.log == ["check lease", write_part, end_of_round(0)]
    assert job.driver.run == Run(number=2, through=0)


def test_each_round_knows_how_far_the_run_came(job: Job) -> None:
    job.batch(lane(tally=PUBLISHED))
    job.batch()
    job.batch()
    assert [(r.number, r.batch, r.run) for r in job.rounds] == [
        (0, 0, Run(number=2, through=-1)),
        (1, 1, Run(number=2, through=0)),
        (2, 2, Run(number=2, through=0)),
    ]


def test_a_round_without_messages_writes_nothing_but_the_next_end_names_its_attempts(job: Job) -> None:
    job.batch(lane(1, attempt=2))
    assert job.log == ["check lease", write_part]
    job.batch(lane(0, attempt=1, tally=PUBLISHED), lane(1))
    assert job.log[2:] == ["check lease", write_part, end_of_round(1, attempts=[[0, 1, 2], [1, 0, 1]])]


def test_a_record_without_an_account_ends_no_round(job: Job) -> None:
    with pytest.raises(AccountError):
        job.batch(lane(tally=Counter(read=2, applied=1, published=1)))
    assert job.log == ["check lease", write_part]


def test_a_driver_whose_round_another_process_ended_is_fenced(job: Job) -> None:
    MemoryStore.write(job.store, end_of_round(1))
    with pytest.raises(Fenced, match=r"^run 2: another process ended round 0; this job must stop$"):
        job.batch(lane(tally=PUBLISHED, backlog=frozenset({("profile", "8")})))
    assert job.log == ["check lease", write_part, end_of_round(0)]


def test_the_store_may_refuse_an_end_that_it_has_written(job: Job) -> None:
    """The answer to the first try was lost, so the client tried again."""
    MemoryStore.write(job.store, end_of_round(0))
    job.batch(lane(tally=PUBLISHED))
    assert job.driver.run == Run(number=2, through=0)


def test_the_counts_of_a_batch_include_the_requests_of_its_driver(job: Job) -> None:
    tally = job.batch(lane(0, tally=PUBLISHED), lane(1, tally=PUBLISHED), opening())
    assert tally == {"published": 2, "request UpdateItem": 1}
    assert job.driver.tally == tally


# What a round leaves to later rounds


def test_backlog_and_fan_outs_are_durable_after_the_end_of_the_round_and_before_the_batch_returns(job: Job) -> None:
    found = (PartResult(fan_outs=(FAN_OUT,)),)
    job.batch(lane(tally=PUBLISHED, failed={"profile": "no Bobs"}, backlog=frozenset({("profile", "8")}), parts=found))
    assert job.log == ["check lease", write_part, end_of_round(0), BACKLOG_WRITE, fan_out_write("7", pages=0)]
    assert job.driver.backlog.stopped == {"profile": "no Bobs"}
    job.batch()
    assert job.rounds[1].stopped == {"profile"}


def test_open_changes_are_taken_after_all_writes(job: Job) -> None:
    open_at_write: list[int] = []
    job.on_write = lambda: open_at_write.append(len(job.driver.open_changes.by_row))
    job.batch(opening(), lane(tally=PUBLISHED, backlog=frozenset({("profile", "8")})))
    assert open_at_write == [0, 0]
    assert job.driver.open_changes.by_row == {CHANGE.key: CHANGE._replace(due=5.0)}


def test_a_crash_before_the_end_of_the_round_takes_no_open_change(job: Job) -> None:
    MemoryStore.write(job.store, end_of_round(1))
    with pytest.raises(Fenced):
        job.batch(opening(), lane(tally=PUBLISHED))
    assert job.driver.open_changes.by_row == {}


def test_a_later_run_that_continues_the_fan_out_fences_the_driver(job: Job) -> None:
    later = fan_out_write("9", pages=1)
    MemoryStore.write(job.store, Write(FAN_OUT_ITEM, {**later.set, "run": 3}))
    with pytest.raises(Fenced, match=r"^a later run than 2 continues its fan-outs; this job must stop$"):
        job.batch(lane(parts=(PartResult(fan_outs=(FAN_OUT,)),)))


# Background work


def test_background_work_settles_then_continues_fan_outs_then_publishes_the_backlog(job: Job) -> None:
    earlier = Key("OPEN", "backlog#0000000001.0000000004.000000")
    MemoryStore.write(job.store, Write(earlier, {"_f": 1, "product": "profile", "roots": '["8","9"]'}))
    job.driver.start()
    job.batch(opening(), lane(parts=(PartResult(fan_outs=(FAN_OUT,)),)))
    job.clock.sleep(5)
    job.log.clear()
    page = ResumedFanOut(FAN_OUT, Key("TABLE#user", "9"), FoundRoots(frozenset(), ()))
    job.lanes += [
        [settling(shown=True, due=10.0)],
        [lane(tally=PUBLISHED, parts=(PartResult(resumed=(page,)),))],
        [lane(tally=PUBLISHED)],
    ]
    job.driver.background_work()
    assert job.log == [
        *("check lease", settle_part),
        *("check lease", resume_part, end_of_round(2), fan_out_write("9", pages=1)),
        *("check lease", backlog_part, end_of_round(3), Delete(key=earlier)),
    ]
    assert job.works[1:] == [[[CHANGE._replace(due=10.0)]], [[FAN_OUT]], [[("profile", "8"), ("profile", "9")]]]


def test_background_work_without_work_asks_nothing(job: Job) -> None:
    job.driver.background_work()
    assert job.log == []
    assert not job.driver.pending


def test_documents_of_settling_are_counted_as_corrections(job: Job) -> None:
    job.batch(opening())
    job.clock.sleep(5)
    job.lanes = [[settling(shown=True), lane(1, tally=PUBLISHED)]]
    job.driver.background_work()
    assert (job.driver.tally["corrections"], job.driver.tally["published"]) == (1, 0)


def test_a_change_that_the_indexes_show_closes_w_later_and_its_item_goes(job: Job) -> None:
    job.batch(opening())
    job.clock.sleep(5)
    job.lanes = [[settling(shown=True)]]
    job.driver.background_work()
    job.clock.sleep(5)
    job.log.clear()
    job.driver.background_work()
    assert job.log == ["check lease", Delete(key=OPEN_ITEM)]
    assert not job.driver.pending


def test_a_change_that_an_index_does_not_show_is_settled_again(job: Job) -> None:
    job.batch(opening())
    job.clock.sleep(5)
    job.lanes = [[settling(shown=False)]]
    job.driver.background_work()
    job.log.clear()
    job.driver.background_work()
    assert job.log == []
    job.clock.sleep(5)
    job.lanes = [[settling(shown=True, due=10.0, again=True)]]
    job.driver.background_work()
    assert job.log == ["check lease", settle_part]
    assert not job.driver.open_changes.due(100.0)


def test_a_change_that_live_work_saw_in_every_slot_needs_no_round(job: Job) -> None:
    job.batch(replace(opening(), sights=(Sight(CHANGE.key, "GSI_1", "1"),)))
    job.clock.sleep(5)
    job.log.clear()
    job.driver.background_work()
    assert job.log == []
    job.clock.sleep(5)
    job.driver.background_work()
    assert job.log == ["check lease", Delete(key=OPEN_ITEM)]


# The start


def test_a_later_run_waits_for_the_indexes_and_takes_over_the_work_of_the_earlier_run(job: Job) -> None:
    job.batch(opening(), lane(parts=(PartResult(fan_outs=(FAN_OUT,)),)))
    row = {"_f": 1, "_v": "1", "GSI_1": "ada", "id": 5}
    MemoryStore.write(job.store, Write(CHANGE.key, row))
    MemoryStore.write(job.store, write_changes(OPEN_ITEM, [CHANGE]))
    driver = Driver(settings=Settings(), plan=PLAN, store=job.store, executor=job, clock=job.clock, run=Run(number=3))
    driver.start()
    assert job.clock.now() == Settings().wait_seconds
    assert driver.fan_outs.next() == [FAN_OUT]
    assert driver.open_changes.by_row == {CHANGE.key: CHANGE._replace(due=5.0, again=True)}


def test_the_first_run_of_a_job_does_not_wait() -> None:
    job = Job()
    job.driver.run = Run(number=1)
    job.driver.start()
    assert job.clock.now() == 0


def test_a_start_deletes_the_work_of_products_that_are_gone(job: Job) -> None:
    gone = Key("OPEN", "backlog#0000000001.0000000004.000000")
    MemoryStore.write(job.store, Write(gone, {"_f": 1, "product": "other", "roots": '["8"]'}))
    job.driver.start()
    assert job.log == [Delete(key=gone)]
