"""How old the state is at most."""

from datetime import UTC, datetime
from typing import Any

import pytest

from processor.serve.state_age import state_age
from registry.model import JobStatus


def job(report: Any, age: float | None = 2.0) -> JobStatus:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return JobStatus(
        job="one",
        owner=None,
        alive=False,
        generation=1,
        applied_version=1,
        renewed_at=moment,
        report=report,
        report_age=age,
    )


def report(**seconds: float | None) -> dict[str, Any]:
    return {
        "at": 104.0,
        "looked": 100.0,
        "topics": {name: {"records": 1, "seconds": one} for name, one in seconds.items()},
    }


def test_the_age_of_the_report_of_the_look_at_kafka_and_of_the_oldest_unread_record() -> None:
    assert state_age([job(report(user=0.0, star=30.0, repo=90.0))], {"user", "star"}) == 2 + 4 + 30
    assert state_age([job(report(user=0.0))], {"user"}) == 6


def test_the_newest_report_counts() -> None:
    assert state_age([job(report(user=9.0), 500.0), job(report(user=0.0), 1.0)], {"user"}) == 5


@pytest.mark.parametrize(
    "jobs",
    [[], [job(None, None)], [job(report(user=None))], [job(report(star=1.0))], [job({"at": 1.0, "topics": {}})]],
)
def test_without_a_report_of_each_topic_the_age_is_unknown(jobs: list[JobStatus]) -> None:
    assert state_age(jobs, {"user"}) is None
