"""Checks, before the first write of a batch, that its topics are the ones that the epochs were recorded for (rule 2)."""

from collections.abc import Iterable

from processor.errors import BoundaryError
from processor.kafka import Admin, Topic
from processor.model.epochs import Boundary, Epochs, Partition, epochs
from registry.model import EpochBoundary
from registry.repository import Registry


def check_topics(registry: Registry, admin: Admin, partitions: Iterable[Partition]) -> Epochs:
    """The epochs of the batch's records. A topic seen for the first time is recorded; one that changed raises BoundaryError."""
    names = sorted({topic for topic, _ in partitions})
    boundaries = [_boundary(b) for b in registry.epochs(names)]
    topics = admin.topics(names)
    new = [b for name in names if name in topics for b in _check(name, topics[name], boundaries)]
    if new:
        registry.add_epochs([_entry(b) for b in new])
    return epochs([*boundaries, *new])


def _check(name: str, topic: Topic, boundaries: Iterable[Boundary]) -> list[Boundary]:
    """Boundaries to record for a topic that is seen for the first time."""
    known = [b for b in boundaries if b.topic == name]
    if not known:
        return [
            Boundary(topic=name, topic_id=topic.id, partition=p, from_offset=0, epoch=1)
            for p in range(topic.partitions)
        ]
    present = max(known, key=lambda b: b.epoch)
    recorded = len({b.partition for b in known if b.topic_id == present.topic_id})
    cure = f"pause its producer, then run `statestore epoch {name}`, and start again"
    if present.topic_id != topic.id:
        raise BoundaryError(
            f"topic {name} was created anew (id {topic.id}, recorded {present.topic_id}): {cure} with a new checkpoint: "
            "the old one counts the offsets of the topic that is gone"
        )
    if recorded != topic.partitions:
        raise BoundaryError(f"topic {name} has {topic.partitions} partitions, recorded {recorded}: {cure}")
    return []


def record_boundary(registry: Registry, admin: Admin, name: str) -> list[Boundary]:
    """Records where the next epoch of a topic begins: at the present end of each partition, or at 0 of a topic created anew."""
    known = [_boundary(b) for b in registry.epochs([name])]
    topic = admin.topics([name]).get(name)
    if topic is None:
        raise BoundaryError(f"there is no topic {name}; create it first")
    highest = max((b.epoch for b in known), default=0)
    anew = all(b.topic_id != topic.id for b in known)
    ends = dict.fromkeys(range(topic.partitions), 0) if anew else admin.ends(name)
    seen = {b.partition for b in known if b.topic_id == topic.id}
    new = [
        Boundary(topic=name, topic_id=topic.id, partition=p, from_offset=end if p in seen else 0, epoch=highest + 1)
        for p, end in sorted(ends.items())
    ]
    registry.add_epochs([_entry(b) for b in new])
    return new


def _boundary(b: EpochBoundary) -> Boundary:
    return Boundary(topic=b.topic, topic_id=b.topic_id, partition=b.partition, from_offset=b.from_offset, epoch=b.epoch)


def _entry(b: Boundary) -> EpochBoundary:
    return EpochBoundary(
        topic=b.topic, topic_id=b.topic_id, partition=b.partition, from_offset=b.from_offset, epoch=b.epoch
    )
