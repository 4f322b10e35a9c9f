"""The epoch of a record: a stored function of its topic's incarnation, its partition and its offset, never of the run.

A topic that was created again starts its offsets again, and added partitions move keys to other offsets. An entity that
gets another topic reads other offsets, too. Each such boundary raises the epoch of the records after it, so that
versions (epoch, offset) keep rising for every key. The epochs of an entity rise over all topics that it ever had.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

from registry.model import EpochBoundary

Partition = tuple[str, int]
"""(topic, partition)."""


class Incarnation(NamedTuple):
    """An incarnation of a topic. `ends`: partition -> (epoch, offset) pairs: the partition ended at the offset when the epoch
    began. A broker that lost its last records ends before where it ended earlier."""

    id: str
    ends: Mapping[int, Sequence[tuple[int, int]]] = MappingProxyType({})


UNKNOWN = Incarnation("")
"""Of a topic without a recorded boundary."""
Incarnations = Mapping[tuple[str, int], Incarnation]
"""(topic, epoch) -> the topic's incarnation. No two incarnations of a topic share an epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """The boundaries of the present incarnations. `steps`: (topic, partition) -> (from_offset, epoch) pairs, rising.
    `incarnations`: each incarnation, also a former one, by its epochs."""

    steps: Mapping[Partition, tuple[tuple[int, int], ...]]
    incarnations: Incarnations = field(default_factory=dict)

    def of(self, topic: str, partition: int, offset: int) -> int:
        """The epoch of a record; 1 where no boundary is recorded."""
        steps = self.steps.get((topic, partition))
        if steps is None:
            return 1
        if len(steps) == 1:
            return steps[0][1]
        return steps[max(0, bisect_right(steps, (offset, 1 << 62)) - 1)][1]

    def partitions(self) -> Counter[str]:
        """How many partitions each topic has."""
        return Counter(topic for topic, _ in self.steps)


def last_topic(boundaries: Iterable[EpochBoundary], entity: str) -> str | None:
    """The topic that the entity read last; None before its first."""
    own = [b for b in boundaries if b.entity == entity]
    return max(own, key=lambda b: b.epoch).topic if own else None


def next_epoch(boundaries: Iterable[EpochBoundary], entity: str, topic: str) -> int:
    """The epoch above all epochs of the topic, and above all epochs that the entity has stored rows with."""
    return 1 + max((b.epoch for b in boundaries if topic == b.topic or entity == b.entity), default=0)


def read_epochs(boundaries: Iterable[EpochBoundary]) -> Epochs:
    """The epochs that these boundaries give. The incarnation of a topic with the highest epoch is the present one. A later
    boundary with a lower offset overrides an earlier one: epochs rise along a partition."""
    known = sorted(boundaries, key=lambda b: (b.from_offset, b.epoch))
    present = {b.topic: b.topic_id for b in sorted(known, key=lambda b: b.epoch)}
    steps: dict[Partition, list[tuple[int, int]]] = {}
    for b in known:
        if present[b.topic] == b.topic_id:
            pairs = steps.setdefault((b.topic, b.partition), [])
            if not pairs or b.epoch > pairs[-1][1]:
                pairs.append((b.from_offset, b.epoch))
    ends: dict[str, dict[int, list[tuple[int, int]]]] = {b.topic_id: {} for b in known}
    for b in known:
        if b.at_end:
            ends[b.topic_id].setdefault(b.partition, []).append((b.epoch, b.from_offset))
    incarnations = {(b.topic, b.epoch): Incarnation(b.topic_id, ends[b.topic_id]) for b in known}
    return Epochs(steps={partition: tuple(pairs) for partition, pairs in steps.items()}, incarnations=incarnations)
