"""One seed, one run: a job's life from its first start until everything is worked off, on `processor.rounds` itself.

Only Spark, the clients and the clock are doubles. What Spark's streaming query does stands here: it plans a batch in its
checkpoint, gives it to the job, commits it, and starts anew after a failure, from the same plan unless the checkpoint is lost.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from processor.errors import AccountError
from processor.job import Job
from processor.model.change import Record
from processor.model.open_changes import PARTITION
from processor.rounds import Rounds
from processor.settings import Settings
from processor.source import Extent
from tests.simulator import history, plots, temper
from tests.simulator.check import verdict
from tests.simulator.doubles import copied, doubles, speak
from tests.simulator.history import Event, Partition
from tests.simulator.line import Crash, Line, RegistryClient, TableClient
from tests.simulator.shapes import Shape, shape_of
from tests.simulator.spark import Frame, Session
from tests.simulator.temper import S, W
from tests.simulator.world import EXPECTED, JobFailed, Stuck, World

DAY = 86_400.0


@dataclass(slots=True, kw_only=True)
class Checkpoint:
    """Spark's checkpoint: where each partition stands, and the batch that was planned, with its pieces."""

    pos: dict[Partition, int]
    number: int = 0
    plan: dict[Partition, int] | None = None


@dataclass(slots=True, kw_only=True)
class Simulation:
    """A run of one seed. `verdict`: what was wrong, None if nothing. `tally`: what the jobs did that have ended."""

    seed: int
    shape: Shape
    events: Sequence[Event]
    world: World
    settings: Settings
    logs: Mapping[Partition, list[Record]]
    limit: dict[Partition, int]
    checkpoint: Checkpoint
    job: Job | None = None
    starts: int = 0
    tally: Counter[str] = field(default_factory=Counter)
    verdict: str | None = None
    facts: Counter[str] = field(default_factory=Counter)
    staleness: float = 0.0

    @staticmethod
    def history(seed: int, events: list[Event]) -> list[Event]:
        """What becomes of the events that were drawn, in a run of this kind."""
        return events

    @staticmethod
    def mendable(record: Record) -> bool:
        """Whether a record is a dead letter only until it is replayed."""
        return False

    def run(self) -> None:
        """Lives the whole life; sets `verdict`."""
        try:
            while self._once():
                pass
            self.verdict = verdict(self)
            if self.verdict is None:
                self._last_start()
        except Stuck:
            self.verdict = "stuck: it does not end"
        except AccountError as error:
            self.verdict = f"{type(error).__name__}: {error}"

    def _once(self) -> bool:
        """One thing after the other; False when all is done."""
        try:
            return self._act()
        except Crash:
            self.world.say("the driver is gone")
        except (*EXPECTED, JobFailed) as error:
            self.world.say(f"the job failed: {error!r}")
            self.facts[f"failed: {type(error).__name__}"] += 1
        self.end_job()
        r = self.world.rng
        if r.random() < self.world.temper.lost_checkpoint and not self._swept:
            back = r.choice((0.0, 0.5, 0.9))
            pos = {p: o if r.random() < back else r.randint(0, o) for p, o in self.checkpoint.pos.items()}
            self.world.say(f"the checkpoint is lost: again from {pos}")
            self.world.faults["checkpoint lost"] += 1
            self.checkpoint = Checkpoint(pos=pos)
        return True

    def done(self) -> Counter[str]:
        """What all jobs did, the living one included."""
        return self.tally + (self.job.rounds.tally if self.job else Counter())

    @property
    def _swept(self) -> bool:
        """Whether delete markers may have expired: then nothing from before is replayed."""
        return bool(self.facts["swept"])

    def _act(self) -> bool:
        world, job = self.world, self.job
        if job is None:
            self._start()
            return True
        opened = job.rounds.open
        more = self.checkpoint.plan or any(o < self.limit[p] for p, o in self.checkpoint.pos.items())
        waits = 0.3 if opened.due(world.now + world.skew) else world.temper.pause if opened.entries else 0.0
        if more and world.rng.random() >= waits:
            self._batch(job)
        elif job.rounds.pending:
            self._idle(job)
        elif world.zombies:
            world.bury()
        elif world.broker.late:
            world.now += 10
            world.broker.tick()
        elif self.limit != (ends := {p: len(log) for p, log in self.logs.items()}):
            world.now += 2 * DAY
            self.facts["swept"] += 1 + world.table.expire(lambda: world.rng.random() < 0.7)
            world.now += 100
            self.limit = ends
        else:
            return False
        return True

    def _idle(self, job: Job) -> None:
        """Work between batches; time passes until there is some."""
        due = None if job.rounds.fan_outs.held else job.rounds.open.next_due()
        if due is not None:
            self.world.now = max(self.world.now, due - self.world.skew + 1e-6)
        self._turn(job, Job.idle)

    def _start(self) -> None:
        """A new run of the job: takes the lease, fences, reloads, waits."""
        self.starts += 1
        world = self.world
        world.skew = world.rng.uniform(-world.temper.apart, world.temper.apart)
        lease = world.registry.take(self.settings.publish_slots)
        line = Line(world=world, name=f"job {lease.generation}")
        registry: Any = RegistryClient(line)
        spark: Any = Session(world)
        admin: Any = None
        with world.on(line):
            rounds = Rounds(
                settings=self.settings,
                plan=self.shape.plan,
                registry=registry,
                store=TableClient(line),
                admin=admin,
                lease=lease,
                spark=spark,
                report=lambda _, __: None,
            )
            job = Job(rounds=rounds)
            job.start()
        world.broker.run = lease.generation
        self.job = job

    def end_job(self) -> None:
        if self.job is not None:
            self.tally += self.job.rounds.tally
        self.job = None

    def _batch(self, job: Job) -> None:
        """One micro-batch: planned, done, committed."""
        world, at = self.world, self.checkpoint
        while at.plan is None:
            ends = self._next_ends(at.pos)
            if ends != at.pos:
                at.plan = ends
        extent = Extent(ranges={p: (at.pos[p], end) for p, end in at.plan.items() if end > at.pos[p]})
        pieces = [(piece, self._partitions(piece)) for piece in extent.slices(world.temper.pieces)]
        number = at.number
        world.say(f"batch {number}: {dict(extent.ranges)}")

        def body(job: Job) -> None:
            for piece, partitions in pieces:
                frame: Any = Frame(world, partitions)
                job.rounds.live(frame, number, piece)
                job.rounds.between()

        self._turn(job, body)
        at.pos, at.plan = at.plan, None
        at.number += 1

    def _next_ends(self, pos: Mapping[Partition, int]) -> dict[Partition, int]:
        """Where the next batch ends in each partition."""
        r, most = self.world.rng, self.world.temper.batch
        if not self.world.temper.in_order:
            return {p: min(self.limit[p], o + r.randint(0, most)) for p, o in pos.items()}
        ends, seen, room = dict(pos), Counter[Partition](), r.randint(1, most)
        for event in self.events:
            p = history.partition_of(event, self.world.temper.partitions)
            seen[p] += 1
            if pos[p] < seen[p] <= self.limit[p] and room:
                ends[p], room = seen[p], room - 1
        return ends

    def _partitions(self, piece: Extent) -> list[list[Record]]:
        """The piece's records by Spark partition: a Kafka partition is whole in one of them."""
        tasks: dict[int, list[Record]] = {}
        for i, (p, (start, end)) in enumerate(sorted(piece.ranges.items())):
            task = i if self.world.rng.random() < 0.5 else 0
            tasks.setdefault(task, []).extend(self.logs[p][start:end])
        return list(tasks.values())

    def _turn(self, job: Job, body: Callable[[Job], None]) -> None:
        """Something that the job does; when it dies of it, what it was may live on."""
        world = self.world
        before = copied(job)
        line = Line(world=world, name=f"job {job.rounds.lease.generation}")
        speak(job, line)
        try:
            with world.on(line):
                body(job)
        except Crash:
            line.doomed = False

            def again() -> None:
                mine = copied(before)
                speak(mine, world.line)
                body(mine)

            world.lose(line.name, again, line.answers, task=False)
            raise

    def _last_start(self) -> None:
        """What zombies left among the open changes, the next start works off."""
        self.end_job()
        self.world.left = 0
        while self._once():
            pass
        if self.world.table.partition(PARTITION):
            self.verdict = "open changes are left in the table after one more start"
        self.verdict = self.verdict or verdict(self)


