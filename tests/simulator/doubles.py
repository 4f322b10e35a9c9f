"""Doubles for the clients and the clock of the job. Each client sends its requests through the actor that acts now.

Only this module knows which names of the product the simulator replaces.
"""

import copy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import processor.engine.plan.row_image
import processor.engine.protocol.open_changes
import processor.engine.protocol.segments
import processor.engine.protocol.ticks
import processor.job.run.job
import processor.job.run.lease
import processor.job.run.worker
from processor.engine.plan.plan import Plan
from processor.engine.rounds.round_counts import RowReads, UpdateCounts
from processor.environment.settings.settings import Settings
from processor.job.run.job import Job
from processor.job.run.lease import lease_check
from processor.job.run.worker import Clients, transactional_id
from statestore.values import WORTHWHILE
from tests.simulator.actor import Actor, DeadLetterOutbox, ProducerClient, RegistryClient, TableClient
from tests.simulator.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedReads(RowReads):
    """A choice that no measured share changes. `reads`: a task reads each row before it writes it; None draws this for each
    entity and round."""

    reads: bool | None
    world: World

    def after(self, parts: Iterable[Mapping[str, UpdateCounts]]) -> "FixedReads":
        return self

    def entities(self, plan: Plan) -> frozenset[str]:
        if self.reads is None:
            rng = self.world.rng
            return self.world.actor.remember(lambda: frozenset(e for e in sorted(plan.entities) if rng.random() < 0.5))
        return frozenset(plan.entities) if self.reads else frozenset()


def copy_job(job: Job) -> Job:
    """A job with a copy of all that its driver changes."""
    driver, progress = copy.copy(job.driver), copy.copy(job.driver.progress)
    executor: Any = driver.rounds.executor
    executor = replace(executor, sent=dict(executor.sent))
    driver.progress, driver.rounds = progress, replace(driver.rounds, progress=progress, executor=executor)
    changes = progress.open_changes = copy.copy(progress.open_changes)
    changes.held = {name: copy.copy(held) for name, held in changes.held.items()}
    changes.groups, changes._new, changes._users = dict(changes.groups), [*changes._new], Counter(changes._users)
    progress.fan_outs = replace(progress.fan_outs, waiting=dict(progress.fan_outs.waiting))
    backlog = progress.backlog
    progress.backlog = replace(
        backlog, stopped=dict(backlog.stopped), waiting=dict(backlog.waiting), own=set(backlog.own)
    )
    walks = progress.walks
    progress.walks = replace(
        walks,
        stopped=progress.backlog.stopped.keys(),
        walks=dict(walks.walks),
        stuck=dict(walks.stuck),
        shown_at=dict(walks.shown_at),
        moved=set(walks.moved),
    )
    progress.held = copy.deepcopy(progress.held)
    progress.ticks = replace(progress.ticks, waiting=dict(progress.ticks.waiting))
    driver.tally = Counter(driver.tally)
    progress.unfit = dict(progress.unfit)
    follower = job.follower and replace(job.follower, driver=driver)
    replays = job.replays and replace(job.replays, driver=driver)
    return replace(job, driver=driver, follower=follower, replays=replays)


def connect(job: Job, actor: Actor) -> None:
    """Gives the job the clients of an actor."""
    registry: Any = RegistryClient(actor)
    job.registry = registry
    if job.follower is not None:
        job.follower.registry = registry
    if job.replays is not None:
        job.replays.requests = registry
    store: Any = TableClient(actor)
    job.driver.progress.store = store
    job.driver.rounds.check_lease = lease_check(registry, job.lease)


@dataclass(frozen=True, slots=True)
class WorldClock:
    """The clock of the present job: the world's time, with the skew of the job's machine."""

    world: World

    def now(self) -> float:
        world = self.world
        if not world.actors:  # the run asks, not an actor
            return world.now + world.skew
        return world.actor.remember(lambda: world.now + world.skew)

    def date(self) -> float:
        return self.now()

    def sleep(self, seconds: float) -> None:
        world = self.world
        world.actor.remember(lambda: setattr(world, "now", world.now + seconds))


@contextmanager
def doubles(world: World) -> Iterator[None]:
    """Replaces the clients of the product by doubles of this world, inside the block."""

    def clients(_: Settings, __: int | None, ___: object) -> Clients:
        actor = world.actor
        store: Any = TableClient(actor)
        registry: Any = RegistryClient(actor)
        rejects: Any = DeadLetterOutbox(actor)
        return Clients(store=store, rejects=rejects, registry=registry)

    def producer(_: str, __: object, name: str, **___: int) -> ProducerClient:
        return ProducerClient(world.actor, name)

    def fence(settings: Settings, lanes: int) -> None:
        for lane in range(lanes):
            producer("", {}, transactional_id(settings, lane))

    replaced: list[tuple[Any, str, Any]] = [
        (processor.job.run.worker, "clients", clients),
        (processor.job.run.worker, "TransactionalOutbox", producer),
        (processor.job.run.lease, "fence_producers", fence),
        (processor.job.run.job, "SMALL", world.conditions.small_round),
        (processor.job.run.worker, "SMALL", world.conditions.small_round),
        (processor.engine.plan.row_image, "WORTHWHILE", 0 if world.conditions.packs else WORTHWHILE),
        (
            processor.engine.protocol.segments,
            "PARTITIONS",
            ("OPEN#00", "OPEN#01"),
        ),  # so that a start takes few requests
        (processor.engine.protocol.ticks, "BUCKET_SECONDS", 20 if world.conditions.batch_records < 4 else 500),
        (processor.engine.protocol.ticks, "SHARDS", 2),
        (processor.engine.protocol.ticks, "ROOTS_PER_ROUND", 3),
        (processor.engine.protocol.open_changes, "SMALL_GROUP", 2),  # so that small histories have several groups
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, double in replaced:
        setattr(module, name, double)
    try:
        yield
    finally:
        for module, name, original in before:
            setattr(module, name, original)
