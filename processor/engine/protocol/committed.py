"""Which records batches have committed: only what a committed batch wrote is published for sure (rule 3).

The checkpoint says how far the stream has read each partition, and where it began. Below its begin nobody knows: an earlier
checkpoint, a former incarnation of the topic or a former topic of the entity may have had a batch that wrote rows and then
crashed. A row of such a record counts as not published. Its next change costs one more write, and finds its documents again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from processor.engine.protocol.epochs import Epochs, Partition
from processor.values.record import Record
from statestore.items import decode_version, encode_version

Place = tuple[str, int, int]
"""(topic, epoch, partition)."""


@dataclass(frozen=True, slots=True)
class Committed:
    """`offsets`: of each topic, epoch and partition the first committed offset, and the offset after the last one."""

    offsets: Mapping[Place, tuple[int, int]] = field(default_factory=dict)

    def has(self, topic: str, version: str) -> bool:
        """Whether a batch has committed the record of `topic` with this version."""
        epoch, partition, offset = decode_version(version)
        begin, end = self.offsets.get((topic, epoch, partition), (0, 0))
        return begin <= offset < end

    def and_read(self, records: Iterable[Record]) -> "Committed":
        """The same after a batch of these records, for a run without a checkpoint."""
        offsets = dict(self.offsets)
        for one in records:
            place = one.topic, one.epoch, one.partition
            begin, end = offsets.get(place, (one.offset, 0))
            offsets[place] = min(begin, one.offset), max(end, one.offset + 1)
        return Committed(offsets)


NOTHING = Committed()
"""No record."""


@dataclass(frozen=True, slots=True)
class Published:
    """Which stored rows are published, for a change. `since`, `below`: the versions of such rows of the change's own epoch and
    partition. `until`: the version of the first truncate whose walk goes on: its markers are not published."""

    committed: Committed
    topic: str
    since: str
    below: str
    until: str

    def __call__(self, version: str) -> bool:
        return version < self.until and self.committed.has(self.topic, version)


def committed_by(epochs: Epochs, begins: Mapping[Partition, int], positions: Mapping[Partition, int]) -> Committed:
    """What a stream has committed. `begins`: where it began in each partition, 0 where it began with the partition itself;
    `positions`: where it reads on."""
    offsets: dict[Place, tuple[int, int]] = {}
    for partition, position in positions.items():
        for epoch, start, end in _stretches(epochs, partition, position):
            begin = max(start, begins.get(partition, 0))
            offsets[partition[0], epoch, partition[1]] = begin, end
    return Committed(offsets)


def published_before(committed: Committed, place: Place, first: int, until: str) -> Published:
    """What is published for a change from this place. `first`: the first offset of the place that the task has read: what it
    wrote from there on belongs to the batch."""
    topic, epoch, partition = place
    begin, end = committed.offsets.get(place, (0, 0))
    since, below = (encode_version(epoch, partition, offset) for offset in (begin, min(end, first)))
    return Published(committed, topic, since, min(below, until), until)


def _stretches(epochs: Epochs, partition: Partition, position: int) -> Iterator[tuple[int, int, int]]:
    """The epochs of a partition up to a position, each with its first offset and the one after its last."""
    steps = epochs.steps.get(partition, ((0, 1),))
    starts = [0, *(offset for offset, _ in steps[1:]), position]
    for (_, epoch), (start, end) in zip(steps, pairwise(starts), strict=True):
        if start < min(end, position):
            yield epoch, start, min(end, position)
