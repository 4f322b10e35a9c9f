"""The tasks of a round, as Spark's Python workers run them over real clients.

Only plain data crosses to a worker. A worker makes its clients once, after the fork. It makes a new
producer for each attempt of a lane, because a new producer fences the earlier ones.

PySpark's worker calls `importlib.invalidate_caches()` before each task. Below 3.12, Python then reads the directory of each
archive on its path again: pyspark.zip, py4j and the connector's jars, 0.1 s of CPU a task (CPython gh-103200, SPARK-54744).
So a worker keeps these directories.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain
from time import perf_counter, time
from typing import Any
from zipimport import zipimporter

from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Root
from processor.engine.protocol.epochs import Epochs
from processor.engine.protocol.find_roots import ShownRows
from processor.engine.protocol.segments import Overlay, Segment, SegmentGroup
from processor.engine.rounds.publish_stage import lane_of, publish_lane
from processor.engine.rounds.round import SMALL, LaneResult, Round, Stage, StageResult, hold_back
from processor.engine.rounds.round_counts import RootTimes, count_ages, oldest, spending, stage_time
from processor.engine.rounds.step_runner import StepRunner, tune_garbage_collector
from processor.environment.settings.resolve import open_registry, secret_readers
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import open_loader, open_store
from processor.errors import Fenced, TransactionTimedOut
from processor.job.kafka.admin import ask_limit
from processor.job.kafka.outbox import BATCH_BYTES, KafkaOutbox, TransactionalOutbox
from processor.job.kafka.schemas import open_avro_writer, open_schemas
from processor.language.product.expressions.functions import offer_secrets
from processor.values.record import Record
from registry.model import Lease
from registry.repository import Registry
from statestore.memory import LoadStore
from statestore.store import FencingToken, Store


def keep_zip_directories() -> None:
    """Lets this process keep the directories of its archives. The archives of a running job never change, and a new
    archive has a new importer. Spark reuses its workers, so only the first task of each reads the archives."""
    if sys.version_info < (3, 12):
        zipimporter.invalidate_caches = _keep  # type: ignore[assignment, method-assign]


def _keep(_: zipimporter) -> None:
    """Keeps what the importer knows."""


NO_PLAN = Plan(version=0, entities={}, products={})
"""Takes the place of a plan that travels as a broadcast."""

ReadPieces = Callable[[Iterable[Any]], Iterable[Any]]
"""Turns the elements of a Spark partition into pieces of work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The data that a task gets: the round, and how to reach the outside."""

    facts: Round
    """The round, with `NO_PLAN`."""
    plan: Any
    """The round's plan, as a broadcast."""
    settings: Settings
    lease: Lease
    overlay: tuple[Any, ...]
    """The groups of the driver's open changes, each as a broadcast."""
    publishers: int = 1
    """The number of tasks that share the lanes."""
    fence: FencingToken | None = None
    """The right of the run to write to the table."""
    loads: bool = False
    """Whether the first stage loads rows into an empty table, in bulk."""

    @property
    def round(self) -> Round:
        """The round, with its plan."""
        return replace(self.facts, plan=self.plan.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """The data that a task of a first stage hands to a publish task: the roots of its lanes and what the way up showed
    of them, the changes that the task opened, and, to publish task 0 only, the task's result on its way to the driver."""

    roots: RootTimes = field(default_factory=dict)
    shown: ShownRows | None = None
    opened: tuple[Segment, ...] = ()
    result: StageResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """The clients of a process."""

    store: Store
    rejects: KafkaOutbox
    registry: Registry


_opened = ExitStack()
"""Closes the connections of this process's clients."""


@lru_cache(maxsize=1)
def clients(settings: Settings, letter_bytes: int | None, fence: FencingToken | None) -> Clients:
    """This process's clients. A batch of dead letters has at most `letter_bytes`, like each of them. `fence`: the right of the
    run to write to the table. Closes the clients of an earlier call with other arguments."""
    clients.cache_clear()
    _opened.close()
    keep_zip_directories()
    offer_secrets(secret_readers(settings))
    made = Clients(
        store=open_store(settings, RetryBudget.JOB, fence),
        rejects=KafkaOutbox(
            settings.bootstrap_servers,
            dict(settings.kafka),
            **{"batch.size": min(letter_bytes or BATCH_BYTES, BATCH_BYTES)},
        ),
        registry=open_registry(settings),
    )
    _opened.callback(made.store.close)
    _opened.callback(made.registry.close)
    tune_garbage_collector()  # after the clients: PySpark collects after each task, 18 ms for all that they keep
    return made


def make_clients(
    settings: Settings, letter_bytes: int | None, fence: FencingToken | None, _: Iterable[Any]
) -> Iterator[Any]:
    """A task that only makes this process's clients."""
    clients(settings, letter_bytes, fence)
    return iter(())


def run_stage(elements: Iterable[Any], stage: Stage, read: ReadPieces, task: Task) -> StageResult:
    """A task of a first stage over one Spark partition, with its requests counted."""
    round_ = task.round
    mine = clients(task.settings, round_.setup.letter_bytes, task.fence)
    loading = LoadStore(mine.store) if task.loads else None
    runner = StepRunner(
        store=loading or mine.store,
        outbox=mine.rejects,
        overlays=_overlays(task),
        page=task.settings.fan_out_page,
        schemas=open_schemas(task.settings.schema_registry),
    )
    before, began = spending(mine.store), perf_counter()
    result = hold_back(stage(read(elements), round_, runner), round_, mine.store)
    if loading is not None:
        assert task.fence is not None, "a run that loads has taken the table over"
        with closing(open_loader(task.settings, task.fence)) as loader:
            loader.add(loading.loaded())
    tally = result.tally + (spending(mine.store) - before) + stage_time("write", began)
    return replace(result, sights=runner.sights(), tally=tally)


def hand_over(elements: Iterable[Any], stage: Stage, read: ReadPieces, task: Task) -> Iterator[tuple[int, Handover]]:
    """A task of a first stage, and the handovers that Spark shuffles to the publish tasks. Each lane has one publish task."""
    result = run_stage(elements, stage, read, task)
    roots: dict[int, dict[Root, float]] = {}
    for root, time_ in result.roots.items():
        roots.setdefault(lane_of(root, task.settings.lanes) % task.publishers, {})[root] = time_
    for publisher in range(task.publishers):
        if result.opened or publisher in roots or publisher == 0:
            handed = replace(result, roots={}, shown=None) if publisher == 0 else None
            own = roots.get(publisher, {})
            shown = result.shown.part(task.round.plan.row_keys(own)) if result.shown and own else None
            yield publisher, Handover(roots=own, shown=shown, opened=result.opened, result=handed)


def run_alone(
    elements: Iterable[Any], stage: Stage, read: ReadPieces, task: Task
) -> list[LaneResult] | list[tuple[int, Handover]]:
    """The only task of a first stage. No other task can still write, so this task publishes a few roots itself. It hands over
    many roots, for several publish tasks."""
    handovers = list(hand_over(elements, stage, read, task))
    if sum(len(handover.roots) for _, handover in handovers) > SMALL:
        return handovers
    return publish(handovers, task)


def publish(handovers: Iterable[tuple[int, Handover]], task: Task) -> list[LaneResult]:
    """A task of the publish stage: its lanes, one after the other. The first of the results carries those of
    the first stage."""
    received = [handover for _, handover in handovers]
    lanes: dict[int, dict[Root, float]] = {}
    for root, time_ in oldest(handover.roots for handover in received).items():
        lanes.setdefault(lane_of(root, task.settings.lanes), {})[root] = time_
    opened = SegmentGroup(tuple(chain.from_iterable(handover.opened for handover in received)))
    results = tuple(handover.result for handover in received if handover.result is not None)
    shown = ShownRows()
    for handover in received:
        if handover.shown is not None:
            shown.take(handover.shown)
    published = [_publish_lane(lane, roots, opened, shown, task) for lane, roots in sorted(lanes.items())]
    return [LaneResult(lane=0, results=results), *published]


def _publish_lane(lane: int, roots: RootTimes, opened: Overlay, shown: ShownRows, task: Task) -> LaneResult:
    """The publish stage of one lane. Each attempt first takes the lane at the broker, then checks the lease. So either a
    run that took over has fenced this producer, or the check notices that run."""
    round_, settings = task.round, task.settings
    mine = clients(settings, round_.setup.letter_bytes, task.fence)
    overlays = (*_overlays(task), opened)

    def next_attempt(attempted: Round) -> tuple[int, StepRunner]:
        outbox = TransactionalOutbox(
            settings.bootstrap_servers,
            dict(settings.kafka),
            transactional_id(settings, lane),
            seconds=settings.transaction_seconds,
            batch_bytes=attempted.setup.smallest_limit,
        )
        attempt = begin_attempt(mine.registry, task.lease, lane, round_.number)
        return attempt, replace(runner, outbox=outbox)

    runner = StepRunner(store=mine.store, overlays=overlays, open_writer=open_avro_writer, shown=shown)
    before, began = spending(mine.store), perf_counter()
    try:
        result = publish_lane(lane, roots, round_, next_attempt, partial(ask_limit, settings))
    except TransactionTimedOut:
        if not mine.registry.holds(task.lease):  # an old transaction that another run fenced
            raise lease_lost(task.lease) from None
        raise
    now = time()  # the broker has committed the transaction
    tally = result.tally + (spending(mine.store) - before) + count_ages(now - at for at in result.times)
    return replace(result, tally=tally + stage_time("publish", began), times=(), sights=runner.sights())


def _overlays(task: Task) -> tuple[Overlay, ...]:
    return tuple(broadcast.value for broadcast in task.overlay)


def lease_lost(lease: Lease) -> Fenced:
    """The error of a run that lost its lease."""
    return Fenced(f"job {lease.job}: generation {lease.generation} lost its lease; another job took over")


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


def _record(row: Any, epochs: Epochs) -> Record:
    topic, partition, offset, timestamp, key, value, headers = (
        row  # by name each column costs a search: 18 us a row, not 8
    )
    return Record(
        topic=topic,
        partition=partition,
        offset=offset,
        epoch=epochs.of(topic, partition, offset),
        timestamp=timestamp,
        key=None if key is None else bytes(key),
        value=None if value is None else bytes(value),
        headers=tuple((name, None if text is None else bytes(text)) for name, text in headers or ()),
    )
