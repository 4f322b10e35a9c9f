"""Spark 4.1.1 ends a stream after a batch that it cannot report: the stream begins again. After another failure the job ends."""

from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest

from processor.errors import StatestoreError
from processor.job.run_job import run_job

UNREPORTED = (
    '[STREAM_FAILED] Query [id = 2a, runId = 91] terminated with exception: Cannot invoke "scala.collection.IterableOps.map'
    '(scala.Function1)" because the return value of "scala.Option.get()" is null SQLSTATE: XXKST'
)


def job_over(*failures: Exception | None) -> tuple[Any, list[bool]]:
    """A job whose streams end at once, each with one of the failures; and where the job notes that it starts a stream."""
    ends, started = iter(failures), list[bool]()

    def stream(once: bool) -> SimpleNamespace:
        failure = next(ends)
        started.append(once)
        return SimpleNamespace(isActive=False, exception=lambda: failure)

    topics = SimpleNamespace(look=lambda readers: None)
    state: dict[str, Any] = {
        "failure": None,
        "outdated": False,
        "paused": False,
        "waits": False,
        "pending": False,
        "readers": {},
    }
    waits = {"make_moves": lambda: None, "topics": topics, "end": lambda: None}
    return SimpleNamespace(**state, **waits, stream=stream, stopping=Event()), started


def test_a_stream_whose_batch_spark_cannot_report_begins_again() -> None:
    job, started = job_over(RuntimeError(UNREPORTED), None)
    run_job(job, once=True)
    assert started == [True, True]


def test_another_failure_of_a_stream_ends_the_job() -> None:
    job, started = job_over(StatestoreError("topic x is gone"))
    with pytest.raises(StatestoreError, match="topic x is gone"):
        run_job(job, once=True)
    assert started == [True]
