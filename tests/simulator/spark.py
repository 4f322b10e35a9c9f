"""A double of the parts of Spark that `processor.job.run.job` uses: stages with a barrier, a shuffle, a broadcast."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from processor.values.record import Record

if TYPE_CHECKING:
    from tests.simulator.world import World

Partition = list[Any]


class Broadcast:
    def __init__(self, value: Any) -> None:
        self.value = pickle.loads(pickle.dumps(value))  # a copy of the present value, as Spark's broadcast has it

    def destroy(self) -> None:
        return None


class Rdd:
    """A lazy list of partitions, and the functions that a stage applies to each. The stage runs when a caller asks for its
    results."""

    def __init__(
        self, world: "World", partitions: Callable[[], list[Partition]], *functions: Callable[[Iterator[Any]], Any]
    ) -> None:
        self._world, self._partitions, self._functions = world, partitions, functions

    def mapPartitions(self, f: Callable[[Iterator[Any]], Iterable[Any]]) -> "Rdd":
        return Rdd(self._world, self._partitions, *self._functions, f)

    def partitionBy(self, n: int, f: Callable[[Any], int]) -> "Rdd":
        def shuffled() -> list[Partition]:
            parts: list[Partition] = [[] for _ in range(n)]
            for pair in self.collect():
                parts[f(pair[0]) % n].append(pair)
            return parts

        return Rdd(self._world, shuffled)

    def coalesce(self, n: int) -> "Rdd":
        return Rdd(self._world, lambda: [list(chain.from_iterable(self._partitions()))]) if n == 1 else self

    def collect(self) -> list[Any]:
        stage = self._world.run_stage([partial(_task, self._functions, rows) for rows in self._partitions()])
        return list(chain.from_iterable(stage))


def _task(functions: Iterable[Callable[[Iterator[Any]], Any]], rows: Partition) -> Partition:
    for f in functions:
        rows = list(f(iter(rows)))
    return rows


class Session:
    """A Spark session, and its context."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.sparkContext = self
        self.defaultParallelism = 2

    def broadcast(self, value: Any) -> Broadcast:
        return Broadcast(value)

    def parallelize(self, rows: Iterable[Any], n: int) -> Rdd:
        rows = list(rows)
        return Rdd(self._world, lambda: [rows[i::n] for i in range(n)])


class Frame:
    """The data frame of a micro-batch. The job uses only its RDD of rows. Each inner list is one Spark partition."""

    def __init__(self, world: "World", partitions: list[list[Record]]) -> None:
        self.world, self.partitions = world, partitions
        self.rdd = Rdd(world, lambda: [list(map(_row, records)) for records in partitions])


def _row(record: Record) -> tuple[Any, ...]:
    return (record.topic, record.partition, record.offset, record.timestamp, record.key, record.value, record.headers)
