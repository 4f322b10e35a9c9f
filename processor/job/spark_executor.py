"""Runs the parts of a round as tasks of Spark: one action per round, with one shuffle by lane."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from processor.job.worker import Read, Task, hand_over, pieces_of, publish, records_of, run_part
from processor.progress.epochs import Epochs
from processor.progress.overlay import DriverOverlay
from processor.rounds.round import LaneResult, Part, PartResult, Round
from processor.settings import Settings
from registry.model import Lease


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFrame:
    """The records of a micro-batch: work for the write part. `epochs`: of its topics."""

    frame: DataFrame
    epochs: Epochs


SparkWork = BatchFrame | Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkExecutor:
    """Runs parts on a Spark session."""

    spark: SparkSession
    settings: Settings
    lease: Lease

    def run_round(self, part: Part, work: SparkWork, round_: Round, overlay: DriverOverlay) -> list[LaneResult]:
        broadcast = self.spark.sparkContext.broadcast(overlay.encode())
        task = Task(round=round_, settings=self.settings, lease=self.lease, overlay=broadcast)
        elements, read = self._distribute(work)
        handovers = elements.mapPartitions(partial(hand_over, part=part, read=read, task=task))
        lanes = handovers.partitionBy(self.settings.lanes, int)

        def publish_partition(lane: int, handovers: Any) -> list[LaneResult]:
            return [publish(lane, handovers, task)]

        try:
            return list(lanes.mapPartitionsWithIndex(publish_partition).collect())
        finally:
            broadcast.destroy()

    def run_part(self, part: Part, work: SparkWork, round_: Round) -> list[PartResult]:
        task = Task(round=round_, settings=self.settings, lease=self.lease, overlay=None)
        elements, read = self._distribute(work)

        def run_partition(elements: Any) -> list[PartResult]:
            return [run_part(elements, part, read, task)]

        return list(elements.mapPartitions(run_partition).collect())

    def _distribute(self, work: SparkWork) -> tuple[RDD[Any], Read]:
        """The work as an RDD, and how a task reads its elements."""
        context = self.spark.sparkContext
        if isinstance(work, BatchFrame):
            # As many tasks as cores: a Kafka partition stays whole, in its order, and a small one costs no task of its own.
            frame = work.frame.coalesce(context.defaultParallelism)
            return frame.rdd, partial(records_of, epochs=work.epochs)
        return context.parallelize(work, len(work)), pieces_of
