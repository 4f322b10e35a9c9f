"""The Spark job around its driver: the fence, the stream, and what the driver does with a batch. And the executor, which runs the
stages of a round as tasks of Spark.

start   take the lease (open_job.py), then take over from earlier runs (lease.py)
idle    background work runs between batches, in turn with them
edit    the follower takes a new version of the registry before a batch, or between batches; with other topics, or in a pause, the
        stream ends, and begins again; so it does when a missing topic appears, or when an entity can leave its former topic
stop    the job raises at the start of the next batch, and Spark replays that batch at the next start. (Returning early
        would commit the batch.)

A job that is far behind its topics catches up: it writes rows first, and publishes each root once when it has caught up. An
initial snapshot, or a long stop, would otherwise publish the same growing documents again and again. A job with a new checkpoint
over stored rows would publish earlier states of its documents. The driver holds all products meanwhile
(`processor.engine.protocol.walks`). After `catch_up_seconds` the job publishes them although it is still behind. Then it does not
hold them again before it has caught up.

A hold makes the publications begin again at the first root. So the job does not hold the products again before those that it
released have published every root. Else a source that writes a lot again and again would keep the last roots waiting for ever.

A round is one action (`SparkExecutor`): the tasks of the first stage, one shuffle, and the publish tasks, which share the lanes.
A round of little work needs one task: this task publishes, too. Only when it finds many roots, a second action publishes them.
"""

import threading
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter, time
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from processor.counts import BATCH, Count
from processor.engine.plan.plan import Plan
from processor.engine.protocol.epochs import Epochs, Partition, committed_by, entities_of, topic_readers
from processor.engine.protocol.identity import replace_identity
from processor.engine.protocol.segments import SegmentGroup
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.events import JobEvent, Troubles
from processor.engine.rounds.operators import LiveReplays, RegistryFollower
from processor.engine.rounds.round import SMALL, LaneResult, Round, Stage, StageResult, size_of
from processor.engine.rounds.round_counts import stage_time
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import Loader
from processor.errors import StatestoreError, Stopped, StreamOutdated
from processor.job.kafka.admin import Admin
from processor.job.metrics.status import JobPhase
from processor.job.run.checkpoint import Checkpoint, check_positions, prepare_checkpoint
from processor.job.run.dead_letters import fill_account
from processor.job.run.lease import LeaseRenewal, take_over
from processor.job.run.monitor import JobMonitor, LastBatch
from processor.job.run.outages import BatchTroubles
from processor.job.run.source import OffsetRanges, in_ranges, offset_ranges, read_stream
from processor.job.run.topics import EntityMoves, SourceTopics, check_topics
from processor.job.run.worker import (
    NO_PLAN,
    ReadPieces,
    Task,
    hand_over,
    make_clients,
    pieces_of,
    publish,
    records_of,
    run_alone,
    run_stage,
)
from registry.errors import RegistryBusy, RegistryUnreachable
from registry.model import Lease, Snapshot
from registry.repository import Registry
from statestore.store import FencingToken


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFrame:
    """The records of a micro-batch: work for the write stage. `records`: the most that it has. `epochs`: of its topics."""

    frame: DataFrame
    records: int
    epochs: Epochs
    loads: bool = False
    """Whether the records go into an empty table, in bulk."""