def draw(seed: int, boost: Mapping[str, Any]) -> tuple[Shape, temper.Temper, list[Event]]:
    """The world and the history of a seed."""
    rng = Random(f"{seed} history")
    drawn = temper.draw(rng, boost)
    shape = shape_of(drawn.shape)
    events = plots.events_of(shape, drawn.plot) if drawn.plot else history.draw(rng, shape, drawn)
    return shape, drawn, events


def simulate(
    seed: int,
    *,
    boost: Mapping[str, Any] | None = None,
    keep: Sequence[int] | None = None,
    trace: bool = False,
    without: Callable[[], AbstractContextManager[None]] = nullcontext,
    kind: type[Simulation] = Simulation,
) -> Simulation:
    """One run. `keep`: the events to keep, by their place in the history, all of them without it. `without`: takes a protection
    away for the time of the run."""
    shape, drawn, events = draw(seed, boost or {})
    events = kind.history(seed, events)
    if keep is not None:
        events = [events[i] for i in keep]
    world = World(rng=Random(f"{seed} world"), temper=drawn, slots=shape.slots, trace=[] if trace else None)
    logs = history.topics_of(shape, events, drawn.partitions)
    first = history.topics_of(shape, [e for e in events if not e.late], drawn.partitions)
    settings = replace(
        Settings(),
        wait_seconds=W,
        settle_seconds=S,
        publish_slots=drawn.publish_slots,
        marker_days=1,
        slots=shape.slots,
        fan_out_page=drawn.page,
    )
    simulation = kind(
        seed=seed,
        shape=shape,
        events=events,
        world=world,
        settings=settings,
        logs=logs,
        limit={p: len(first.get(p, ())) for p in logs},
        checkpoint=Checkpoint(pos=dict.fromkeys(logs, 0)),
    )
    with doubles(world), without():
        simulation.run()
    return simulation
