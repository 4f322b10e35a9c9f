"""The Spark job around its driver: the lease, the fence, the stream, and how the job ends.

start   1. take the lease   2. fence every earlier producer   3. start the driver: reload, wait W
idle    background work goes on between batches, in turn with them
stop    the job raises at the start of the next batch, and Spark replays that batch at the next start. (Returning early
        would commit the batch.)
"""

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from processor.errors import BoundaryError, StatestoreError, Stopped
from processor.job.binding import adopt_parts, bind_parts, check_parts, earlier_sequences, fence_other_jobs
from processor.job.checkpoint import Checkpoint, prepare_checkpoint
from processor.job.dead_letter_topic import letter_bytes, portions, with_whole_record
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.lease import LeaseRenewal, lease_check, take_lease
from processor.job.source import OffsetRanges, in_ranges, offset_ranges, read_stream, spark_session
from processor.job.spark_executor import BatchFrame, SparkExecutor
from processor.job.topic_epochs import check_topics
from processor.job.worker import open_store, transactional_id
from processor.plan.plan import Plan
from processor.plan.rejects_topic import check_rejects_topic
from processor.progress.ledger import Run
from processor.progress.replays import ReplayReport
from processor.records.dead_letters import DeadLetter
from processor.rounds.clock import SystemClock
from processor.rounds.driver import Driver, Report
from processor.settings import Settings
from registry.errors import RegistryError
from registry.model import Lease
from registry.repository import Registry
from statestore.errors import StoreError

SIGNAL_SECONDS = 1.0
"""A stop signal may reach Spark's processes before this process. A failure of Spark waits this long for the signal."""
LAST_ROUND_SECONDS = 30.0
"""At its end, the job waits this long for a round that still runs, before it gives the lease back."""
EXPECTED = (StatestoreError, RegistryError, StoreError)
"""Errors whose message is written for an operator."""


