"""A verb that is a run of its own is refused next to a living job, before Spark starts."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Event

import pytest

from processor.job.run.lease import refuse_living_run
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


@pytest.mark.parametrize(
    "status", [replace(RUN, alive=False, owner=None), replace(RUN, job="other"), replace(RUN, owner="host/2")]
)
def test_a_released_lease_another_job_and_the_same_owner_are_no_obstacle(status: JobStatus) -> None:
    look(status)
