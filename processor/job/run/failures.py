"""Why a job failed, in the words of its own errors; whether the failure may pass by itself; and whether it only says that an
operator stops the job."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from processor.errors import BoundaryError, CheckpointError, Outage, StatestoreError, Stopped
from processor.job.run.job import Job
from processor.job.run.outages.outside_parts import OUTAGES, THROTTLED
from processor.job.run.topic_epochs import check_topics
from registry.errors import RegistryError
from statestore.errors import StoreError

SIGNAL_SECONDS = 1.0
"""A stop signal may reach Spark's processes before this process. A failure of Spark waits this long for the signal."""
EXPECTED = (StatestoreError, RegistryError, StoreError)
"""Errors whose message is written for an operator."""

UNREPORTED = 'because the return value of "scala.Option.get()" is null'
"""Spark 4.1.1 ends a query so after a first batch that an earlier run had planned, and commits the batch before: the Kafka
source cannot tell how far behind it is (SPARK-55271)."""


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


def outage_of(failure: Exception, work: str) -> Outage | None:
    """The outage that made some work of the driver or of a task fail; None for another failure."""
    if isinstance(failure, Outage):
        return failure
    name = f"{type(failure).__module__}.{type(failure).__name__}"
    if name not in OUTAGES:
        name = _raised_line(failure).partition(": ")[0]
    if name not in OUTAGES:
        return None
    part, cure = OUTAGES[name]
    return Outage(f"{work} failed: {error_line(failure)}", part=part, cure=cure, throttled=name == THROTTLED)


def failure_reason(job: Job, failure: Exception) -> StatestoreError:
    """The reason why the job failed: an Outage where a part does not answer the driver or a task. Where a topic is gone, is
    another one, or lacks the next records, that is the reason: Spark's source may fail of it first."""
    if outage := outage_of(failure, job.failed_work):
        return outage
    if isinstance(failure, StatestoreError) and not isinstance(failure, CheckpointError):
        return failure
    try:
        job.topics.find_missing(job.readers)
        left = job.moves.former if job.moves else {}  # nobody may record boundaries of a topic that an entity leaves
        readers = {topic: entity for topic, entity in job.readers.items() if entity not in left}
        check_topics(job.registry, job.admin, [(topic, 0) for topic in readers], readers)
    except BoundaryError as boundary:
        return boundary
    except Exception as unanswered:
        if outage := outage_of(unanswered, job.failed_work):
            return outage
        raise
    if isinstance(failure, CheckpointError):
        return failure
    if lost := _lost_records(job):
        return lost
    return StatestoreError(f"{job.failed_work} failed: {error_line(failure)}")


def _lost_records(job: Job) -> CheckpointError | None:
    """Why the job cannot read on where its checkpoint says; None where it can, or where Spark no longer answers."""
    try:
        job.check_positions()
    except CheckpointError as lost:
        return lost
    except Exception:  # py4j asks the JVM for the files of the checkpoint
        return None
    return None


def error_line(failure: Exception) -> str:
    """A failure in one line: the error that a Python worker raised, or the first line of Spark's message."""
    return re.sub(r"^(processor|registry|statestore)[.]errors[.][A-Za-z]+: ", "", _raised_line(failure))


def _raised_line(failure: Exception) -> str:
    try:
        text = str(failure)
    except Exception:  # py4j asks the JVM for the text
        text = "the JVM of Spark has ended"
    raised = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    # of several, the last one has the others as its cause; without any, the error is one of Java
    raised = raised or re.findall(r"An error occurred while calling .*\n: (.+)", text)
    return raised[-1] if raised else (text.splitlines() or [type(failure).__name__])[0]
