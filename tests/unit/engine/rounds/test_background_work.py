"""The driver between batches, and at its start: the work that earlier rounds and earlier runs left."""

from dataclasses import replace

from processor.engine.protocol.ledger import Run
from processor.engine.protocol.pending import FoundRoots, ResumedFanOut
from processor.engine.protocol.segments import DueSegment, IndexObservation, write_changes
from processor.engine.rounds.driver import make_driver
from processor.engine.rounds.follow_up_stages import backlog_stage, resume_stage, settle_stage
from processor.engine.rounds.round import StageResult
from processor.environment.settings.settings import Settings
from statestore.keys import Key
from statestore.memory import MemoryStore
from statestore.store import Delete, Write
from tests.unit.engine.rounds.logged_job import (
    CHANGE,
    FAN_OUT,
    LEFT,
    OPEN_ITEM,
    PLAN,
    PUBLISHED,
    SEGMENT,
    Job,
    end_of_round,
    fan_out_write,
    lane,
    open_in,
    opening,
    settling,
)

# Background work


def test_background_work_settles_then_continues_fan_outs_then_publishes_the_backlog(job: Job) -> None:
    earlier = Key("OPEN", "backlog#0000000001.0000000004.000000")
    MemoryStore.write(job.store, Write(earlier, {"_f": 1, "product": "profile", "roots": '["8","9"]'}))
    job.driver.start()
    job.batch(opening(), lane(results=(StageResult(fan_outs=(FAN_OUT,)),)))
    job.clock.sleep(5)
    job.log.clear()
    page = ResumedFanOut(FAN_OUT, Key("TABLE#user", "9"), FoundRoots(frozenset(), ()))
    job.lanes += [
        [settling(shown=True)],
        [lane(tally=PUBLISHED, results=(StageResult(done=(page,)),))],
        [lane(tally=PUBLISHED)],
    ]
    job.driver.background_work()
    assert job.log == [
        *("check lease", settle_stage),
        *("check lease", resume_stage, end_of_round(2, before=-1), fan_out_write("9", pages=1)),
        *("check lease", backlog_stage, end_of_round(3), Delete(key=earlier)),
    ]
    due = DueSegment(SEGMENT, seen=0, again=False, samples=True)
    assert job.works[1:] == [[[due]], [[FAN_OUT]], [[("profile", "8"), ("profile", "9")]]]


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
    job.lanes = [[settling(shown=True, segment=LEFT)]]
    job.driver.background_work()
    assert job.log == ["check lease", settle_stage, "check lease"]  # the first segment closes, and its item stays
    assert not job.driver.progress.open_changes.due(100.0)


def test_a_change_that_live_work_saw_in_every_slot_needs_no_round(job: Job) -> None:
    job.batch(replace(opening(), sights=(IndexObservation(SEGMENT.name, seen=1),)))
    job.clock.sleep(5)
    job.log.clear()
    job.driver.background_work()
    assert job.log == []
    job.clock.sleep(5)
    job.driver.background_work()
    assert job.log == ["check lease", Delete(key=OPEN_ITEM)]


# The start


def test_a_later_run_waits_for_the_indexes_and_takes_over_the_work_of_the_earlier_run(job: Job) -> None:
    job.batch(opening(), lane(results=(StageResult(fan_outs=(FAN_OUT,)),)))
    row = {"_f": 1, "_v": "1", "GSI_1": "ada", "id": 5}
    MemoryStore.write(job.store, Write(CHANGE.key, row))
    MemoryStore.write(job.store, write_changes(OPEN_ITEM, [CHANGE]))
    driver = make_driver(
        settings=Settings(), plan=PLAN, store=job.store, executor=job, clock=job.clock, run=Run(number=3)
    )
    driver.start()
    assert job.clock.now() == Settings().wait_seconds
    assert list(driver.progress.fan_outs.waiting.values()) == [FAN_OUT]
    assert open_in(driver.progress.open_changes) == [CHANGE._replace(again=True)]
    assert driver.progress.open_changes.next_due() == 5.0


def test_the_first_run_of_a_job_does_not_wait() -> None:
    job = Job()
    job.driver.rounds.run = Run(number=1)
    job.driver.start()
    assert job.clock.now() == 0


def test_a_start_deletes_the_work_of_products_that_are_gone(job: Job) -> None:
    gone = Key("OPEN", "backlog#0000000001.0000000004.000000")
    MemoryStore.write(job.store, Write(gone, {"_f": 1, "product": "other", "roots": '["8"]'}))
    job.driver.start()
    assert job.log == [Delete(key=gone)]
