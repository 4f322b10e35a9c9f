"""The Spark job around its rounds: the lease, the fence, the stream, and how it ends.

start   1. take the lease   2. fence every earlier producer   3. reload open changes   4. wait W, if there was a run before
idle    settle work goes on between batches, in turn with them
stop    raises at the start of the next batch, which replays; returning early would commit a batch and lose it
"""

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from processor.errors import BoundaryError, StatestoreError
from processor.kafka import Admin, TransactionalOutbox
from processor.model.plan import Plan
from processor.model.replays import Letter, Replayed
from processor.rounds import Report, Rounds
from processor.settings import Settings
from processor.source import extent, of_extent, read_stream, spark_session
from processor.topics import check_topics
from processor.worker import open_store, transactional_id
from registry.errors import LeaseHeld, RegistryError
from registry.model import Lease
from registry.repository import Registry
from statestore.errors import StoreError

REPLAYS = 500
"""Dead letters replayed together: their changes are settled, S + W at least, before the next ones."""


class Stopped(StatestoreError):
    """The job was asked to stop; the batch that begins now replays at the next start."""


@dataclass(slots=True, kw_only=True)
class Job:
    """A running job: its rounds, and the stream that brings them."""

    rounds: Rounds
    failure: Exception | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    turn: threading.Lock = field(default_factory=threading.Lock)

    @property
    def settings(self) -> Settings:
        return self.rounds.settings

    def start(self) -> None:
        """Fences every producer of earlier runs, takes what they left open, and waits until the indexes show their writes."""
        settings, lease = self.settings, self.rounds.lease
        for slot in range(lease.publish_slots):
            TransactionalOutbox(settings.bootstrap_servers, dict(settings.kafka), transactional_id(settings, slot))
        self.rounds.registry.applied(lease, self.rounds.plan.version)
        self.rounds.reload()
        if lease.generation > 1:
            sleep(settings.wait_seconds)

    @property
    def topics(self) -> list[str]:
        """The topics to read."""
        return [e.entity.topic for e in self.rounds.plan.entities.values()]

    def stream(self, once: bool) -> StreamingQuery:
        """Starts the stream: with what is there now (`once`), or for good."""
        writer = read_stream(self.rounds.spark, self.settings, self.topics).writeStream.foreachBatch(self.on_batch)
        writer = writer.option("checkpointLocation", self.settings.checkpoint)
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """Handles a micro-batch; what fails here fails the batch, and is kept as the reason why."""
        with self.turn:
            try:
                if self.stopping.is_set():
                    raise Stopped("stopped on request")
                pieces = list(
                    extent(self.rounds.spark, self.settings.checkpoint, batch).slices(self.settings.batch_size)
                )
                for piece in pieces:
                    self.rounds.live(frame if len(pieces) == 1 else of_extent(frame, piece), batch, piece)
                    self.rounds.between()
            except Exception as error:
                self.failure = error
                raise

    def idle(self) -> None:
        """Settle work, fan-outs and owed roots while no batch runs."""
        if self.turn.acquire(blocking=False):
            try:
                self.rounds.between()
            finally:
                self.turn.release()


def open_job(
    settings: Settings,
    plan: Plan,
    registry: Registry,
    *,
    owner: str,
    take_over: bool,
    jars: list[Path],
    report: Report,
) -> Job:
    """Takes the lease and makes a job that is ready to stream; topics to publish to are made where they are missing."""
    store = open_store(settings)
    store.create_table(settings.slots)
    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    products = [p.product.topic for p in plan.products.values()]
    admin.ensure(products, partitions=settings.partitions, compacted=True)
    admin.ensure([settings.rejects_topic], partitions=1, compacted=False)
    lease = take_lease(registry, settings, owner, take_over=take_over)
    try:
        rounds = Rounds(
            settings=settings,
            plan=plan,
            registry=registry,
            store=store,
            admin=admin,
            lease=lease,
            spark=spark_session(settings, jars),
            report=report,
        )
        job = Job(rounds=rounds)
        job.start()
        registry.renew(lease)
    except BaseException:
        registry.release(lease)
        raise
    return job


