"""Which epoch a record belongs to: a stored function of its topic's incarnation, its partition and its offset, never of the run.

A topic created anew starts its offsets again, and added partitions move keys to other offsets; each such boundary raises the
epoch of what comes after it, so that versions (epoch, offset) keep rising for every key.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Partition = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """From this offset on, the partition's records of this incarnation of the topic belong to `epoch`."""

    topic: str
    topic_id: str
    partition: int
    from_offset: int
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """The boundaries of the present incarnations. `steps`: (topic, partition) -> (from_offset, epoch) pairs, rising."""

    steps: Mapping[Partition, tuple[tuple[int, int], ...]]

    def of(self, topic: str, partition: int, offset: int) -> int:
        """The epoch of a record; 1 where nothing was recorded."""
        steps = self.steps.get((topic, partition))
        if steps is None:
            return 1
        if len(steps) == 1:
            return steps[0][1]
        return steps[max(0, bisect_right(steps, (offset, 1 << 62)) - 1)][1]


def epochs(boundaries: Iterable[Boundary]) -> Epochs:
    """The function of these boundaries; of a topic's incarnations the one with the highest epoch is the present one."""
    known = list(boundaries)
    present = {b.topic: b.topic_id for b in sorted(known, key=lambda b: b.epoch)}
    steps: dict[Partition, list[tuple[int, int]]] = {}
    for b in known:
        if present[b.topic] == b.topic_id:
            steps.setdefault((b.topic, b.partition), []).append((b.from_offset, b.epoch))
    return Epochs(steps={partition: tuple(sorted(pairs)) for partition, pairs in steps.items()})
