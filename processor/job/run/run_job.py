"""Runs a job until it has ended: opens it, streams, opens it again after an outage, and notes in the registry how it ended.

    1. The run fails, ends its stream, and rests: it keeps the lease, and its monitor continues.
    2. The job waits, longer after each failure in a row, until the registry, the broker and the table answer.
    3. The run gives the lease back, and the job opens again.

Opening again is a start like any other: a new generation of the lease, producers fenced, open changes reloaded, W waited. So the
job continues as the next process would after a crash. A job that has never been open ends at its first failure.

The registry keeps how a run ended for `statestore status`: the process may be gone when somebody asks. A job that runs again
forgets it. Does not: note the end of a process that a signal kills, or whose registry does not answer. The log has that error,
and `status` says that the run did not note its end.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import disk_usage
from tempfile import gettempdir
from threading import Event
from time import monotonic, sleep

from pyspark.sql.streaming.query import StreamingQuery

from processor.engine.plan.planning import plan_of
from processor.engine.protocol.epochs import entities_of, read_epochs
from processor.engine.protocol.replays import ReplayReport, letter_position
from processor.engine.rounds.events import JobEvent, Report
from processor.engine.rounds.operators import LiveReplays, outcome_of
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings
from processor.environment.stores.kinds import open_store
from processor.errors import BoundaryError, CheckpointError, Fenced, Outage, StatestoreError, Stopped, StreamOutdated
from processor.job.metrics.status import JobPhase
from processor.job.run.dead_letters import portions, read_requested, with_whole_record
from processor.job.run.feed import Feed
from processor.job.run.job import Job
from processor.job.run.monitor import WORKED_SECONDS
from processor.job.run.open_job import RunRequest, prepare_job
from processor.job.run.outages import (
    EXPECTED,
    SIGNAL_SECONDS,
    UNREPORTED,
    OutageWait,
    error_line,
    is_stop,
    outage_of,
    places,
    stops_cleanly,
)
from processor.job.run.topics import ANSWER_SECONDS, check_topics
from processor.job.run.worker import lease_lost
from processor.values.dead_letters import DeadLetter
from registry.errors import LeaseLost, RegistryError, RegistryMissing
from registry.model import How
from statestore.store import FencedWrite, StoreError

LOST = (Fenced, LeaseLost, FencedWrite)


@contextmanager
def noted_end(settings: Settings, owner: str, stopping: Event, report: Report) -> Iterator[None]:
    """Notes how the run within the block ends. `owner`: its name in the lease; `stopping`: an operator stops it."""
    try:
        yield
    except BaseException as failure:
        _note(settings, owner, *end_of(failure), report)
        raise
    _note(settings, owner, "stopped" if stopping.is_set() else "finished", "", report)


def end_of(failure: BaseException) -> tuple[How, str]:
    """How a run ended that raised this, and the message for an operator."""
    if isinstance(failure, Stopped | KeyboardInterrupt):
        return "stopped", ""
    expected = isinstance(failure, StatestoreError | RegistryError | StoreError)
    text = str(failure) if expected else f"unexpected {type(failure).__name__}: {failure}"
    return "lost" if isinstance(failure, LOST) else "failed", " ".join(text.split())


def _note(settings: Settings, owner: str, how: How, text: str, report: Report) -> None:
    try:
        with open_registry(settings) as registry:
            registry.runs.end(settings.job, owner, how, text)
    except RegistryMissing:  # the run ended before there was a registry
        pass
    except RegistryError as error:
        line = f"`statestore status` cannot say how this run ended, and its log can: {error}"
        report(JobEvent(what="end not noted", text=line, level="warning"))


ENDED_BY_ITSELF = "Spark ended the stream without an error, and the job reads its topics no longer: start the job again"


def failure_reason(job: Job, failure: Exception) -> StatestoreError:
    """The reason why the job failed: an Outage where a part does not answer the driver or a task. Where a topic is gone, is
    another one, or lacks the next records, that is the reason: Spark's source may fail of it first."""
    if outage := outage_of(failure, job.failed_work):
        return outage
    if isinstance(failure, StatestoreError) and not isinstance(failure, CheckpointError):
        return failure
    try:
        job.topics.find_missing(job.readers)
        left = job.moves.former if job.moves else {}  # no boundary may be recorded of a topic that an entity leaves
        readers = {topic: one for topic, one in job.readers.items() if left.keys().isdisjoint(entities_of(one))}
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
    reason = error_line(failure)
    return StatestoreError(f"{job.failed_work} failed: {reason}{full_disk(reason, job.settings.checkpoint)}")


NO_SPACE = "No space left on device"


def full_disk(reason: str, checkpoint: str) -> str:
    """Which disk of this machine is full, and the cure; empty where the reason is another one."""
    if NO_SPACE not in reason:
        return ""
    spark = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0] or gettempdir()
    folders = {"--checkpoint": checkpoint.removeprefix("file://"), "SPARK_LOCAL_DIRS": spark}
    free = {name: disk_usage(folder).free for name, folder in folders.items() if Path(folder).is_dir()}
    if not free:
        return "; free space on the disks of the job"
    least = min(free, key=lambda name: free[name])
    return f"; the disk of {least}, {folders[least]}, has {free[least]:,} bytes left: free space on it"