@dataclass(slots=True, kw_only=True)
class Job:
    """A running job: its driver, and the stream that brings batches."""

    driver: Driver
    spark: SparkSession
    registry: Registry
    admin: Admin
    lease: Lease
    renewal: LeaseRenewal
    failure: Exception | None = None
    failed_work: str = "the batch"
    stopping: threading.Event = field(default_factory=threading.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def settings(self) -> Settings:
        """The job's settings."""
        return self.driver.settings

    @property
    def readers(self) -> dict[str, str]:
        """The topics to read, and the entity that reads each."""
        return {e.entity.topic: name for name, e in self.driver.plan.entities.items()}

    def fit_checkpoint(self) -> None:
        """Fits the checkpoint, if the job has one, to the topics. Raises CheckpointError when that is impossible."""
        if self.settings.checkpoint:
            boundaries = self.registry.epochs(list(self.readers), list(self.readers.values()))
            checkpoint = Checkpoint(spark=self.spark, path=self.settings.checkpoint)
            prepare_checkpoint(checkpoint, self.readers, boundaries, self.admin)

    def start(self) -> None:
        """Fences every producer of earlier runs, takes over what they left, and waits until the indexes show their
        writes."""
        settings = self.settings
        for lane in range(self.lease.lanes):
            TransactionalOutbox(
                settings.bootstrap_servers,
                dict(settings.kafka),
                transactional_id(settings, lane),
                seconds=settings.transaction_seconds,
            )
        self.registry.applied(self.lease, self.driver.plan.version)
        self.driver.start()

    def stream(self, once: bool) -> StreamingQuery:
        """Starts the stream: with the records that are there now (`once`), or for good."""
        writer = read_stream(self.spark, self.settings, list(self.readers)).writeStream.foreachBatch(self.on_batch)
        writer = writer.option("checkpointLocation", self.settings.checkpoint)
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """Processes a micro-batch. An error here fails the batch, and the job keeps it as the reason."""
        with self.turn:
            try:
                if self.stopping.is_set():
                    raise Stopped("stopped on request")
                ranges = offset_ranges(self.spark, self.settings.checkpoint, batch)
                pieces = list(ranges.slices(self.settings.batch_size))
                for piece in pieces:
                    self._process(frame if len(pieces) == 1 else in_ranges(frame, piece), piece, batch)
                    self.driver.background_work()
            except Exception as error:
                self.failure = error
                raise

    def idle(self) -> None:
        """Background work while no batch runs. A failure ends the stream, like one of a batch."""
        if self.turn.acquire(blocking=False):
            try:
                self.driver.background_work()
            except Exception:
                self.failed_work = "the work between batches"
                raise
            finally:
                self.turn.release()

    def end(self) -> None:
        """Waits for the round that still runs, stops renewing the lease, and gives it back."""
        self.stopping.set()
        if self.turn.acquire(timeout=LAST_ROUND_SECONDS):
            self.turn.release()
        self.renewal.stop()
        self.registry.release(self.lease)

    def _process(self, frame: DataFrame, piece: OffsetRanges, batch: int) -> None:
        self.driver.check_lease()
        epochs = check_topics(self.registry, self.admin, piece.ranges, self.readers)
        starts = {partition: start for partition, (start, _) in piece.ranges.items()}
        self.driver.process_batch(BatchFrame(frame=frame, epochs=epochs), starts, batch)


def open_job(
    settings: Settings,
    plan: Plan,
    registry: Registry,
    *,
    owner: str,
    take_over: bool,
    jars: list[Path],
    report: Report,
    adopt: bool = False,
    stopping: threading.Event | None = None,
) -> Job:
    """Takes the lease and makes a job that is ready to stream. Creates the topics to publish to where they are missing, and
    the table at the first start of the registry's first job. `adopt`: the operator means to rename the job, or to build
    the state again in an empty table. An operator stops the job by setting `stopping`, here or later.

    Raises:
        ForeignPart: table, job name and checkpoint do not belong to this registry; nothing is written.
        Stopped: an operator stopped the job before it was open.
    """
    check_rejects_topic(plan, settings.rejects_topic)
    stopping = stopping or threading.Event()
    store = open_store(settings)
    check_parts(settings, registry, store, None, adopt=adopt)
    with stops_cleanly(stopping):
        spark = spark_session(settings, jars)
    checkpoint = Checkpoint(spark=spark, path=settings.checkpoint) if settings.checkpoint else None
    check_parts(settings, registry, store, checkpoint, adopt=adopt)
    if adopt:
        adopt_parts(settings, registry, store, take_over=take_over)
    lease = take_lease(registry, settings, owner, take_over=take_over, stopping=stopping)
    renewal = LeaseRenewal(settings, lease)
    renewal.start()
    try:
        check_parts(settings, registry, store, checkpoint)
        bind_parts(settings, registry, store, checkpoint)
        store.create(settings.slots)
        fence_other_jobs(settings, registry)
        admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
        products = [p.product.topic for p in plan.products.values()]
        admin.ensure(products, partitions=settings.partitions, compacted=True)
        admin.ensure([settings.rejects_topic], partitions=1, compacted=False)
        driver = Driver(
            settings=settings,
            plan=plan,
            store=store,
            executor=SparkExecutor(spark=spark, settings=settings, lease=lease),
            clock=SystemClock(),
            run=Run(number=lease.generation),
            check_lease=lease_check(registry, lease),
            report=report,
            letter_bytes=letter_bytes(admin, settings),
            earlier_sequences=earlier_sequences(settings, plan, store),
        )
        job = Job(
            driver=driver, spark=spark, registry=registry, admin=admin, lease=lease, renewal=renewal, stopping=stopping
        )
        with stops_cleanly(stopping):
            job.fit_checkpoint()
            job.start()
    except BaseException:
        renewal.stop()
        registry.release(lease)
        raise
    return job


def run_job(job: Job, *, once: bool) -> None:
    """Streams until no work remains (`once`), an operator stops the job, or it fails; raises the reason of a failure."""
    query: StreamingQuery | None = None
    try:
        query = job.stream(once)
        while query.isActive:
            if job.stopping.is_set() and not job.turn.locked():
                query.stop()
            wait_for_end(query, 0 if job.driver.busy else 1)
            job.idle()
            job.renewal.check()
        failure = job.failure or query.exception()
        if failure is not None and not isinstance(failure, Stopped):
            raise failure
        if once:
            _finish_background_work(job)
    except Exception as failure:
        if not is_stop(failure, job.stopping):
            raise failure_reason(job, failure) from failure
        job.driver.report(f"stopped; the next start does the interrupted work again ({error_line(failure)})", {})
    finally:
        stop_query(query)
        job.end()


def run_replays(job: Job, letters: Sequence[DeadLetter]) -> Iterator[ReplayReport]:
    """Replays dead letters, a portion at a time, and gives the lease back. Settles the changes of a portion, S + W at least,
    before the next one. Yields each report once the documents are
    published and the table records the replay. When an operator stops the job, the other letters stay as they are."""
    try:
        for portion in portions(letters):
            reports = job.driver.replay([with_whole_record(job.settings, letter) for letter in portion])
            _finish_background_work(job)
            if job.stopping.is_set():
                return
            job.driver.end_replays(reports)
            yield from reports
    except EXPECTED:
        raise
    except Exception as failure:  # Spark's, around that of a task
        if not is_stop(failure, job.stopping):
            raise StatestoreError(f"the replay failed: {error_line(failure)}") from failure
    finally:
        job.end()


def is_stop(failure: Exception, stopping: threading.Event) -> bool:
    """Whether a failure only says that an operator stops the job: SIGTERM may end Spark's processes first."""
    return isinstance(failure, Stopped) or (not isinstance(failure, EXPECTED) and stopping.wait(SIGNAL_SECONDS))


@contextmanager
def stops_cleanly(stopping: threading.Event) -> Iterator[None]:
    """Raises Stopped in place of a failure of Spark that only says that an operator stops the job."""
    try:
        yield
    except Exception as failure:
        if is_stop(failure, stopping):
            raise Stopped("stopped on request") from failure
        raise


def _finish_background_work(job: Job) -> None:
    """Works until no background work remains, or an operator stops the job."""
    while not job.stopping.is_set() and job.driver.pending:
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


def failure_reason(job: Job, failure: Exception) -> StatestoreError:
    """The reason why the job failed. Where a topic is not the recorded one, that is the reason: Spark's source may fail
    of it first."""
    if isinstance(failure, StatestoreError):
        return failure
    try:
        check_topics(job.registry, job.admin, [(topic, 0) for topic in job.readers], job.readers)
    except BoundaryError as boundary:
        return boundary
    return StatestoreError(f"{job.failed_work} failed: {error_line(failure)}")


def error_line(failure: Exception) -> str:
    """A failure in one line: the error that a Python worker raised, or the first line of Spark's message."""
    text = str(failure)
    raised = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    line = raised[0] if raised else (text.splitlines() or [type(failure).__name__])[0]
    return re.sub(r"^processor[.]errors[.][A-Za-z]+: ", "", line)
