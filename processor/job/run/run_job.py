"""Runs an open job to its end: streams, or replays dead letters; then gives the lease back. After an outage a streaming job rests
instead, and keeps the lease."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import sleep

from pyspark.sql.streaming.query import StreamingQuery

from processor.engine.protocol.epochs import read_epochs
from processor.engine.protocol.replays import ReplayReport
from processor.engine.rounds.events import JobEvent
from processor.errors import Outage, StatestoreError, Stopped, StreamOutdated
from processor.job.run.dead_letter_topic import portions, with_whole_record
from processor.job.run.failures import (
    EXPECTED,
    SIGNAL_SECONDS,
    UNREPORTED,
    error_line,
    failure_reason,
    is_stop,
    outage_of,
    stops_cleanly,
)
from processor.job.run.job import Job
from processor.job.run.requested_letters import live_replays
from processor.values.dead_letters import DeadLetter
from registry.errors import RegistryError

ENDED_BY_ITSELF = "Spark ended the stream without an error, and the job reads its topics no longer: start the job again"


def begin_job(job: Job) -> None:
    """Begins a prepared job. After an Outage it rests, and keeps the lease; after another failure it ends."""
    try:
        with stops_cleanly(job.stopping):
            job.begin()
    except BaseException as failure:
        outage = outage_of(failure, "the start") if isinstance(failure, Exception) else None
        if outage is None:
            job.end()
            raise
        job.rest()
        raise outage from failure


def run_job(job: Job, *, once: bool) -> None:
    """Streams until no work remains (`once`), an operator stops the job, or it fails; raises the reason of a failure. A stream
    that is outdated, or that a pause of all work ended, ends the job only with `once`. Without `once`, a stream that ends by
    itself is a failure: records would wait, and nobody would know. After an Outage the job rests, until somebody ends it."""
    query: StreamingQuery | None = None
    rests = False
    job.replays = live_replays(job)
    try:
        while (query is None or _begins_again(job, query)) and _wait_for_topics(job, once):
            job.failure = None
            query = job.stream(once)
            _watch(job, query)
        failure = job.failure or (query.exception() if query is not None else None)
        if failure is not None and not isinstance(failure, Stopped | StreamOutdated):
            raise failure
        if once:
            finish_waits(job)
        elif not job.stopping.wait(SIGNAL_SECONDS):  # the signal may reach Spark first, and end the stream
            raise StatestoreError(ENDED_BY_ITSELF)
    except Exception as failure:
        if not is_stop(failure, job.stopping):
            reason = failure_reason(job, failure)
            rests = isinstance(reason, Outage)
            raise reason from failure
    finally:
        stop_query(query)
        if job.stopping.is_set():
            text = "stopped; the next start does unfinished work again"
            job.driver.report(JobEvent(what="stopped", text=text))
        if rests:
            job.rest()
        else:
            job.end()


def _watch(job: Job, query: StreamingQuery) -> None:
    """Does the work between batches until the query ends, or has to."""
    while query.isActive:
        if job.ends_stream():
            query.stop()
        wait_for_end(query, 0 if job.driver.busy else 1)
        if not job.stopping.is_set():
            job.idle()
            job.topics.look(job.readers)
        job.renewal.check()


def _begins_again(job: Job, query: StreamingQuery) -> bool:
    """Whether the stream ended only to begin again: over other topics, or after a batch that Spark cannot report. The job noted
    why when it ended the stream: whether the stream is outdated may have changed since then. Of a stream that ended by itself
    (`once`), the job looks now: an entity may have read its former topic to the end."""
    unreported = job.failure is None and UNREPORTED in str(query.exception())
    job.ends_stream()
    return (unreported or isinstance(job.failure, StreamOutdated)) and not job.stopping.is_set()


def _wait_for_topics(job: Job, once: bool) -> bool:
    """Does the work between batches while there is no topic to stream; returns whether there is one now. Does not wait when the
    job ends with the records that are there now (`once`)."""
    job.make_moves()
    job.topics.look(job.readers)
    if job.paused:
        cure = "`statestore resume`, then start again" if once else "`statestore resume` ends the pause"
        job.driver.report(
            JobEvent(what="paused", text=f"all work is paused, and the job reads no topic: {cure}", level="warning")
        )
    if job.waits and not job.paused:
        job.doing = "waits for its topics"
    while job.waits and not once and not job.stopping.wait(0 if job.driver.busy else 1):
        job.idle()
        job.topics.look(job.readers)
        job.renewal.check()
    return not (job.waits or job.stopping.is_set())


def run_replays(job: Job, letters: Sequence[DeadLetter]) -> Iterator[ReplayReport]:
    """Replays dead letters, a portion at a time, and gives the lease back. Settles the changes of a portion, S + W at least,
    before the next one. Yields each report once the documents are
    published and the table records the replay. When an operator stops the job, the other letters stay as they are."""
    try:
        topics = sorted({letter.rejected.record.topic for letter in letters})
        job.driver.rounds.incarnations = read_epochs(job.registry.epochs(topics)).incarnations
        for portion in portions(letters):
            reports = job.driver.replay([with_whole_record(job.settings, letter) for letter in portion])
            finish_background_work(job)
            if job.stopping.is_set():
                return
            job.driver.end_replays(reports)
            yield from reports
    except Stopped:
        return
    except EXPECTED:
        raise
    except Exception as failure:  # Spark's, around that of a task
        if not is_stop(failure, job.stopping):
            raise StatestoreError(f"the replay failed: {error_line(failure)}") from failure
    finally:
        job.end()


def finish_background_work(job: Job) -> None:
    """Works until no background work remains, or an operator stops the job. Roots that wait at gates are left to the next run."""
    while not job.stopping.is_set() and job.unsettled:
        _work(job)


def finish_waits(job: Job) -> None:
    """Works until no root waits at a gate either, or an operator stops the job."""
    while not job.stopping.is_set() and job.pending:
        _work(job)


def _work(job: Job) -> None:
    sleep(0 if job.driver.busy else 0.2)
    job.idle()
    job.renewal.check()


def stop_query(query: StreamingQuery | None) -> None:
    """Stops the query, if there is one and its Spark still answers."""
    with suppress(Exception):
        if query is not None and query.isActive:
            query.stop()


def wait_for_end(query: StreamingQuery, seconds: int) -> bool:
    """Waits a moment for the query to end; returns whether it has ended, also when it failed."""
    try:
        return bool(query.awaitTermination(seconds))
    except Exception:
        return True


def keep_last_progress(job: Job) -> None:
    """Shows operators how far the walks were when the job ended. The steward shows it once a second while the job runs."""
    if job.steward is not None:
        with suppress(RegistryError):
            job.steward.keep_progress(job.driver.progress.walks.progress(job.driver.clock.date()))
