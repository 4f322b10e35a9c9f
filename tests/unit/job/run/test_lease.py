"""A verb that is a run of its own is refused next to a living job, before Spark starts."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from socket import gethostname
from threading import Event

import pytest

from processor.job.run.lease import LOOK_SECONDS, UPTIME, refuse_living_run
from registry.errors import LeaseHeld
from registry.model import JobStatus

TAKEN = datetime(2026, 11, 24, tzinfo=UTC)
RUN = JobStatus(
    job="job", owner="host/1", alive=True, generation=3, applied_version=1, renewed_at=TAKEN, report={}, report_age=4.0
)


class NoWait(Event):
    """An event for which nobody waits."""

    def wait(self, timeout: float | None = None) -> bool:
        return False


def look(*seen: JobStatus) -> None:
    looks: Iterator[JobStatus] = iter(seen)
    refuse_living_run(lambda: [next(looks)], "job", "host/2", NoWait())


@pytest.mark.parametrize(
    "later",
    [replace(RUN, report_age=0.1), replace(RUN, renewed_at=TAKEN + timedelta(seconds=10), report_age=4.5)],
    ids=["it reported", "it renewed its lease"],
)
def test_a_run_that_shows_a_sign_of_life_is_named(later: JobStatus) -> None:
    with pytest.raises(
        LeaseHeld, match=r"job job runs already: host/1 \(generation 3\): stop it, or give `--take-over`"
    ):
        look(RUN, replace(RUN, report_age=4.5), later)


def test_a_killed_run_is_waited_for_until_its_lease_expires() -> None:
    look(RUN, replace(RUN, report_age=4.5), replace(RUN, report_age=30.0, alive=False))


def here(pid: int) -> JobStatus:
    return replace(RUN, owner=f"{gethostname()}:{pid}", acquired_at=datetime.now(UTC))


@pytest.mark.skipif(not UPTIME.exists(), reason="only Linux says when a process began")
def test_a_run_whose_process_is_on_this_machine_is_named_at_the_first_look() -> None:
    with pytest.raises(LeaseHeld, match="runs already"):
        look(here(os.getppid()))


@pytest.mark.skipif(not UPTIME.exists(), reason="only Linux says when a process began")
def test_a_process_that_began_after_the_run_is_another_one() -> None:
    with pytest.raises(StopIteration):
        look(replace(here(os.getppid()), acquired_at=datetime(2020, 1, 1, tzinfo=UTC)))


@pytest.mark.skipif(not UPTIME.exists(), reason="only Linux says when a process began")
def test_a_start_does_not_look_at_a_killed_run_of_this_machine_until_its_lease_ends() -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    refuse_living_run(lambda: [here(ended.pid)], "job", "host/2", NoWait(), LOOK_SECONDS)


def test_a_start_looks_for_some_seconds_only() -> None:
    refuse_living_run(lambda: [RUN], "job", "host/2", NoWait(), 0.001)


@pytest.mark.parametrize(
    "status", [replace(RUN, alive=False, owner=None), replace(RUN, job="other"), replace(RUN, owner="host/2")]
)
def test_a_released_lease_another_job_and_the_same_owner_are_no_obstacle(status: JobStatus) -> None:
    look(status)
