"""The tasks of a round, as Spark's Python workers run them over real clients.

Only plain data crosses to a worker. A worker makes its clients once, after the fork. It makes a new
producer for each attempt of a lane, because a new producer fences the earlier ones.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from typing import Any

from processor.errors import TransactionTimedOut
from processor.job.kafka.outbox import KafkaOutbox, TransactionalOutbox
from processor.job.lease import lease_lost
from processor.job.open_registry import open_registry
from processor.plan.touch import Root
from processor.progress.epochs import Epochs
from processor.progress.open_changes import OpenChange, overlay_of
from processor.progress.overlay import WorkerOverlay
from processor.records.record import Record
from processor.rounds.publish_part import lane_of, publish_lane
from processor.rounds.round import LaneResult, Part, PartResult, Round
from processor.rounds.step_runner import StepRunner, tune_garbage_collector
from processor.settings import Settings
from registry.model import Lease
from registry.repository import Registry
from statestore.dynamodb import DynamoStore

Read = Callable[[Iterable[Any]], Iterable[Any]]
BATCH_BYTES = 1_000_000
"""The most bytes that a producer of dead letters sends as one batch: librdkafka's default."""
"""Turns the elements of a Spark partition into pieces of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The data that a task gets: the round, and how to reach the outside. `overlay`: the driver's overlay, as a
    broadcast; None for a part that reads without overlay."""

    round: Round
    settings: Settings
    lease: Lease
    overlay: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """The data that a task of stage 1 hands to a lane: its roots, the changes that the task opened, and, to lane 0
    only, the task's result on its way to the driver."""

    roots: frozenset[Root] = frozenset()
    opened: tuple[OpenChange, ...] = ()
    result: PartResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """The clients of a process."""

    store: DynamoStore
    pool: ThreadPoolExecutor
    rejects: KafkaOutbox
    registry: Registry


@lru_cache(maxsize=1)
def clients(settings: Settings, letter_bytes: int | None) -> Clients:
    """This process's clients. A batch of dead letters has at most `letter_bytes`, like each of them."""
    tune_garbage_collector()
    return Clients(
        store=open_store(settings),
        pool=ThreadPoolExecutor(settings.threads, thread_name_prefix="requests"),
        rejects=KafkaOutbox(
            settings.bootstrap_servers,
            dict(settings.kafka),
            **{"batch.size": min(letter_bytes or BATCH_BYTES, BATCH_BYTES)},
        ),
        registry=open_registry(settings),
    )


def open_store(settings: Settings) -> DynamoStore:
    """The table's store."""
    region = settings.region or os.environ.get("AWS_REGION")
    return DynamoStore(table=settings.table, endpoint_url=settings.endpoint or None, region=region)


def run_part(elements: Iterable[Any], part: Part, read: Read, task: Task) -> PartResult:
    """A task of stage 1 over one Spark partition, with its requests counted."""
    mine = clients(task.settings, task.round.letter_bytes)
    overlays = (WorkerOverlay(task.overlay.value),) if task.overlay is not None else ()
    runner = StepRunner(
        store=mine.store, outbox=mine.rejects, overlays=overlays, pool=mine.pool, page=task.settings.fan_out_page
    )
    before = mine.store.requests.copy()
    result = part(read(elements), task.round, runner)
    return replace(result, sights=runner.sights(), tally=result.tally + _spent(mine.store, before))


def hand_over(elements: Iterable[Any], part: Part, read: Read, task: Task) -> Iterator[tuple[int, Handover]]:
    """A task of stage 1, and the handovers that Spark shuffles by lane."""
    result = run_part(elements, part, read, task)
    roots: dict[int, set[Root]] = {}
    for root in result.roots:
        roots.setdefault(lane_of(root, task.settings.lanes), set()).add(root)
    opened = result.open_changes()
    for lane in range(task.settings.lanes):
        if opened or lane in roots or lane == 0:
            handed = replace(result, roots=frozenset()) if lane == 0 else None
            yield lane, Handover(roots=frozenset(roots.get(lane, ())), opened=opened, result=handed)


def publish(lane: int, handovers: Iterable[tuple[int, Handover]], task: Task) -> LaneResult:
    """A task of stage 2: the publish part of one lane. Each attempt first takes the lane at the broker, then checks the
    lease. So either a run that took over has fenced this producer, or the check notices that run."""
    received = [handover for _, handover in handovers]
    roots: frozenset[Root] = frozenset().union(*(handover.roots for handover in received))
    parts = tuple(handover.result for handover in received if handover.result is not None)
    if not roots:
        return LaneResult(lane=lane, parts=parts)
    mine, settings = clients(task.settings, task.round.letter_bytes), task.settings
    overlays = (WorkerOverlay(task.overlay.value), overlay_of(chain.from_iterable(h.opened for h in received)))

    def next_attempt() -> tuple[int, StepRunner]:
        outbox = TransactionalOutbox(
            settings.bootstrap_servers,
            dict(settings.kafka),
            transactional_id(settings, lane),
            seconds=settings.transaction_seconds,
        )
        attempt = begin_attempt(mine.registry, task.lease, lane, task.round.number)
        return attempt, replace(runner, outbox=outbox)

    runner = StepRunner(store=mine.store, overlays=overlays, pool=mine.pool)
    before = mine.store.requests.copy()
    try:
        result = publish_lane(lane, roots, task.round, next_attempt)
    except TransactionTimedOut:
        if not mine.registry.holds(task.lease):  # an old transaction that another run fenced
            raise lease_lost(task.lease) from None
        raise
    tally = result.tally + _spent(mine.store, before)
    return replace(result, tally=tally, parts=parts, sights=runner.sights())


def begin_attempt(registry: Registry, lease: Lease, lane: int, round_: int) -> int:
    """The number of the attempt that begins; raises Fenced when another run took the lease."""
    attempt = registry.begin_attempt(lease, lane, round_)
    if attempt is None:
        raise lease_lost(lease)
    return attempt


def transactional_id(settings: Settings, lane: int) -> str:
    """The fixed transactional id of a lane."""
    return f"{settings.job}-{lane}"


def records_of(rows: Iterable[Any], epochs: Epochs) -> Iterator[Record]:
    """The records of a data frame's rows."""
    return (_record(row, epochs) for row in rows)


def pieces_of(tasks: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """The pieces of work of a Spark partition, whose elements are the work of whole tasks."""
    return chain.from_iterable(tasks)


def _spent(store: DynamoStore, before: Counter[str]) -> Counter[str]:
    return Counter({f"request {name}": n for name, n in (store.requests - before).items()})


def _record(row: Any, epochs: Epochs) -> Record:
    return Record(
        topic=row.topic,
        partition=row.partition,
        offset=row.offset,
        epoch=epochs.of(row.topic, row.partition, row.offset),
        timestamp=row.timestamp,
        key=None if row.key is None else bytes(row.key),
        value=None if row.value is None else bytes(row.value),
        headers=tuple((h.key, None if h.value is None else bytes(h.value)) for h in row.headers or ()),
    )
