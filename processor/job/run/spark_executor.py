"""Runs the stages of a round as tasks of Spark.

A round is one action: the tasks of the first stage, one shuffle, and the publish tasks, which share the lanes. A round of little
work needs one task: this task publishes, too. Only when it finds many roots, a second action publishes them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from processor.engine.plan.plan import Plan
from processor.engine.protocol.epochs import Epochs
from processor.engine.protocol.segments import SegmentGroup
from processor.engine.rounds.round import SMALL, LaneResult, Round, Stage, StageResult, size_of
from processor.environment.settings.settings import Settings
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
from registry.model import Lease
from statestore.store import FencingToken


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFrame:
    """The records of a micro-batch: work for the write stage. `records`: the most that it has. `epochs`: of its topics."""

    frame: DataFrame
    records: int
    epochs: Epochs


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
        task = self._task(round_, tuple(self.sent.values()), publishers)
        elements, read = self._distribute(work)
        if not _is_small(work):
            return _publish(elements.mapPartitions(partial(hand_over, stage=stage, read=read, task=task)), task)
        alone: RDD[Any] = elements.mapPartitions(partial(run_alone, stage=stage, read=read, task=task))
        found = alone.collect()
        published = bool(found) and isinstance(found[0], LaneResult)
        return found if published else _publish(context.parallelize(found, 1), task)

    def run_stage(self, stage: Stage, work: SparkWork, round_: Round) -> list[StageResult]:
        task = self._task(round_, (), 1)
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
        """The broadcast of a plan; drops that of another one. An edit makes another plan; the rounds between two edits share
        one."""
        if not self.plans or self.plans[0][0] is not plan:
            for _, earlier in self.plans:
                earlier.destroy()
            self.plans[:] = [(plan, self.spark.sparkContext.broadcast(plan))]
        return self.plans[0][1]

    def _task(self, round_: Round, overlay: tuple[Any, ...], publishers: int) -> Task:
        return Task(
            facts=replace(round_, plan=NO_PLAN),
            plan=self._send_plan(round_.plan),
            settings=self.settings,
            lease=self.lease,
            overlay=overlay,
            publishers=publishers,
            fence=self.fence,
        )

    def _distribute(self, work: SparkWork) -> tuple[RDD[Any], ReadPieces]:
        """The work as an RDD of at most as many tasks as cores, and how a task reads its elements."""
        context = self.spark.sparkContext
        tasks = 1 if _is_small(work) else context.defaultParallelism
        if isinstance(work, BatchFrame):
            # A Kafka partition stays whole, in its order.
            return work.frame.rdd.coalesce(tasks), partial(records_of, epochs=work.epochs)
        return context.parallelize(work, min(tasks, len(work))), pieces_of


def _is_small(work: SparkWork) -> bool:
    """Whether one task does the work of the first stage."""
    return (work.records if isinstance(work, BatchFrame) else size_of(work)) <= SMALL


def _publish(handovers: RDD[Any], task: Task) -> list[LaneResult]:
    lanes = handovers.partitionBy(task.publishers, int)
    return list(lanes.mapPartitions(partial(publish, task=task)).collect())
