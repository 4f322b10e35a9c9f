"""Why a job failed, in the words of its own errors; and whether a failure only says that an operator stops the job."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from processor.errors import BoundaryError, StatestoreError, Stopped, error_line
from processor.job.job import Job
from processor.job.topic_epochs import check_sources, check_topics
from registry.errors import RegistryError
from statestore.errors import StoreError

SIGNAL_SECONDS = 1.0
"""A stop signal may reach Spark's processes before this process. A failure of Spark waits this long for the signal."""
EXPECTED = (StatestoreError, RegistryError, StoreError)
"""Errors whose message is written for an operator."""


def is_stop(failure: Exception, stopping: threading.Event) -> bool:
    """Whether a failure only says that an operator stops the job: SIGTERM may end Spark's processes first."""
    return isinstance(failure, Stopped) or (not isinstance(failure, EXPECTED) and stopping.wait(SIGNAL_SECONDS))


@contextmanager
def stops_cleanly(stopping: threading.Event) -> Iterator[None]:
    """Raises Stopped in place of a failure of Spark that only says that an operator stops the job, and a StatestoreError of one
    line in place of any other failure of Spark."""
    try:
        yield
    except Exception as failure:
        if is_stop(failure, stopping):
            raise Stopped("stopped on request") from failure
        if isinstance(failure, EXPECTED):
            raise
        raise StatestoreError(f"the job cannot start: {error_line(failure)}") from failure


def failure_reason(job: Job, failure: Exception) -> StatestoreError:
    """The reason why the job failed. Where a topic is not the recorded one, that is the reason: Spark's source may fail
    of it first."""
    if isinstance(failure, StatestoreError):
        return failure
    try:
        check_sources(job.admin, job.readers)
        check_topics(job.registry, job.admin, [(topic, 0) for topic in job.readers], job.readers)
    except BoundaryError as boundary:
        return boundary
    return StatestoreError(f"{job.failed_work} failed: {error_line(failure)}")