def _lost_records(job: Job) -> CheckpointError | None:
    """Why the job cannot read on where its checkpoint says; None where it can, or where Spark no longer answers."""
    try:
        job.check_positions()
    except CheckpointError as lost:
        return lost
    except Exception:  # py4j asks the JVM for the files of the checkpoint
        return None
    return None


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
    itself is a failure: records would wait unnoticed. After an Outage the job rests, until somebody ends it."""
    query: StreamingQuery | None = None
    rests = False
    job.replays = _live_replays(job)
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
        job.phase = JobPhase.WAITS
    while job.waits and not once and not job.stopping.wait(0 if job.driver.busy else 1):
        job.idle()
        job.topics.look(job.readers)
        job.renewal.check()
    return not (job.waits or job.stopping.is_set())


def _live_replays(job: Job) -> LiveReplays:
    """The replays of an open job."""
    return LiveReplays(
        driver=job.driver,
        requests=job.registry.replays,
        lease=job.lease,
        read=partial(read_requested, job.settings, job.registry),
        whole=partial(with_whole_record, job.settings),
    )


def run_replays(job: Job, letters: Sequence[DeadLetter], request: int = 0) -> Iterator[ReplayReport]:
    """Replays dead letters, a portion at a time, and gives the lease back. Settles the changes of a portion, S + W at least,
    before the next one. Yields each report once the documents are published, and the table and then the registry record the
    replay, as part of this request. When an operator stops the job, the other letters stay as they are."""
    try:
        topics = sorted({letter.rejected.record.topic for letter in letters})
        job.driver.rounds.incarnations = read_epochs(job.registry.epochs(topics)).incarnations
        for portion in portions(letters):
            reports = job.driver.replay([with_whole_record(job.settings, letter) for letter in portion])
            finish_background_work(job)
            if job.stopping.is_set():
                return
            job.driver.end_replays(reports)
            reasons = {letter_position(one.rejected.record): one.rejected.reason for one in portion}
            job.registry.replays.note(job.lease, request, [outcome_of(report, reasons) for report in reports])
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
    """Shows operators how far the walks were when the job ended. The follower shows it once a second while the job runs."""
    if job.follower is not None:
        with suppress(RegistryError):
            job.follower.keep_progress(job.driver.progress.walks.progress(job.driver.clock.date()))


def run_again(open_: Callable[[], Job], *, once: bool, stopping: Event) -> Job:
    """Runs the job that `open_` opens until it has ended. Returns the last one, with the counts of all.

    Raises:
        Outage: a part did not answer for too long.
        Stopped: an operator stopped the job between two runs.
    """
    tally, job = Counter[str](), open_()
    settings = job.settings
    wait = OutageWait(
        troubles=job.troubles, stopping=stopping, seconds=settings.outage_seconds, places=places(settings)
    )
    while True:
        began = monotonic()
        try:
            if job.phase is JobPhase.STARTS:
                begin_job(job)
            run_job(job, once=once)
        except Outage as outage:
            tally += job.driver.tally
            if job.last_batch is not None:
                wait.forget(job.last_batch.at)
            elif monotonic() - began > WORKED_SECONDS:
                wait.forget(job.troubles.clock())
            wait.note(outage)
            job = _open_later(job, open_, wait)
        else:
            job.driver.tally.update(tally)
            return job


def _open_later(rests: Job, open_: Callable[[], Job], wait: OutageWait) -> Job:
    """Waits until the parts answer, ends the run that rests, and opens the next one."""
    try:
        while True:
            wait.pause()
            try:
                _probe(rests)
                rests.end()
                job = open_()
                wait.opened()
                return job
            except Exception as failure:
                outage = outage_of(failure, "the start")
                if outage is None:
                    raise
                wait.note(outage)
    except BaseException:
        rests.end()
        raise


def _probe(rests: Job) -> None:
    """Asks the registry, the broker and the table whether they answer. Raises their errors, and Fenced when another run took the
    lease."""
    if rests.phase is JobPhase.ENDED:  # a later start failed, and gave the lease back
        rests.registry.binding()
    else:
        try:
            rests.registry.renew(rests.lease)
        except LeaseLost:
            raise lease_lost(rests.lease) from None
    rests.admin.names(ANSWER_SECONDS)
    with closing(open_store(rests.settings)) as store:
        store.describe()


def _later(request: RunRequest) -> RunRequest:
    """The request of a later start: by the registry's version of now. It takes over from no run, since another job may have taken
    over meanwhile."""
    plan = plan_of(request.registry.snapshot())
    return replace(request, plan=plan, take_over=False, adopt=False)


def run_to_end(
    request: RunRequest, *, once: bool, opened: Callable[[Job | None], None], feed: Feed | None = None
) -> Job:
    """Runs the job until it has ended, or somebody sets `stopping`. Produces the records of `feed` once the job is open: a start
    that is refused leaves the topics as they are. `opened`: takes None when a start begins, and then the job that is open. Raises
    Stopped when the operator stops the job before it is open."""
    waiting = [feed] if feed else []
    first = [request]

    def open_() -> Job:
        opened(None)
        job = prepare_job(first.pop() if first else _later(request))
        opened(job)
        with suppress(RegistryError):  # the run itself waits for a registry that does not answer
            request.registry.runs.begin(job.lease)
        try:
            while waiting:
                waiting.pop().produce()
        except BaseException:
            job.end()
            raise
        return job

    job = run_again(open_, once=once, stopping=request.stopping)
    keep_last_progress(job)
    return job
