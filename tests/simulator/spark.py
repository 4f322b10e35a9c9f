"""A double of the parts of Spark that `processor.job.spark_executor` uses: stages with a barrier, a shuffle, a broadcast."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulator.world import World

Partition = list[Any]


class Broadcast:
    def __init__(self, value: Any) -> None:
        self.value = pickle.loads(pickle.dumps(value))  # a copy of the present value, as Spark's broadcast has it

    def destroy(self) -> None:
        return None


class Rdd:
    """A lazy list of partitions. Its stage of tasks runs when a caller asks for them."""

    def __init__(self, world: "World", partitions: Callable[[], list[Partition]]) -> None:
        self._world, self._partitions = world, partitions

    def mapPartitions(self, f: Callable[[Iterator[Any]], Iterable[Any]]) -> "Rdd":
        return self.mapPartitionsWithIndex(lambda _, rows: f(rows))

    def mapPartitionsWithIndex(self, f: Callable[[int, Iterator[Any]], Iterable[Any]]) -> "Rdd":
        def run() -> list[Partition]:
            tasks = [partial(_task, f, i, rows) for i, rows in enumerate(self._partitions())]
            return self._world.run_stage(tasks)

        return Rdd(self._world, run)

    def partitionBy(self, n: int, f: Callable[[Any], int]) -> "Rdd":
        def shuffled() -> list[Partition]:
            parts: list[Partition] = [[] for _ in range(n)]
            for rows in self._partitions():
                for pair in rows:
                    parts[f(pair[0]) % n].append(pair)
            return parts

        return Rdd(self._world, shuffled)

    def collect(self) -> list[Any]:
        return [row for rows in self._partitions() for row in rows]


def _task(f: Callable[[int, Iterator[Any]], Iterable[Any]], i: int, rows: Partition) -> Partition:
    return list(f(i, iter(rows)))


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
    """The data frame of a micro-batch. The job uses only its RDD. Each inner list is one Spark partition."""

    def __init__(self, world: "World", partitions: list[Partition]) -> None:
        self.world, self.partitions = world, partitions
        self.rdd = Rdd(world, lambda: partitions)

    def coalesce(self, _: int) -> "Frame":
        return self  # a Kafka partition is already whole in one of these
