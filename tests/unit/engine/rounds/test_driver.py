"""The driver: what it makes durable after each round and in which order."""

from collections import Counter

import pytest

from processor.engine.protocol.ledger import Run, read_run
from processor.engine.protocol.walks import TruncateGoal, Walk, write_walk
from processor.engine.rounds.round import StageResult
from processor.engine.rounds.write_stage import write_stage
from processor.errors import AccountError, Fenced, LostWrites
from statestore.memory import MemoryStore
from statestore.store import Delete, Write
from tests.unit.engine.rounds.logged_job import (
    BACKLOG_WRITE,
    CHANGE,
    FAN_OUT,
    FAN_OUT_ITEM,
    PUBLISHED,
    Job,
    end_of_round,
    fan_out_write,
    lane,
    open_in,
    opening,
)

# Rounds and their ends


def test_the_driver_checks_the_lease_before_each_round(job: Job) -> None:
    job.batch()
    job.batch()
    assert job.log == ["check lease", write_stage, "check lease", write_stage]


def test_a_driver_that_lost_the_lease_runs_no_round(job: Job) -> None:
    def lost() -> None:
        raise Fenced("another run took over")

    job.driver.rounds.check_lease = lost
    with pytest.raises(Fenced):
        job.batch(lane(tally=PUBLISHED))
    assert job.log == []
    assert job.driver.rounds.number == 0


def test_the_end_of_a_round_with_messages_is_durable(job: Job) -> None:
    job.batch(lane(tally=PUBLISHED))
    assert job.log == ["check lease", write_stage, end_of_round(0)]
    assert job.driver.rounds.run == Run(number=2, through=0)


def test_a_truncate_is_durable_before_its_batch_ends_and_the_next_rounds_know_it(job: Job) -> None:
    job.batch(lane(tally=PUBLISHED, results=(StageResult(truncates=(("star", "000001.000000.7"),)),)))
    goal = TruncateGoal("000001.000000.7", "000001.000000.7")
    walk = Walk(goal=goal, left={"TABLE#star": None})
    assert job.log == ["check lease", write_stage, end_of_round(0), write_walk(("truncate", "star"), walk, 2)]
    assert job.driver.pending
    job.batch()
    assert [one.remembered.truncates for one in job.rounds] == [{}, {"star": goal}]


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
    assert job.log == ["check lease", write_stage]
    job.batch(lane(0, attempt=1, tally=PUBLISHED), lane(1))
    assert job.log[2:] == ["check lease", write_stage, end_of_round(1, before=-1, attempts=[[0, 1, 2], [1, 0, 1]])]


def test_the_end_of_a_round_that_wrote_rows_only_is_durable_where_a_failover_may_lose_them(job: Job) -> None:
    rows = Counter(read=1, applied=1)
    job.batch(lane(tally=rows))
    assert job.log == ["check lease", write_stage]
    job.store.consistent = True
    job.batch(lane(tally=rows))
    assert job.log[2:] == ["check lease", write_stage, end_of_round(1, before=-1)]
    job.batch(lane(tally=Counter(read=1, ignored=1)))
    assert job.log[5:] == ["check lease", write_stage]


def test_a_record_without_an_account_ends_no_round(job: Job) -> None:
    with pytest.raises(AccountError):
        job.batch(lane(tally=Counter(read=2, applied=1, published=1)))
    assert job.log == ["check lease", write_stage]


def test_a_driver_whose_round_another_process_ended_is_fenced(job: Job) -> None:
    MemoryStore.write(job.store, end_of_round(1, before=-1))
    with pytest.raises(Fenced, match=r"^run 2: another process ended round 0; this job must stop$"):
        job.batch(lane(tally=PUBLISHED, backlog=frozenset({("profile", "8")})))
    assert job.log == ["check lease", write_stage, end_of_round(0)]


def test_the_store_may_refuse_an_end_that_it_has_written(job: Job) -> None:
    """The answer to the first try was lost, so the client tried again."""
    MemoryStore.write(job.store, end_of_round(0))
    job.batch(lane(tally=PUBLISHED))
    assert job.driver.rounds.run == Run(number=2, through=0)


@pytest.mark.parametrize("left", [{}, {"through": 0}])
def test_a_driver_whose_table_went_back_ends_no_round_and_stops(job: Job, left: dict[str, int]) -> None:
    """As after a failover to a standby that lacks the last writes."""
    for _ in range(2):
        job.batch(lane(tally=PUBLISHED))
    MemoryStore.delete(job.store, Delete(key=end_of_round(1).key))
    if left:
        MemoryStore.write(job.store, end_of_round(0))
    with pytest.raises(LostWrites, match="the table went back to an earlier moment: run 2 ended round 1"):
        job.batch(lane(tally=PUBLISHED))
    assert job.driver.rounds.run == Run(number=2, through=1)
    key = end_of_round(0).key
    assert read_run(2, MemoryStore.get(job.store, [key]).get(key)).through == left.get("through", -1)


def test_the_counts_of_a_batch_include_the_requests_of_its_driver(job: Job) -> None:
    tally = job.batch(lane(0, tally=PUBLISHED), lane(1, tally=PUBLISHED), opening())
    assert tally == {"published": 2, "request UpdateItem": 1}
    assert job.driver.tally == tally


# What a round leaves to later rounds


def test_backlog_and_fan_outs_are_durable_after_the_end_of_the_round_and_before_the_batch_returns(job: Job) -> None:
    found = (StageResult(fan_outs=(FAN_OUT,)),)
    job.batch(
        lane(tally=PUBLISHED, failed={"profile": "no Bobs"}, backlog=frozenset({("profile", "8")}), results=found)
    )
    assert job.log == ["check lease", write_stage, end_of_round(0), BACKLOG_WRITE, fan_out_write("7", pages=0)]
    assert job.driver.progress.backlog.stopped == {"profile": "no Bobs"}
    job.batch()
    assert job.rounds[1].remembered.stopped == {"profile"}


def test_open_changes_are_taken_after_all_writes(job: Job) -> None:
    open_at_write: list[int] = []
    job.on_write = lambda: open_at_write.append(job.driver.progress.open_changes.count)
    job.batch(opening(), lane(tally=PUBLISHED, backlog=frozenset({("profile", "8")})))
    assert open_at_write == [0, 0]
    assert open_in(job.driver.progress.open_changes) == [CHANGE]


def test_a_crash_before_the_end_of_the_round_takes_no_open_change(job: Job) -> None:
    MemoryStore.write(job.store, end_of_round(1, before=-1))
    with pytest.raises(Fenced):
        job.batch(opening(), lane(tally=PUBLISHED))
    assert open_in(job.driver.progress.open_changes) == []


def test_a_later_run_that_continues_the_fan_out_fences_the_driver(job: Job) -> None:
    later = fan_out_write("9", pages=1)
    MemoryStore.write(job.store, Write(FAN_OUT_ITEM, {**later.set, "run": 3}))
    with pytest.raises(Fenced, match=r"^a later run than 2 continues its work; this job must stop$"):
        job.batch(lane(results=(StageResult(fan_outs=(FAN_OUT,)),)))
