"""What an operator looks at: the jobs, and how far the walks are."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, text

from registry.errors import LeaseLost
from registry.model import PastRuns, Progress, Requirements
from registry.repository import Registry


def test_jobs_are_alive_while_a_run_renews_its_lease(registry: Registry) -> None:
    assert registry.jobs() == ()
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    (job,) = registry.jobs()
    assert (job.job, job.owner, job.alive, job.generation, job.applied_version) == ("job", "here", True, 1, None)
    assert abs(datetime.now(UTC) - job.renewed_at) < timedelta(minutes=5)
    registry.applied(lease, 0)
    registry.give_back(lease)
    (job,) = registry.jobs()
    assert (job.owner, job.alive, job.applied_version) == (None, False, 0)
    registry.take_lease("job", "there", 4, take_over=False, expires_after=0.1)
    time.sleep(0.2)
    (job,) = registry.jobs()
    assert (job.owner, job.alive, job.generation) == ("there", False, 2)


def test_the_report_of_a_run_ends_with_the_lease_of_the_next(registry: Registry) -> None:
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    assert [(job.report, job.report_age) for job in registry.jobs()] == [(None, None)]
    registry.runs.keep_report(lease, {"open_changes": 3, "topics": {"a": {"seconds": None}}})
    (job,) = registry.jobs()
    assert job.report == {"open_changes": 3, "topics": {"a": {"seconds": None}}}
    assert (job.report_age or 0.0) >= 0
    assert registry.snapshot().version == 0
    registry.take_lease("job", "there", 4, take_over=True, expires_after=60)
    with pytest.raises(LeaseLost):
        registry.runs.keep_report(lease, {"open_changes": 4})
    assert [(job.report, job.report_age) for job in registry.jobs()] == [(None, None)]


def test_an_erasure_takes_the_names_of_roots_out_of_the_reports_of_all_jobs(registry: Registry) -> None:
    for job in ("one", "two"):
        lease = registry.take_lease(job, "here", 4, take_over=False, expires_after=60)
        registry.runs.keep_report(lease, {"open_changes": 3, "costly_roots": [{"key": '{"email":"octo@example.org"}'}]})
    registry.take_lease("three", "here", 4, take_over=False, expires_after=60)
    registry.runs.forget_roots()
    assert [job.report for job in registry.jobs()] == [{"open_changes": 3}, None, {"open_changes": 3}]


def test_the_end_of_a_run_stays_until_the_job_runs_again(registry: Registry) -> None:
    registry.runs.end("job", "here", "failed", "a job that never ran has no lease")
    assert registry.jobs() == ()
    first = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    registry.runs.end("job", "here", "failed", "topic x is gone")
    (job,) = registry.jobs()
    assert (job.owner, job.alive) == (None, False)
    assert job.last_end is not None
    assert (job.last_end.how, job.last_end.owner, job.last_end.text) == ("failed", "here", "topic x is gone")
    assert abs(datetime.now(UTC) - job.last_end.at) < timedelta(minutes=5)
    registry.runs.end("job", "there", "failed", "the start failed before it had the lease")
    assert [job.last_end.text for job in registry.jobs() if job.last_end] == [
        "the start failed before it had the lease"
    ]
    second = registry.take_lease("job", "there", 4, take_over=False, expires_after=60)
    registry.runs.begin(first)
    assert registry.jobs()[0].ended is not None, "a run without the lease forgets nothing"
    registry.runs.begin(second)
    assert registry.jobs()[0].ended is None


def test_a_run_that_lost_its_lease_notes_that_and_leaves_the_lease_of_the_other(registry: Registry) -> None:
    registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    second = registry.take_lease("job", "there", 4, take_over=True, expires_after=60)
    registry.runs.end("job", "here", "failed", "of the time before")
    assert registry.jobs()[0].ended is None
    registry.runs.end("job", "here", "lost", "another job took over")
    registry.runs.begin(second)
    (job,) = registry.jobs()
    assert (job.owner, job.alive, job.last_end) == ("there", True, None)
    assert job.ended is not None
    assert (job.ended.how, job.ended.owner) == ("lost", "here")
    registry.runs.end("job", "there", "stopped")
    registry.runs.end("job", "here", "lost", "another job took over")
    (job,) = registry.jobs()
    assert job.last_end is not None
    assert (job.last_end.how, job.last_end.owner) == ("stopped", "there")


def test_the_progress_of_walks_is_the_last_one_and_no_edit(registry: Registry, required: Requirements) -> None:
    registry.apply(required, who="me", why="first")
    fill = Progress(walk="fill star", rows=1_000, written=900, of=5_000, done=False, seconds=12.5)
    publish = Progress(walk="publish profile", rows=3, written=3, of=0, done=True, seconds=0.1)
    assert registry.progress() == ()
    registry.keep_progress([publish, fill])
    assert registry.progress() == (fill, publish)
    registry.keep_progress([fill])
    assert registry.progress() == (fill,)
    registry.keep_progress([])
    assert registry.progress() == ()
    assert registry.snapshot().version == 1


def crash(registry: Registry, owner: str, text: str) -> None:
    """A run that takes the lease and ends with an error."""
    registry.take_lease("job", owner, 4, take_over=False, expires_after=60)
    registry.runs.end("job", owner, "failed", text)


def test_runs_that_fail_in_a_row_are_counted_until_a_run_works(registry: Registry) -> None:
    crash(registry, "host:1", "150 of 200 records are bad")
    crash(registry, "host:2", "151 of 200 records are bad")
    lease = registry.take_lease("job", "host:3", 4, take_over=False, expires_after=60)
    registry.runs.begin(lease)
    registry.runs.keep_report(lease, {})
    (job,) = registry.jobs()
    assert (job.ended, job.past.failed, job.past.restarts) == (None, 2, 2)
    assert job.past.text == "151 of 200 records are bad"
    assert (job.past.since or 0) < (job.past.at or 0)
    assert lease.past is not None
    assert (lease.past.restarts, lease.past.seen) == (2, 1), "the run before saw one of them at its start"
    registry.runs.keep_report(lease, {}, worked_at=1_000.0)
    registry.runs.end("job", "host:3", "stopped")
    (job,) = registry.jobs()
    assert (job.past.failed, job.past.restarts, job.past.text, job.past.worked_at) == (0, 2, "", 1_000.0)


def test_a_run_that_died_counts_as_failed_and_one_that_was_taken_over_does_not(registry: Registry) -> None:
    registry.take_lease("job", "host:1", 4, take_over=False, expires_after=60)
    registry.take_lease("job", "host:2", 4, take_over=True, expires_after=60)
    assert registry.jobs()[0].past.restarts == 0
    registry.take_lease("job", "host:2", 4, take_over=False, expires_after=0)
    time.sleep(0.01)
    registry.take_lease("job", "host:3", 4, take_over=False, expires_after=60)
    past = registry.jobs()[0].past
    assert (past.restarts, past.failed) == (2, 2)
    assert past.text.startswith("host:2 died: it sent no more heartbeats")


def test_the_jobs_of_a_registry_of_an_older_release_have_no_past_runs(registry: Registry, psql: Engine) -> None:
    with psql.begin() as connection:
        connection.execute(text("ALTER TABLE leases DROP COLUMN past"))
    lease = registry.take_lease("job", "host:1", 4, take_over=False, expires_after=60)
    registry.runs.keep_report(lease, {"doing": "runs"}, worked_at=1_000.0)
    registry.runs.end("job", "host:1", "failed", "topic x is gone")
    (job,) = registry.jobs()
    assert (job.past, job.ended is not None and job.ended.text) == (PastRuns(), "topic x is gone")