def take_lease(registry: Registry, settings: Settings, owner: str, *, take_over: bool) -> Lease:
    """Takes the job's lease. One that a killed run left is waited for until it runs out; one that is renewed meanwhile belongs
    to a living run: then LeaseHeld, which names it."""
    first: LeaseHeld | None = None
    while True:
        try:
            return registry.take_lease(
                settings.job, owner, settings.publish_slots, take_over=take_over, expires_after=settings.lease_seconds
            )
        except LeaseHeld as held:
            if first is not None and str(held) != str(first):
                raise
            first = held
            sleep(1)


def run_job(job: Job, *, once: bool) -> None:
    """Streams until everything is worked off and settled (`once`), the job is stopped, or it fails; raises what it failed of."""
    keep = _Renewal(job)
    query: StreamingQuery | None = None
    try:
        query = job.stream(once)
        while query.isActive:
            if job.stopping.is_set() and not job.turn.locked():
                query.stop()
            query_ended(query, 0 if job.rounds.busy else 1)
            job.idle()
            keep.alive()
        failure = job.failure or query.exception()
        if failure is not None and not isinstance(failure, Stopped):
            raise reason(job, failure) from failure
        if once:
            _settle_all(job, keep)
    finally:
        if query is not None and query.isActive:
            query.stop()
        job.rounds.registry.release(job.rounds.lease)


def run_replays(job: Job, letters: Sequence[Letter]) -> Iterator[Replayed]:
    """Replays dead letters, so many at a time, and gives the lease back; yields each once its documents are published and it is
    noted as replayed. When the job is stopped, the rest stays as it is."""
    keep = _Renewal(job)
    try:
        for start in range(0, len(letters), REPLAYS):
            replayed = job.rounds.replay(letters[start : start + REPLAYS])
            keep.alive()
            _settle_all(job, keep)
            if job.stopping.is_set():
                return
            job.rounds.end_replays(replayed)
            yield from replayed
    except (StatestoreError, RegistryError, StoreError):
        raise
    except Exception as failure:  # Spark's, around that of a task
        raise StatestoreError(told(failure)) from failure
    finally:
        job.rounds.registry.release(job.rounds.lease)


def _settle_all(job: Job, keep: "_Renewal") -> None:
    """Settles until nothing is left to do, or the job is stopped."""
    while not job.stopping.is_set() and job.rounds.pending:
        sleep(0 if job.rounds.busy else 0.2)
        job.idle()
        keep.alive()


class _Renewal:
    """Renews the lease from time to time."""

    def __init__(self, job: Job) -> None:
        self._job, self._last = job, monotonic()

    def alive(self) -> None:
        if monotonic() - self._last > self._job.settings.lease_seconds / 3:
            self._last = monotonic()
            self._job.rounds.registry.renew(self._job.rounds.lease)


def query_ended(query: StreamingQuery, seconds: int) -> bool:
    """Waits a moment for the query to end. How it ended is asked afterwards."""
    try:
        return bool(query.awaitTermination(seconds))
    except Exception:
        return True


def reason(job: Job, failure: Exception) -> StatestoreError:
    """Why the job failed. A topic that is not the one it was is named as that: Spark's source may stumble over it first."""
    if isinstance(failure, StatestoreError):
        return failure
    try:
        check_topics(job.rounds.registry, job.rounds.admin, [(topic, 0) for topic in job.topics])
    except BoundaryError as boundary:
        return boundary
    return StatestoreError(told(failure))


def told(failure: Exception) -> str:
    """What failed, in a line: the error that a Python worker raised, or the first line of what Spark says."""
    text = str(failure)
    raised = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    line = raised[0] if raised else (text.splitlines() or [type(failure).__name__])[0]
    return f"the batch failed: {re.sub(r'^processor[.]errors[.][A-Za-z]+: ', '', line)}"
