"""What an operator looks at: the jobs, and how far the walks are."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from registry.errors import LeaseLost
from registry.model import Progress, Requirements
from registry.repository import Registry


def test_jobs_are_alive_while_a_run_renews_its_lease(registry: Registry) -> None:
    assert registry.jobs() == ()
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    (job,) = registry.jobs()
    assert (job.job, job.owner, job.alive, job.generation, job.applied_version) == ("job", "here", True, 1, None)
    assert abs(datetime.now(UTC) - job.renewed_at) < timedelta(minutes=5)
    registry.applied(lease, 0)
    registry.release(lease)
    (job,) = registry.jobs()
    assert (job.owner, job.alive, job.applied_version) == (None, False, 0)
    registry.take_lease("job", "there", 4, take_over=False, expires_after=0.1)
    time.sleep(0.2)
    (job,) = registry.jobs()
    assert (job.owner, job.alive, job.generation) == ("there", False, 2)


def test_the_report_of_a_run_ends_with_the_lease_of_the_next(registry: Registry) -> None:
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=60)
    assert [(job.report, job.report_age) for job in registry.jobs()] == [(None, None)]
    registry.keep_report(lease, {"open_changes": 3, "topics": {"a": {"seconds": None}}})
    (job,) = registry.jobs()
    assert job.report == {"open_changes": 3, "topics": {"a": {"seconds": None}}}
    assert (job.report_age or 0.0) >= 0
    assert registry.snapshot().version == 0
    registry.take_lease("job", "there", 4, take_over=True, expires_after=60)
    with pytest.raises(LeaseLost):
        registry.keep_report(lease, {"open_changes": 4})
    assert [(job.report, job.report_age) for job in registry.jobs()] == [(None, None)]


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
