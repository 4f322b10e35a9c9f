"""Checks, before the first write of a batch, that its topics are the recorded ones; records where epochs begin (rule
2)."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from processor.engine.protocol.epochs import Epochs, Partition, last_topic, next_epoch, read_epochs
from processor.engine.protocol.topic_moves import first_offsets
from processor.errors import BoundaryError
from processor.job.kafka.admin import Admin, TopicDescription
from registry.model import EpochBoundary
from registry.repository import Registry


def check_topics(
    registry: Registry, admin: Admin, partitions: Iterable[Partition], readers: Mapping[str, str]
) -> Epochs:
    """The epochs of the batch's records. `readers`: the entity that reads each topic. Records a topic that its entity
    reads for the first time; raises BoundaryError for a changed one."""
    names = sorted({topic for topic, _ in partitions})
    boundaries = list(registry.epochs(names, [readers[name] for name in names]))
    topics = admin.topics(names)
    new: list[EpochBoundary] = []
    for name in names:
        if name in topics:
            new += new_boundaries(name, topics[name], readers[name], [*boundaries, *new])
    if new:
        registry.add_epochs(new)
    return read_epochs([*boundaries, *new])


def new_boundaries(
    name: str, topic: TopicDescription, reader: str, boundaries: Sequence[EpochBoundary]
) -> list[EpochBoundary]:
    """The boundaries to record for a topic that its entity reads for the first time, or again after another topic. Raises
    BoundaryError for a topic that changed."""
    if last_topic(boundaries, reader) != name:
        begins = first_offsets(reader, name, topic.id, range(topic.partitions), boundaries)
        return boundaries_of(name, topic, reader, next_epoch(boundaries, reader, name), begins)
    known = [b for b in boundaries if b.topic == name]
    present = max(known, key=lambda b: b.epoch)
    recorded = len({b.partition for b in known if b.topic_id == present.topic_id})
    cure = f"pause its producer, then run `statestore epoch {name}`, and start again"
    if present.topic_id != topic.id:
        raise BoundaryError(
            f"topic {name} was deleted and created again (id {topic.id}, recorded {present.topic_id}): {cure} with a new "
            "checkpoint: the old checkpoint counts the offsets of the deleted topic"
        )
    if recorded != topic.partitions:
        raise BoundaryError(f"topic {name} has {topic.partitions} partitions, recorded {recorded}: {cure}")
    return []


def record_boundary(registry: Registry, admin: Admin, name: str, *, who: str, why: str) -> list[EpochBoundary]:
    """Records where the next epoch of a topic begins: at the present end of each partition, or at 0 of a topic that was
    created again, or that its entity has yet to read. An erasure learns from a boundary at an end that the broker has lost
    records. `who`, `why`: for the history."""
    reader = next((entity.name for entity in registry.snapshot().entities if entity.topic == name), "")
    reader = reader or _leaving_reader(registry, name)
    known = registry.epochs([name], [reader] if reader else [])
    topic = admin.topics([name]).get(name)
    if topic is None:
        raise BoundaryError(f"there is no topic {name}; create it first")
    seen = {b.partition for b in known if (b.topic, b.topic_id) == (name, topic.id)}
    moved = last_topic(known, reader) != name
    ends = dict.fromkeys(range(topic.partitions), 0) if moved or not seen else admin.ends(name)
    begins = {p: end if p in seen else 0 for p, end in ends.items()}
    goes_on = frozenset() if moved else seen
    new = boundaries_of(name, topic, reader, next_epoch(known, reader, name), begins, goes_on)
    registry.record_epochs(new, who=who, why=why)
    return new


def _leaving_reader(registry: Registry, topic: str) -> str:
    """The entity that reads the topic to its end, because it has another one now; empty where there is none."""
    entities = [entity.name for entity in registry.snapshot().entities]
    boundaries = registry.epochs([topic], entities)
    return next((entity for entity in entities if last_topic(boundaries, entity) == topic), "")


def boundaries_of(
    name: str,
    topic: TopicDescription,
    reader: str,
    epoch: int,
    from_offsets: Mapping[int, int],
    at_ends: Collection[int] = (),
) -> list[EpochBoundary]:
    """The boundaries at which an epoch of a topic begins, one for each partition. `at_ends`: the partitions that end there."""
    return [
        EpochBoundary(
            topic=name, topic_id=topic.id, partition=p, from_offset=at, epoch=epoch, entity=reader, at_end=p in at_ends
        )
        for p, at in sorted(from_offsets.items())
    ]
