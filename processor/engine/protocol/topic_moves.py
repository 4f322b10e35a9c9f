"""Moves of entities to another topic: when an entity leaves the topic that it reads, and where its epochs begin then (rule 2).

An edit gives an entity another topic. The job reads the former topic on until both hold:

    1. the next topic has a record for the entity: until then its producer may still write to the former one
    2. the job has read the former topic up to the end that it had then

Then the epochs of both topics begin: in the former one where the job has read it, for the time when the entity comes back to it;
in the next one at its first record, or where the entity left it. So a record never gets another epoch, and all records of the
entity have versions in the order in which it read them. These boundaries are the move: before them a start goes on with the
former topic, and after them with the next one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from processor.engine.protocol.epochs import Partition, last_topic, next_epoch
from registry.model import EpochBoundary


class TopicEnds(NamedTuple):
    """A topic as the broker has it: the id of its incarnation, and where each partition begins and ends."""

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


def begin_of_stay(entity: str, topic: str, boundaries: Iterable[EpochBoundary]) -> dict[int, int]:
    """Where the records begin in each partition that the entity has read since it came to this topic, the last time."""
    known = list(boundaries)
    before = max((b.epoch for b in known if b.entity == entity and b.topic != topic), default=0)
    begins: dict[int, int] = {}
    for b in known:
        if b.topic == topic and b.epoch > before:
            begins[b.partition] = min(b.from_offset, begins.get(b.partition, b.from_offset))
    return begins