SparkWork = BatchFrame | Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkExecutor:
    """Runs stages on a Spark session. Spark sends a worker each broadcast once."""

    spark: SparkSession
    settings: Settings
    lease: Lease
    fence: FencingToken | None = None
    """The right of the run to write to the table."""
    sent: dict[int, Any] = field(default_factory=dict)
    """The broadcasts of the open changes, by the number of the group."""
    plans: list[tuple[Plan, Any]] = field(default_factory=list)
    """The plan of the last round, with its broadcast: the plan of a thousand products would cost each task half a second."""

    def start_workers(self, letter_bytes: int | None) -> None:
        """Starts Spark's Python workers and their clients while the driver works, so that the first round need not wait for
        them. A failure shows in that round."""
        context = self.spark.sparkContext
        cores = context.defaultParallelism
        make = partial(make_clients, self.settings, letter_bytes, self.fence)
        started: Any = context.parallelize(range(cores), cores).mapPartitions(make)
        started._jrdd.countAsync()  # an action of the JVM: a Python thread would leave its connection to it open

    def run_round(
        self, stage: Stage, work: SparkWork, round_: Round, overlay: Mapping[int, SegmentGroup]
    ) -> list[LaneResult]:
        context = self.spark.sparkContext
        self._send(overlay)
        publishers = min(self.settings.lanes, context.defaultParallelism)
        task = self._task(round_, tuple(self.sent.values()), publishers, work)
        elements, read = self._distribute(work)
        if not _is_small(work):
            return _publish(elements.mapPartitions(partial(hand_over, stage=stage, read=read, task=task)), task)
        alone: RDD[Any] = elements.mapPartitions(partial(run_alone, stage=stage, read=read, task=task))
        found = alone.collect()
        published = bool(found) and isinstance(found[0], LaneResult)
        return found if published else _publish(context.parallelize(found, 1), task)

    def run_stage(self, stage: Stage, work: SparkWork, round_: Round) -> list[StageResult]:
        task = self._task(round_, (), 1, work)
        elements, read = self._distribute(work)

        def run_partition(elements: Any) -> list[StageResult]:
            return [run_stage(elements, stage, read, task)]

        return list(elements.mapPartitions(run_partition).collect())

    def _send(self, overlay: Mapping[int, SegmentGroup]) -> None:
        """Broadcasts the groups that no round has had yet, and drops those that no round needs any more."""
        for number in self.sent.keys() - overlay.keys():
            self.sent.pop(number).destroy()
        for number, group in overlay.items():
            if number not in self.sent:
                self.sent[number] = self.spark.sparkContext.broadcast(group)

    def _send_plan(self, plan: Plan) -> Any:
        """The broadcast of a plan. Drops the broadcast of another plan: the rounds between two edits have the same plan."""
        if not self.plans or self.plans[0][0] is not plan:
            for _, earlier in self.plans:
                earlier.destroy()
            self.plans[:] = [(plan, self.spark.sparkContext.broadcast(plan))]
        return self.plans[0][1]

    def _task(self, round_: Round, overlay: tuple[Any, ...], publishers: int, work: SparkWork) -> Task:
        return Task(
            facts=replace(round_, plan=NO_PLAN),
            plan=self._send_plan(round_.plan),
            settings=self.settings,
            lease=self.lease,
            overlay=overlay,
            publishers=publishers,
            fence=self.fence,
            loads=isinstance(work, BatchFrame) and work.loads,
        )

    def _distribute(self, work: SparkWork) -> tuple[RDD[Any], ReadPieces]:
        """The work as an RDD of at most as many tasks as cores, and how a task reads its elements."""
        context = self.spark.sparkContext
        tasks = 1 if _is_small(work) else context.defaultParallelism
        if isinstance(work, BatchFrame):
            read = partial(records_of, epochs=work.epochs)
            if work.loads:
                # All records of a Kafka key are in one task, in their order. Those without a key stay with their partition.
                shares = max(tasks, -(-work.records // LOAD_RECORDS))
                frame = work.frame.repartition(shares, "topic", "partition", "key")
                return frame.sortWithinPartitions("topic", "partition", "offset").rdd, read
            # A Kafka partition stays whole, in its order.
            return work.frame.rdd.coalesce(tasks), read
        return context.parallelize(work, min(tasks, len(work))), pieces_of


LOAD_RECORDS = 50_000
"""Of a task that loads: it has all of them, and the rows that they make, in memory."""


def _is_small(work: SparkWork) -> bool:
    """Whether one task does the work of the first stage."""
    return (work.records if isinstance(work, BatchFrame) else size_of(work)) <= SMALL


def _publish(handovers: RDD[Any], task: Task) -> list[LaneResult]:
    lanes = handovers.partitionBy(task.publishers, int)
    return list(lanes.mapPartitions(partial(publish, task=task)).collect())


def has_rows(driver: Driver) -> bool:
    """Whether the table has a row of an entity."""
    rows = (pk for entity in driver.plan.entities.values() for pk in entity.partitions())
    return any(driver.store.page(pk, None, 1).items for pk in rows)


@dataclass(slots=True, kw_only=True)
class CatchUp:
    """How far the job is behind. `since`: when it began to hold the products, on the job's clock; None while it publishes.
    `late`: it was behind for too long, and publishes until it has caught up. `released`: it publishes products that it held, and
    some roots remain."""

    driver: Driver
    admin: Admin
    since: float | None = None
    late: bool = False
    released: bool = False

    def begin_again(self, topics: Collection[str]) -> None:
        """Holds the products of a job that reads these topics from their beginning, if rows are stored and records wait."""
        if (
            self.since is None
            and self.driver.settings.catch_up_records
            and has_rows(self.driver)
            and any(end for topic in topics for end in self.admin.ends(topic).values())
        ):
            self._hold("a new checkpoint over stored rows")

    def look(self, batch: OffsetRanges) -> None:
        """Holds or releases the products before a batch. Asks the broker only for a batch that is half full, or while it holds
        them."""
        settings, now = self.driver.settings, self.driver.clock.now()
        records = batch.size
        full = settings.catch_up_records > 0 and records >= settings.batch_size / 2
        behind = self._behind(batch) if full or self.since is not None else 0
        if self.since is None:
            self.late = self.late and behind > 0
            self.released = self.released and self.driver.publishes
            if behind > settings.catch_up_records and not (self.late or self.released):
                self._hold(f"{behind:,} records behind", records=behind)
            return
        self.late = now - self.since >= settings.catch_up_seconds
        if behind == 0 or self.late:
            self.since, self.released = None, True
            text = f"{behind:,} records behind: all documents now"
            self.driver.report(JobEvent(what="all documents", text=text, fields={"records": behind}))
            self.driver.end_catch_up()

    def _hold(self, why: str, **fields: int) -> None:
        self.since = self.driver.clock.now()
        text = (
            f"{why}: rows first, and all documents when the job has caught up, at the latest in "
            f"{self.driver.settings.catch_up_seconds} s"
        )
        self.driver.report(JobEvent(what="rows first", text=text, fields=fields))
        self.driver.begin_catch_up()

    def _behind(self, batch: OffsetRanges) -> int:
        """The records behind the end of the batch, in the topics of the batch."""
        ends = {
            (topic, partition): end
            for topic in sorted({topic for topic, _ in batch.ranges})
            for partition, end in self.admin.ends(topic).items()
        }
        return sum(max(0, ends.get(at, end) - end) for at, end in batch.ends.items())


LAST_ROUND_SECONDS = 30.0
"""At its end, the job waits this long for a round that still runs, before it gives the lease back."""


@dataclass(slots=True, kw_only=True)
class Job:
    """A running job: its driver, the stream that brings batches, and the follower that brings versions of the registry."""

    driver: Driver
    spark: SparkSession
    registry: Registry
    admin: Admin
    lease: Lease
    renewal: LeaseRenewal
    troubles: Troubles
    """What the job waits for. They outlast a job that opens again."""
    follower: RegistryFollower | None = None
    """None: the job works by the plan of its start."""
    moves: EntityMoves | None = None
    """Of its entities to other topics."""
    replays: LiveReplays | None = None
    """Those that operators ask for; None in a run of a verb."""
    loader: Loader | None = None
    """Takes the rows of the first batch, which has all records; None in a run that does not load."""
    topics: SourceTopics = field(init=False)
    """Those that the stream reads."""
    positions: dict[Partition, int] = field(default_factory=dict)
    """Where the stream reads on in each partition."""
    left: dict[Partition, int] = field(default_factory=dict)
    """Where the stream continues with the topics that operators paused."""
    begins: dict[Partition, int] | None = None
    """Where the stream began; None until its first batch."""
    phase: JobPhase = JobPhase.STARTS
    last_batch: LastBatch | None = None
    """For the monitor."""
    monitor: JobMonitor = field(init=False)
    catch_up: CatchUp = field(init=False)
    batch_troubles: BatchTroubles = field(init=False)
    failure: Exception | None = None
    """Why the stream ends, None while it runs: StreamOutdated, Stopped, or the failure of a batch."""
    failed_work: str = "the batch"
    """The work that failed, for the message."""
    stopping: threading.Event = field(default_factory=threading.Event)
    """An operator sets it."""
    turn: threading.Lock = field(default_factory=threading.Lock)
    """Of a batch, or of the work between batches."""

    def __post_init__(self) -> None:
        self.batch_troubles = BatchTroubles(troubles=self.troubles)
        self.catch_up = CatchUp(driver=self.driver, admin=self.admin)
        self.topics = SourceTopics(
            admin=self.admin, registry=self.registry, now=self.driver.clock.now, report=self.driver.report
        )
        self.monitor = JobMonitor(self)

    @property
    def settings(self) -> Settings:
        """The job's settings."""
        return self.driver.settings

    @property
    def checkpoint(self) -> Checkpoint | None:
        """The job's checkpoint; None for a job without one."""
        path = self.settings.checkpoint
        return Checkpoint(spark=self.spark, path=path) if path else None

    @property
    def readers(self) -> dict[str, str]:
        """The topics to read, and the reader of each: without those that operators paused."""
        paused = self.snapshot.paused_topics if self.snapshot else ()
        return {topic: entity for topic, entity in self._topics.items() if topic not in paused}

    @property
    def snapshot(self) -> Snapshot | None:
        """The registry's version that the job has taken; None before the first."""
        return self.follower.snapshot if self.follower else None

    @property
    def _topics(self) -> dict[str, str]:
        """The topics of all entities, and the reader of each. An entity has none while another one has yet to leave it."""
        return topic_readers({name: e.entity.topic for name, e in self.driver.plan.entities.items()})

    def fit_checkpoint(self) -> None:
        """Fits the checkpoint, if the job has one, to the topics. Raises CheckpointError when that is impossible."""
        if self.checkpoint:
            topics = self._topics
            boundaries = self.registry.epochs(list(topics), [e for one in topics.values() for e in entities_of(one)])
            prepare_checkpoint(self.checkpoint, topics, topics.keys() - self.readers.keys(), boundaries, self.admin)
            self.check_positions()

    def check_positions(self) -> None:
        """Raises CheckpointError where a topic lacks the records that the job reads next."""
        if self.checkpoint:
            check_positions(self.checkpoint, self.admin, self._topics)

    def begin(self) -> None:
        """Takes over what earlier runs left, and the registry's version: the job is ready to stream."""
        self.start()
        fill_account(self.settings, self.registry, self.admin, self.driver.store, self.driver.report)
        self.take_version()
        self.read_positions()
        self.batch_troubles.begin()
        self.phase = JobPhase.OPEN
        self.driver.report(JobEvent(what="open", text="runs"))

    def start(self) -> None:
        """Takes over what earlier runs left."""
        take_over(self.driver, self.registry, self.lease)

    def make_moves(self) -> None:
        """Moves the entities to other topics that can move now. Call it before the stream begins."""
        plan = self.moves.make(self._committed()) if self.moves else None
        if plan is not None:
            self.driver.adopt(plan)

    def stream(self, once: bool) -> StreamingQuery:
        """Starts the stream over the topics that exist: with the records that are there now (`once`), or for good."""
        self.fit_checkpoint()
        self.phase = JobPhase.READS
        self.read_positions()
        self.begins = None
        self.topics.streamed = self.topics.present
        if not self.positions:
            self._check_empty()
            self.catch_up.begin_again(self.topics.present)
        self.answer()
        most = self.settings.batch_size if self.loader is None else None
        stream = read_stream(self.spark, self.settings, self.topics.present, most)
        writer = stream.writeStream.foreachBatch(self.on_batch)
        writer = writer.option("checkpointLocation", self.settings.checkpoint)
        return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="0 seconds")).start()

    def _check_empty(self) -> None:
        """Raises StatestoreError for a load into a table that has rows. Where Spark has planned the first batch, they are those
        of a load that broke off at its end, and the batch finds each of them."""
        if self.loader is not None and has_rows(self.driver):
            raise StatestoreError(
                f"table {self.settings.table} has rows, and `load` fills an empty one: give another --table, or drop this one; "
                "or start `statestore run`, which writes only the rows that differ"
            )

    def answer(self) -> None:
        """Tells the driver where the topics of the stream end, if it asks for it."""
        if self.topics.streamed and self.driver.needs_topic_ends:
            marks = {topic: self.admin.watermarks(topic) for topic in self.topics.streamed}
            ends = {(topic, at): end for topic, of in marks.items() for at, (begin, end) in of.items() if begin < end}
            self.driver.note_topic_ends(ends, self.positions)

    def read_positions(self) -> None:
        """Takes from the checkpoint, if the job has one, where the next batch begins, and where paused topics continue."""
        paused = self._topics.keys() - self.readers.keys()
        left = {at: offset for at, offset in (self.left | self.positions).items() if at[0] in paused}
        if self.checkpoint:
            left |= {(topic, p): offset for topic in paused for p, offset in self.checkpoint.paused_at(topic).items()}
        self.left, self.positions = left, self._committed()

    def _committed(self) -> dict[Partition, int]:
        return self.checkpoint.committed() if self.checkpoint else {}

    @property
    def paused(self) -> bool:
        """Whether an operator paused all work: the job reads no batches."""
        return self.snapshot is not None and self.snapshot.paused

    @property
    def waits(self) -> bool:
        """Whether there is nothing to stream: the job is paused, or each of its topics is, or none exists."""
        return self.paused or not self.topics.present

    @property
    def outdated(self) -> bool:
        """Whether the stream must end: it reads other topics than it should, or the job is paused."""
        moves = self.moves is not None and self.moves.look(self.positions)
        return self.paused or moves or self.topics.outdated(self.readers)

    @property
    def work(self) -> int | None:
        """The number of the round that the job works at, or begins with; None while it has nothing to do."""
        works = not self.rests and (self.turn.locked() or self.phase is JobPhase.STARTS)
        return self.driver.rounds.number if works else None

    @property
    def rests(self) -> bool:
        """Whether the job does nothing more."""
        return self.phase in (JobPhase.RESTS, JobPhase.ENDED)

    @property
    def unsettled(self) -> bool:
        """Whether background work remains, now or later, without that of roots that wait at gates."""
        follower, replays = self.follower, None if self.paused else self.replays
        return self.driver.unsettled or bool(follower and follower.pending) or bool(replays and replays.pending)

    @property
    def pending(self) -> bool:
        """Whether background work remains, now or later."""
        return self.unsettled or self.driver.pending

    def take_version(self) -> None:
        """Takes the registry's version, once for each micro-batch and between them."""
        if self.follower is not None:
            self.follower.turn()

    def take_requests(self) -> None:
        """Takes the next step of a replay that operators ask for, if there is one. A paused job takes none."""
        if self.replays is not None and not self.paused:
            self.replays.turn()

    def on_batch(self, frame: DataFrame, batch: int) -> None:
        """Processes a micro-batch. An error here fails the batch, and the job keeps it as the reason."""
        with self.turn:
            try:
                self._check_stream()
                self.take_version()
                self._check_stream()
                self.take_requests()
                ranges = offset_ranges(self.spark, self.settings.checkpoint, batch)
                self.catch_up.look(ranges)
                self.positions = ranges.starts | self.positions
                before, began = self.driver.tally.copy(), perf_counter()
                pieces = list(ranges.slices(self.batch_troubles.most_records(self.settings.batch_size)))
                if self.loader is not None and batch == 0 and not has_rows(self.driver):
                    self._load(frame, ranges, self.loader)
                    pieces = []
                for piece in pieces:
                    self._process(frame if len(pieces) == 1 else in_ranges(frame, piece), piece, batch)
                    if not self.stopping.is_set():
                        self.driver.background_work()
                self.note_batch(batch, ranges, self.driver.tally - before)
                self.driver.tally.update(Counter({Count.BATCHES: 1}) + stage_time(BATCH, began))
            except Exception as error:
                self.failure = error
                raise

    def ends_stream(self) -> bool:
        """Notes why the stream must end, between two batches, and returns whether it must. A batch that begins later ends for
        the same reason."""
        if self.failure is None and self.turn.acquire(blocking=False):
            try:
                self._check_stream()
            except (Stopped, StreamOutdated) as reason:
                self.failure = reason
            finally:
                self.turn.release()
        return isinstance(self.failure, Stopped | StreamOutdated)

    def _check_stream(self) -> None:
        """Raises the reason why the stream ends, if it does."""
        if self.failure is not None:
            raise self.failure
        if self.stopping.is_set() or self.rests:
            raise Stopped("stopped on request")
        if self.outdated:
            raise StreamOutdated("the stream begins again")

    def note_batch(self, batch: int, ranges: OffsetRanges, tally: Mapping[str, int]) -> None:
        """Notes the end of a batch, for the monitor."""
        self.driver.note_read(self.positions)
        self.answer()
        self.last_batch = LastBatch(
            number=batch, at=time(), records=tally[Count.READ], documents=tally[Count.PUBLISHED]
        )
        self.batch_troubles.note(tally)

    def idle(self) -> None:
        """Background work while no batch runs. A failure ends the stream, like one of a batch."""
        if self.turn.acquire(blocking=False):
            try:
                self.driver.background_work()
                self.answer()
                self.take_version()
                self.take_requests()
                if self.failure is None:  # else a batch has failed, and the stream ends
                    self.batch_troubles.note_calm()
            except Exception:
                self.failed_work = "the work between batches"
                raise
            finally:
                self.turn.release()

    def rest(self) -> None:
        """Waits for the round that still runs, and closes the store. The job does nothing more. It keeps the lease, and its
        monitor still shows what waits."""
        self.phase = JobPhase.RESTS
        if self.turn.acquire(timeout=LAST_ROUND_SECONDS):
            self.turn.release()
            self.driver.transactions.close()
            self.driver.store.close()
            if self.loader is not None:
                self.loader.close()

    def end(self) -> None:
        """Rests, ends the monitor and the renewal, and gives the lease back. A registry that does not answer lets it expire."""
        self.rest()
        self.phase = JobPhase.ENDED
        self.monitor.stop()
        self.renewal.stop()
        with suppress(RegistryUnreachable, RegistryBusy):
            self.registry.give_back(self.lease)

    def _load(self, frame: DataFrame, ranges: OffsetRanges, loader: Loader) -> None:
        """Loads the rows of the first batch in bulk. No document goes out before all rows are there, and then each once."""
        began, fields = perf_counter(), {"records": ranges.size}
        text = f"loads {ranges.size:,} records into an empty table: no document goes out before all rows are there"
        self.driver.report(JobEvent(what="rows first", text=text, fields=fields))
        self.driver.begin_catch_up()
        loader.begin()
        self._process(frame, ranges, 0, loads=True)
        self.driver.rounds.check_lease()
        store, identity = self.driver.store, self.registry.binding().identity
        store.write(replace_identity(identity)._replace(remove=("created",)))  # the loader may make the table again
        loader.finish()
        store.create(self.settings.slots)
        store.write(replace_identity(identity, store.created))
        text = f"{ranges.size:,} records loaded: all documents now"
        self.driver.report(JobEvent(what="loaded", text=text, fields=fields, seconds=perf_counter() - began))
        self.driver.end_catch_up()

    def _process(self, frame: DataFrame, piece: OffsetRanges, batch: int, *, loads: bool = False) -> None:
        """Processes a piece of a batch. From then on the job has read it: a later piece counts it as committed."""
        self.driver.rounds.check_lease()
        if self.moves and self.moves.is_outdated():
            raise StreamOutdated("an operator moved an entity to another topic: the stream begins again")
        epochs = check_topics(self.registry, self.admin, piece.ranges, self.readers)
        self.driver.rounds.partitions, self.driver.rounds.incarnations = epochs.partitions(), epochs.incarnations
        work = BatchFrame(frame=frame, records=piece.size, epochs=epochs, loads=loads)
        if self.begins is None:
            self.begins = self.checkpoint.begins() if self.checkpoint else {}
        self.driver.process_batch(work, committed_by(epochs, self.begins, self.positions), batch)
        self.positions = self.positions | piece.ends
