"""Spark's part of a job, in this process: the stream, and the tasks of a round.

All else is the job's own, over the real Kafka, store and registry: the lease, the fence, the driver, the batches, the loop around
them, and the functions of `run.worker` that Spark runs as tasks. The engine keeps no checkpoint: the scene remembers
where each partition continues. It has no executors, and it repeats no task: tests of those start Spark.
"""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import processor.job.run.job as job_module
import processor.job.run.open_job as open_module
from processor.engine.plan.plan import Plan
from processor.engine.protocol.epochs import Partition
from processor.engine.protocol.segments import SegmentGroup
from processor.engine.rounds.round import LaneResult, Round, Stage, StageResult
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import read_topic
from processor.job.run import worker
from processor.job.run.job import BatchFrame, SparkExecutor, SparkWork
from processor.job.run.source import OffsetRanges

Row = tuple[Any, ...]
"""A record, as Spark has it in a data frame."""


@contextmanager
def plain_engine(positions: dict[Partition, int]) -> Iterator[None]:
    """Opens and runs jobs without Spark. `positions`: where each partition continues; a batch that ends moves them."""
    streams: list[PlainStream] = []

    def stream(_: None, settings: Settings, topics: Collection[str], most: int | None) -> PlainStream:
        streams.append(PlainStream(settings=settings, topics=topics, positions=positions, most=most or sys.maxsize))
        return streams[-1]

    with (
        patch.object(open_module, "spark_session", lambda *_: None),
        patch.object(open_module, "SparkExecutor", PlainExecutor),
        patch.object(job_module.Job, "_committed", lambda _: dict(positions)),
        patch.object(job_module, "read_stream", stream),
        patch.object(job_module, "offset_ranges", lambda *_: streams[-1].batch),
        patch.object(job_module, "in_ranges", rows_in),
        patch.object(worker, "tune_garbage_collector", lambda: None),
    ):
        try:
            yield
        finally:
            worker.clients.cache_clear()
            worker._opened.close()


@dataclass(slots=True, kw_only=True)
class PlainStream:
    """A stream of the records that are there now, and its writer and its query. `most`: records of a batch; `batch`: the offsets
    of the present one."""

    settings: Settings
    topics: Collection[str]
    positions: dict[Partition, int]
    most: int
    batch: OffsetRanges = field(default_factory=lambda: OffsetRanges(ranges={}))
    process: Callable[[list[Row], int], None] | None = None
    failure: Exception | None = None
    looks: int = 0

    @property
    def isActive(self) -> bool:
        """True at the first look, as of Spark's stream, which ends a moment after its last batch. The job works meanwhile."""
        self.looks += 1
        return self.looks == 1

    def awaitTermination(self, _: int) -> bool:
        return True

    def stop(self) -> None:
        """Its batches have ended."""

    @property
    def writeStream(self) -> "PlainStream":
        return self

    def foreachBatch(self, process: Callable[[Any, int], None]) -> "PlainStream":
        self.process = process
        return self

    def option(self, _: str, __: str) -> "PlainStream":
        return self

    def trigger(self, *, availableNow: bool) -> "PlainStream":
        assert availableNow, "the plain engine ends with the records that are there now"
        return self

    def start(self) -> "PlainStream":
        """Runs all batches. The first failure ends the stream, and its batch stays unread."""
        assert self.process is not None
        for number, batch in enumerate(self._waiting().slices(self.most)):
            self.batch = batch
            try:
                self.process(self._read(batch), number)
            except Exception as failure:
                self.failure = failure
                break
            self.positions.update(batch.ends)
        return self

    def exception(self) -> Exception | None:
        return self.failure

    def _waiting(self) -> OffsetRanges:
        admin = Admin(self.settings.bootstrap_servers, {})
        ends = {(name, p): end for name in self.topics for p, end in admin.stable_ends(name).items()}
        ranges = {partition: (self.positions.get(partition, 0), end) for partition, end in ends.items()}
        return OffsetRanges(ranges={partition: r for partition, r in ranges.items() if r[0] < r[1]})

    def _read(self, batch: OffsetRanges) -> list[Row]:
        topics = sorted({topic for topic, _ in batch.ranges})
        records = chain.from_iterable(read_topic(self.settings.bootstrap_servers, {}, topic) for topic in topics)
        return rows_in(
            [(r.topic, r.partition, r.offset, r.timestamp, r.key, r.value, r.headers) for r in records], batch
        )


def rows_in(rows: Sequence[Row], piece: OffsetRanges) -> list[Row]:
    """The rows that belong to a batch, or to a piece of it."""
    nothing = (0, 0)
    return [row for row in rows if row[2] in range(*piece.ranges.get((row[0], row[1]), nothing))]


class PlainExecutor(SparkExecutor):
    """Runs the tasks of a round one after the other: one of the first stage, and one for each lane."""

    def start_workers(self, letter_bytes: int | None) -> None:
        """This process has its clients at the first task."""

    def _send_plan(self, plan: Plan) -> Any:
        return SimpleNamespace(value=plan)

    def run_round(
        self, stage: Stage, work: SparkWork, round_: Round, overlay: Mapping[int, SegmentGroup]
    ) -> list[LaneResult]:
        broadcasts = tuple(SimpleNamespace(value=group) for group in overlay.values())
        task = self._task(round_, broadcasts, self.settings.lanes, work)
        found: list[Any] = worker.run_alone(*_elements(work, stage), task)
        if found and isinstance(found[0], LaneResult):
            return found
        lanes = [[one for one in found if one[0] == publisher] for publisher in range(task.publishers)]
        return [result for handovers in lanes if handovers for result in worker.publish(handovers, task)]

    def run_stage(self, stage: Stage, work: SparkWork, round_: Round) -> list[StageResult]:
        return [worker.run_stage(*_elements(work, stage), self._task(round_, (), 1, work))]


def _elements(work: SparkWork, stage: Stage) -> tuple[Any, Stage, worker.ReadPieces]:
    """The elements of the one task, what runs over them, and how it reads them."""
    if isinstance(work, BatchFrame):
        return work.frame, stage, partial(worker.records_of, epochs=work.epochs)
    return work, stage, worker.pieces_of
