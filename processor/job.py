"""The Spark job: one action a micro-batch, one shuffle by root, and around it the lease, the fence and the account.

start   1. take the lease   2. fence every earlier producer   3. note the run
batch   4. check lease and epochs, before the first write   5. write parts, shuffle, publish parts
        6. account for every record   7. end the round: its reservations count as acknowledged from then on
stop    raises at the start of the next batch, which replays; returning early would commit a batch and lose it
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from time import sleep, time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from processor.account import check_account
from processor.batch import Round
from processor.errors import BoundaryError, Fenced, StatestoreError
from processor.kafka import Admin, TransactionalOutbox
from processor.model.epochs import Epochs, Partition
from processor.model.ledger import Run, end_round
from processor.model.plan import Plan
from processor.settings import Settings
from processor.source import Extent, extent, of_extent, read_stream, spark_session
from processor.topics import check_topics
from processor.worker import Published, Task, open_store, publish_roots, transactional_id, write_rows
from registry.errors import LeaseHeld
from registry.model import Lease
from registry.repository import Registry
from statestore.store import Done, Store

DAY = 86_400


class Stopped(StatestoreError):
    """The job was asked to stop; the batch that begins now replays at the next start."""


@dataclass(slots=True, kw_only=True)
class Job:
    """A running job. `tally`: what it did so far; `report` is called after each batch with the batch's own."""

    settings: Settings
    plan: Plan
    registry: Registry
    store: Store
    admin: Admin
    lease: Lease
    report: Callable[[int, Mapping[str, int]], None]
    spark: SparkSession
    run: Run = field(init=False)
    tally: Counter[str] = field(default_factory=Counter)
    failure: Exception | None = None
    stopping: threading.Event = field(default_factory=threading.Event)
    busy: threading.Event = field(default_factory=threading.Event)
    round: int = 0
    batch: int = -1

    def start(self) -> None:
        """Fences every producer of earlier runs, and notes this run."""
        self.run = Run(number=self.lease.generation)
        for slot in range(self.lease.publish_slots):
            TransactionalOutbox(
                self.settings.bootstrap_servers, dict(self.settings.kafka), transactional_id(self.settings, slot)
            )
        self.registry.applied(self.lease, self.plan.version)

    @property
    def topics(self) -> list[str]:
        """The topics to read."""
        return [e.entity.topic for e in self.plan.entities.values()]

    def stream(self, once: bool) -> StreamingQuery:
        """Starts the stream: with what is there now (`once`), or for good."""
        writer = read_stream(self.spark, self.settings, self.topics).writeStream.foreachBatch(self.on_batch)
        writer = writer.option("checkpointLocation", self.settings.checkpoint)
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """Handles a micro-batch; what fails here fails the batch, and is kept as the reason why."""
        self.busy.set()
        try:
            if self.stopping.is_set():
                raise Stopped("stopped on request")
            whole = extent(self.spark, self.settings.checkpoint, batch)
            pieces = list(whole.slices(self.settings.batch_size))
            for piece in pieces:
                self.batch = max(batch, self.batch + 1)
                self._one_round(frame if len(pieces) == 1 else of_extent(frame, piece), piece)
        except Exception as error:
            self.failure = error
            raise
        finally:
            self.busy.clear()

    def _one_round(self, frame: DataFrame, piece: Extent) -> None:
        if not self.registry.holds(self.lease):
            raise Fenced(
                f"job {self.lease.job}: generation {self.lease.generation} lost its lease; another job took over"
            )
        epochs = check_topics(self.registry, self.admin, piece.ranges)
        starts = {partition: start for partition, (start, _) in piece.ranges.items()}
        results = self._action(frame, self._task(starts, epochs))
        tally = _sum(results)
        check_account(tally, self.settings)
        if tally["published"]:
            self._end_round({r.slot: r.attempt for r in results if r.attempt})
        self.round += 1
        self.tally.update(tally)
        self.report(self.batch, tally)

    def _task(self, starts: Mapping[Partition, int], epochs: Epochs) -> Task:
        round_ = Round(
            plan=self.plan,
            run=self.run,
            number=self.round,
            batch=self.batch,
            starts=starts,
            forget=int(time()) + self.settings.marker_days * DAY,
            rejects=self.settings.rejects_topic,
        )
        return Task(round=round_, settings=self.settings, lease=self.lease, record_epochs=epochs)

    def _action(self, frame: DataFrame, task: Task) -> list[Published]:
        """Write parts, one shuffle, publish parts: the one Spark action of a round."""
        slots = self.settings.publish_slots

        def publish(slot: int, pairs: Any) -> Any:
            return publish_roots(slot, pairs, task)

        pairs = frame.rdd.mapPartitions(partial(write_rows, task=task))
        return list(pairs.partitionBy(slots, int).mapPartitionsWithIndex(publish).collect())

    def _end_round(self, attempts: Mapping[int, int]) -> None:
        later = {(self.round, slot): attempt for slot, attempt in attempts.items()}
        run = replace(self.run, through=self.round, attempts={**self.run.attempts, **later})
        if not isinstance(self.store.write(end_round(run)), Done):
            raise Fenced(f"run {run.number}: round {self.round} was ended by another; this job must stop")
        self.run = run


def open_job(
    settings: Settings,
    plan: Plan,
    registry: Registry,
    *,
    owner: str,
    take_over: bool,
    jars: list[Path],
    report: Callable[[int, Mapping[str, int]], None],
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
        job = Job(
            settings=settings,
            plan=plan,
            registry=registry,
            store=store,
            admin=admin,
            lease=lease,
            report=report,
            spark=spark_session(settings, jars),
        )
        job.start()
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
    """Streams until everything is worked off (`once`), the job is stopped, or it fails; raises what it failed of."""
    query = job.stream(once)
    renewed = time()
    try:
        while query.isActive:
            if job.stopping.is_set() and not job.busy.is_set():
                query.stop()
            query_ended(query)
            if time() - renewed > job.settings.lease_seconds / 3:
                renewed = time()
                job.registry.renew(job.lease)
        failure = job.failure or query.exception()
        if failure is not None and not isinstance(failure, Stopped):
            raise reason(job, failure) from failure
    finally:
        if query.isActive:
            query.stop()
        job.registry.release(job.lease)


def query_ended(query: StreamingQuery) -> bool:
    """Waits a moment for the query to end. How it ended is asked afterwards."""
    try:
        return bool(query.awaitTermination(1))
    except Exception:
        return True


def reason(job: Job, failure: Exception) -> StatestoreError:
    """Why the job failed. A topic that is not the one it was is named as that: Spark's source may stumble over it first."""
    if isinstance(failure, StatestoreError):
        return failure
    try:
        check_topics(job.registry, job.admin, [(topic, 0) for topic in job.topics])
    except BoundaryError as boundary:
        return boundary
    return StatestoreError(told(failure))


def told(failure: Exception) -> str:
    """What failed, in a line: the error that a Python worker raised, or the first line of what Spark says."""
    text = str(failure)
    raised = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    line = raised[0] if raised else (text.splitlines() or [type(failure).__name__])[0]
    return f"the batch failed: {re.sub(r'^processor[.]errors[.][A-Za-z]+: ', '', line)}"


def _sum(results: list[Published]) -> Counter[str]:
    tally: Counter[str] = Counter()
    for published in results:
        tally.update(published.tally)
        tally.update({f"request {name}": n for name, n in published.requests.items()})
        for written in published.written:
            tally.update(written.tally)
    return tally
