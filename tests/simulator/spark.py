"""As much of Spark as `processor.rounds` uses: stages with a barrier between them, a shuffle, a broadcast."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.simulator.world import World

Partition = list[Any]


class Broadcast:
    def __init__(self, value: Any) -> None:
        self.value = pickle.loads(pickle.dumps(value))  # as it is now, whatever becomes of it

    def destroy(self) -> None:
        return None


class Rdd:
    """A lazy list of partitions; a stage of tasks runs when they are asked for."""

    def __init__(self, world: "World", partitions: Callable[[], list[Partition]]) -> None:
        self._world, self._partitions = world, partitions

    def mapPartitions(self, f: Callable[[Iterator[Any]], Iterable[Any]]) -> "Rdd":
        return self.mapPartitionsWithIndex(lambda _, rows: f(rows))

    def mapPartitionsWithIndex(self, f: Callable[[int, Iterator[Any]], Iterable[Any]]) -> "Rdd":
        def stage() -> list[Partition]:
            tasks = [partial(_task, f, i, rows) for i, rows in enumerate(self._partitions())]
            return self._world.stage(tasks)

        return Rdd(self._world, stage)

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
    """A micro-batch's data frame, of which only the RDD is used: each inner list is one Spark partition."""

    def __init__(self, world: "World", partitions: list[Partition]) -> None:
        self.world, self.partitions = world, partitions
        self.rdd = Rdd(world, lambda: partitions)

    def coalesce(self, _: int) -> "Frame":
        return self  # the partitions are whole already, and as few as chance made them
