"""Simulates one job from its first start until no work remains. One seed gives one run.

The driver is the real one (`rounds.driver`); only Spark, the clients and the clock are doubles. This module does the
work of Spark's streaming query: it plans a batch in the checkpoint, gives the batch to the job, and commits the batch. After a
failure it starts the job again with the same plan, unless the checkpoint is lost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from processor.engine.plan.plan import Plan
from processor.engine.protocol.epochs import Epochs, committed_by
from processor.engine.protocol.ledger import Run
from processor.engine.protocol.segments import open_items
from processor.engine.protocol.walks import PARTITION as WALKS
from processor.engine.rounds.driver import make_driver
from processor.engine.rounds.events import Troubles, no_report
from processor.environment.settings.settings import Settings
from processor.errors import AccountError
from processor.job.run.job import BatchFrame, Job, SparkExecutor
from processor.job.run.lease import lease_check
from processor.job.run.source import OffsetRanges
from processor.language.product.product import Product
from processor.values.record import Message, Record
from tests.simulator.actor import Actor, Crash, JobFailed, RegistryClient, Stuck, TableClient
from tests.simulator.batches import draw_ends, draw_tasks
from tests.simulator.check import find_problem
from tests.simulator.doubles import FixedReads, WorldClock, connect, copy_job
from tests.simulator.history import Event, Partition, Tables, partition_of, tables_after
from tests.simulator.shapes import Shape
from tests.simulator.spark import Frame, Session
from tests.simulator.spark_checkpoint import Checkpoint
from tests.simulator.world import EXPECTED, World
from tests.simulator.worlds import AIMS

DAY = 86_400.0


class WrongAtRest(Exception):
    """A last document is wrong, although the job has nothing to do until the source writes again."""


@dataclass(slots=True, kw_only=True)
class Simulation:
    """A run of one seed. `logs`: the records of each partition. `available`: how many of them the source has produced so far.
    `starts`: how often the job started. `tally`: the counts of the jobs that have ended. `problem`: what was wrong, None if
    nothing. `facts`: how often something happened, by name. `staleness`: the longest time in seconds from the write of a row
    to a document that shows it. `epochs`: of the records. `firsts`: the first offset of a partition, where it is not 0."""

    seed: int
    shape: Shape
    events: Sequence[Event]
    world: World
    settings: Settings
    logs: dict[Partition, list[Record]]
    available: dict[Partition, int]
    checkpoint: Checkpoint
    job: Job | None = None
    starts: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    problem: str | None = None
    facts: Counter[str] = field(default_factory=Counter)
    staleness: float = 0.0
    epochs: Epochs = field(default_factory=lambda: Epochs(steps={}))
    firsts: dict[Partition, int] = field(default_factory=dict)

    @property
    def clock(self) -> int:
        """The clock that the last documents must have, in seconds since 1970."""
        return 0

    @staticmethod
    def change_events(seed: int, events: list[Event]) -> list[Event]:
        """The events of a run of this class, made from the drawn ones."""
        return events

    @staticmethod
    def change_logs(seed: int, logs: dict[Partition, list[Record]]) -> dict[Partition, list[Record]]:
        """The logs of a run of this class, made from those of the history."""
        return logs

    def source_order(self) -> Iterable[Partition]:
        """The partition of each record, in the order of the source."""
        return (partition_of(event, self.world.conditions.partitions) for event in self.events)

    def source_tables(self) -> Tables:
        """The source's tables after the run. A dead letter changes nothing."""
        return tables_after(self.shape, self.events)

    def start_plan(self) -> Plan:
        """The plan of the next start."""
        return self.shape.plan

    def plan_now(self) -> Plan:
        """The plan that the job applies now."""
        return self.shape.plan

    def product_of(self, message: Message) -> Product:
        """The product, as the message shows it."""
        return self.shape.definitions.products[message.topic]

    def is_left(self, message: Message) -> bool:
        """Whether a last document stays as it was when its product went, or got another topic."""
        return False

    @staticmethod
    def is_broken(record: Record) -> bool:
        """Whether a record becomes a dead letter."""
        return record.value == b"{"

    @staticmethod
    def is_repairable(record: Record) -> bool:
        """Whether a dead letter can be repaired and replayed."""
        return False

    def records(self) -> Iterable[Record]:
        """The records that the topics have at the end."""
        return (record for partition, log in self.logs.items() for record in log[self.firsts.get(partition, 0) :])

    def lost_records(self) -> Iterable[Record]:
        """The records that topics had and have no more."""
        return ()

    def is_left_out(self, record: Record) -> bool:
        """Whether a record that breaks its contract need not become a dead letter."""
        return False

    def run(self) -> None:
        """Runs the job until no work remains; sets `problem`."""
        try:
            while self._act_or_fail():
                pass
            self.problem = find_problem(self)
            if self.problem is None:
                self._start_once_more()
        except Stuck:
            self.problem = "stuck: the run does not end"
        except WrongAtRest as wrong:
            self.problem = f"{wrong}, while the job rests"
        except AccountError as error:
            self.problem = f"{type(error).__name__}: {error}"

    def _act_or_fail(self) -> bool:
        """Does the next action. After a failure the job has ended, and perhaps the checkpoint is lost. Returns False when no work
        remains."""
        try:
            return self._act()
        except Crash:
            self.world.log("the driver is gone")
        except (*EXPECTED, JobFailed) as error:
            self.world.log(f"the job failed: {error!r}")
            self.facts[f"failed: {type(error).__name__}"] += 1
        self.end_job()
        r = self.world.rng
        if r.random() < self.world.conditions.checkpoint_loss_chance and not self._markers_expired:
            keeps = r.choice((0.0, 0.5, 0.9))
            offsets = {
                p: o if r.random() < keeps else r.randint(self.firsts.get(p, 0), o)
                for p, o in self.checkpoint.offsets.items()
            }
            self.world.log(f"the checkpoint is lost: again from {offsets}")
            self.world.faults["checkpoint lost"] += 1
            self.checkpoint = Checkpoint(offsets=offsets)
        return True

    def total_tally(self) -> Counter[str]:
        """The counts of all jobs, including the present one."""
        return self.tally + (self.job.driver.tally if self.job else Counter())

    @property
    def has_input(self) -> bool:
        """Whether a batch is planned, or records remain to read."""
        checkpoint = self.checkpoint
        return bool(checkpoint.planned_ends) or any(o < self.available[p] for p, o in checkpoint.offsets.items())

    @property
    def _markers_expired(self) -> bool:
        """Whether delete markers may have expired. From then on no older record is replayed."""
        return bool(self.facts["markers expired"])

    def _act(self) -> bool:
        """Does the next action; returns False when no work remains."""
        world, job = self.world, self.job
        if job is None:
            self._start()
            return True
        changes = job.driver.progress.open_changes
        wait_chance = 0.0
        if changes.due(world.now + world.skew):
            wait_chance = 0.3
        elif changes.held:
            wait_chance = world.conditions.settle_first_chance
        if self.has_input and world.rng.random() >= wait_chance:
            self._run_batch(job)
        elif job.pending:
            self._run_background_work(job)
        elif world.zombies:
            world.finish_zombies()
        elif world.broker.late_commits:
            world.now += 10
            world.broker.finish_late_commits()
        elif self.available != (ends := {p: len(log) for p, log in self.logs.items()}):
            world.now += 2 * DAY
            self.facts["markers expired"] += 1 + world.table.expire(lambda: world.rng.random() < 0.7)
            world.now += 100
            self.available = ends
        else:
            return False
        return True

    def _run_background_work(self, job: Job) -> None:
        """Does the work between batches; first time passes until some work is due."""
        due = self.next_work(job)
        if due is not None:
            self.world.now = max(self.world.now, due)
        offsets = self.checkpoint.offsets

        def body(job: Job) -> None:
            job.idle()
            self._answer(job, offsets)

        self._run_driver(job, body)

    def next_work(self, job: Job) -> float | None:
        """When the job has work again; None where this does not depend on the time."""
        due = job.driver.next_due()
        return None if due is None else due - self.world.skew + 1e-6

    def _answer(self, job: Job, positions: Mapping[Partition, int]) -> None:
        """Tells the driver where the topics end, if it asks for it."""
        if job.driver.needs_topic_ends:
            job.driver.note_topic_ends(self.world.actor.remember(self.available.copy), positions)

    def _start(self) -> None:
        """Starts the job: it takes the lease, fences earlier runs, reloads the open changes, and waits W."""
        self.starts += 1
        world = self.world
        world.skew = world.rng.uniform(-world.conditions.max_clock_skew, world.conditions.max_clock_skew)
        lease = world.registry.take(self.settings.lanes)
        actor = Actor(world=world, name=f"job {lease.generation}")
        registry: Any = RegistryClient(actor)
        spark: Any = Session(world)
        store: Any = TableClient(actor)
        admin: Any = None
        renewal: Any = None
        with world.acting(actor):
            if world.conditions.consistent:
                actor.request("fence", lambda _: world.fence.take(lease.generation))
            driver = make_driver(
                settings=self.settings,
                plan=self.start_plan(),
                store=store,
                executor=SparkExecutor(spark=spark, settings=self.settings, lease=lease),
                clock=WorldClock(world),
                run=Run(number=lease.generation),
                check_lease=lease_check(registry, lease),
            )
            driver.rounds.row_reads = FixedReads(reads=world.conditions.reads_first, world=world)
            job = Job(
                driver=driver,
                spark=spark,
                registry=registry,
                admin=admin,
                lease=lease,
                renewal=renewal,
                troubles=Troubles(no_report),
            )
            job.start()
            driver.note_topic_ends(self.available, self.checkpoint.offsets)
        world.broker.newest_run = lease.generation
        self.job = job
        if world.conditions.truncate_chance:  # `adopt` loads the walks, but this plan needs no other ones
            self._run_driver(job, lambda job: job.driver.progress.walks.load(job.driver.store.partition(WALKS)))

    def end_job(self) -> None:
        """Ends the job, and adds its counts to `tally`."""
        if self.job is not None:
            self.tally += self.job.driver.tally
        self.job = None

    def _run_batch(self, job: Job) -> None:
        """Plans a micro-batch, lets the job process it, and commits it."""
        world, checkpoint = self.world, self.checkpoint
        offsets = checkpoint.offsets
        while checkpoint.planned_ends is None:
            ends = draw_ends(self, offsets)
            if ends != offsets:
                checkpoint.planned_ends = ends
        planned = checkpoint.planned_ends
        batch = OffsetRanges(ranges={p: (offsets[p], end) for p, end in planned.items() if end > offsets[p]})
        slices = [(ranges, draw_tasks(self, ranges)) for ranges in batch.slices(world.conditions.slice_records)]
        number = checkpoint.batch
        world.log(f"batch {number}: {dict(batch.ranges)}")

        epochs = self.epochs

        def body(job: Job) -> None:
            job.take_version()
            job.take_requests()
            read = dict(offsets)
            for ranges, partitions in slices:
                frame: Any = Frame(world, partitions)
                work = BatchFrame(frame=frame, records=sum(map(len, partitions)), epochs=epochs)
                job.driver.rounds.incarnations = epochs.incarnations
                job.driver.process_batch(work, committed_by(epochs, checkpoint.begins, read), number)
                read |= ranges.ends
                job.driver.background_work()
            job.driver.note_read(planned)
            self._answer(job, planned)

        self._run_driver(job, body)
        world.end_instant("checkpoint")
        checkpoint.offsets, checkpoint.planned_ends = planned, None
        checkpoint.batch += 1

    def _run_driver(self, job: Job, body: Callable[[Job], None]) -> None:
        """Lets the job's driver do something, as an actor. If the driver crashes, it may live on as a zombie."""
        world = self.world
        before = copy_job(job)
        actor = Actor(world=world, name=f"job {job.lease.generation}")
        connect(job, actor)
        try:
            with world.acting(actor):
                body(job)
        except Crash:
            actor.dies = False

            def run_again() -> None:
                copy = copy_job(before)
                connect(copy, world.actor)
                body(copy)

            world.give_up(actor.name, run_again, actor.answers, is_task=False)
            raise

    def _start_once_more(self) -> None:
        """Starts the job again, without faults. It must finish the open changes that zombies left."""
        self.end_job()
        self.world.faults_left, self.world.instants = 0, Counter(dict.fromkeys(AIMS, 1_000_000))
        while self._act_or_fail():
            pass
        if list(open_items(self.world.table)):
            self.problem = "open changes are still in the table after one more start"
        self.problem = self.problem or find_problem(self)
