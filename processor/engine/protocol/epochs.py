"""The epoch of a record: a stored function of its topic's incarnation, its partition and its offset, never of the run.

A topic that was created again starts its offsets again, and added partitions move keys to other offsets. An entity that
gets another topic reads other offsets, too. Each such boundary raises the epoch of the records after it, so that
versions (epoch, offset) keep rising for every key. The epochs of an entity rise over all topics that it ever had.

`Committed` says which records batches have committed: only what a committed batch wrote is published for sure (rule 3).

The checkpoint says how far the stream has read each partition, and where it began. Below its begin all is unknown: an earlier
checkpoint, a former incarnation of the topic or a former topic of the entity may have had a batch that wrote rows and then
crashed. A row of such a record counts as not published. Its next change costs one more write, and finds its documents again.

Entities that share a topic, each with its `table`, have the same boundaries of it, each its own rows in the registry. An entity
that comes later takes over those that the topic has, so no record gets another epoch. The job then reads the topic again from
its begin: for the others these records are replays.

Moves of entities to another topic: when an entity leaves the topic that it reads, and where its epochs begin then (rule 2).

An edit gives an entity another topic. The job reads the former topic on until both hold:

    1. the next topic has a record for the entity: until then its producer may still write to the former one
    2. the job has read the former topic up to the end that it had then

Then the epochs of both topics begin: in the former one where the job has read it, for the time when the entity comes back to
it; in the next one at its first record, or where the entity left it. So a record never gets another epoch, and all records of
the entity have versions in the order in which it read them. These boundaries are the move: before them a start continues with the
former topic, and after them with the next one.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from processor.values.record import Record
from registry.model import EpochBoundary
from statestore.items import decode_version, encode_version

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


def reader_of(entities: Iterable[str]) -> str:
    """The reader of a topic: the name of its entity, or the names of those that share it."""
    return ", ".join(sorted(entities))


def entities_of(reader: str) -> list[str]:
    """The entities of a reader."""
    return reader.split(", ")


def topic_readers(topics: Mapping[str, str]) -> dict[str, str]:
    """Topic -> its reader. `topics`: of each entity; an entity without one reads none."""
    return {
        topic: reader_of(name for name, own in topics.items() if own == topic) for topic in topics.values() if topic
    }


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
    partition. `until`: the version of the first truncate whose walk still runs: its markers are not published."""

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


class TopicEnds(NamedTuple):
    """A topic at the broker: the id of its incarnation, and where each partition begins and ends."""

    id: str
    marks: Mapping[int, tuple[int, int]]

    @property
    def ends(self) -> dict[int, int]:
        """Where each partition ends."""
        return {p: end for p, (_, end) in self.marks.items()}


def former_topics(topics: Mapping[str, str], boundaries: Sequence[EpochBoundary]) -> dict[str, str]:
    """Entity -> the topic that it read last, for each entity that has another one now. `topics`: of each entity."""
    last = {entity: last_topic(boundaries, entity) for entity in topics}
    return {entity: topic for entity, topic in last.items() if topic is not None and topic != topics[entity]}


def move_lines(topics: Mapping[str, str], boundaries: Sequence[EpochBoundary]) -> Iterator[str]:
    """The moves that a job has yet to make, as text for an operator. `topics`: of each entity."""
    for entity, former in sorted(former_topics(topics, boundaries).items()):
        topic = topics[entity]
        yield (
            f"entity {entity} moves from topic {former} to {topic}: once {topic} has a new record, the job reads {former} to its "
            f"end, and then {topic}. Let the source end its writes to {former} before it writes to {topic}. `statestore epoch "
            f"{topic}` gives up the rest of {former}"
        )


def due_moves(
    former: Mapping[str, str],
    topics: Mapping[str, str],
    positions: Mapping[Partition, int],
    broker: Mapping[str, TopicEnds],
    boundaries: Sequence[EpochBoundary],
) -> frozenset[str]:
    """The entities that can leave their former topics now. An entity waits while another one still reads its next topic.

    Args:
        former: as `former_topics` gives it.
        topics: of each entity.
        positions: where the job reads on in each partition.
        broker: the topics that exist, of all of these.
        boundaries: of these topics and entities.
    """
    due = {
        entity
        for entity, topic in former.items()
        if has_begun(entity, topics[entity], broker, boundaries) and is_read(topic, positions, broker.get(topic))
    }
    while waiting := {one for one in due if topics[one] in {former[other] for other in former.keys() - due}}:
        due -= waiting
    return frozenset(due)


def is_read(topic: str, positions: Mapping[Partition, int], present: TopicEnds | None) -> bool:
    """Whether the job has read every record of a topic; of one that does not exist, too."""
    marks = present.marks.items() if present else ()
    return all(positions.get((topic, p), begin) >= end for p, (begin, end) in marks)


def has_begun(entity: str, topic: str, broker: Mapping[str, TopicEnds], boundaries: Sequence[EpochBoundary]) -> bool:
    """Whether the topic has had a record that the entity will read when it moves there."""
    if topic not in broker:
        return False
    present = broker[topic]
    begins = first_offsets(entity, topic, present.id, present.marks, boundaries)
    return any(end > begins[p] for p, (_, end) in present.marks.items())


def move_boundaries(
    entity: str,
    former: str,
    topic: str,
    positions: Mapping[Partition, int],
    broker: Mapping[str, TopicEnds],
    boundaries: Sequence[EpochBoundary],
) -> list[EpochBoundary]:
    """The boundaries of a move: first those at which the entity leaves its former topic, if it still exists. `positions`: where
    the job reads on in each partition."""
    new: list[EpochBoundary] = []
    for name in (former, topic):
        if name in broker:
            known = [*boundaries, *new]
            present = broker[name]
            begins = {p: positions.get((former, p), begin) for p, (begin, _) in present.marks.items()}
            if name == topic:
                begins = first_offsets(entity, topic, present.id, present.marks, boundaries)
            epoch = next_epoch(known, entity, name)
            new += [
                EpochBoundary(topic=name, topic_id=present.id, partition=p, from_offset=at, epoch=epoch, entity=entity)
                for p, at in sorted(begins.items())
            ]
    return new


def first_offsets(
    entity: str, topic: str, topic_id: str, partitions: Iterable[int], boundaries: Iterable[EpochBoundary]
) -> dict[int, int]:
    """Where the entity begins to read a topic in each partition: where it left this incarnation, else at the first record."""
    left = [b for b in boundaries if (b.topic, b.topic_id, b.entity) == (topic, topic_id, entity)]
    newest = max((b.epoch for b in left), default=0)
    return dict.fromkeys(partitions, 0) | {b.partition: b.from_offset for b in left if b.epoch == newest}


def begin_of_stay(reader: str, topic: str, boundaries: Iterable[EpochBoundary]) -> dict[int, int]:
    """Where the records begin in each partition that an entity of the reader has read since it came to this topic, the last
    time."""
    known = list(boundaries)
    begins: dict[int, int] = {}
    for entity in entities_of(reader):
        before = max((b.epoch for b in known if b.entity == entity and b.topic != topic), default=0)
        for b in known:
            if b.topic == topic and b.epoch > before:
                begins[b.partition] = min(b.from_offset, begins.get(b.partition, b.from_offset))
    return begins
