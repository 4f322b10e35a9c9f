"""The moves of a job's entities to other topics: the job reads a former topic to its end before the next one
(`processor.engine.protocol.epochs`)."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from processor.engine.plan.plan import Plan
from processor.engine.protocol.epochs import (
    Partition,
    TopicEnds,
    due_moves,
    former_topics,
    has_begun,
    last_topic,
    move_boundaries,
)
from processor.engine.rounds.events import JobEvent, Report
from processor.job.kafka.admin import Admin
from registry.model import EpochBoundary
from registry.repository import Registry

LOOK_SECONDS = 1.0
"""Between two questions to the broker and the registry, while an entity waits for its next topic."""


@dataclass(slots=True, kw_only=True)
class EntityMoves:
    """The moves that the job has yet to make.

    now: the job's clock, in seconds.
    plan: the job's plan, with the topics that the registry has.
    former: entity -> the topic that the job reads until the entity moves.
    targets: a former topic -> where each partition ended when the next topic had begun.
    due: whether a move can be made, or somebody else made it: the stream must begin again.
    looked_at: the positions at the last look. next_look: when the next one is due, on the job's clock.
    """

    registry: Registry
    admin: Admin
    now: Callable[[], float]
    report: Report
    plan: Plan | None = None
    former: Mapping[str, str] = field(default_factory=dict)
    targets: dict[str, TopicEnds] = field(default_factory=dict)
    due: bool = False
    looked_at: Mapping[Partition, int] = field(default_factory=dict)
    next_look: float = -math.inf

    def fit(self, plan: Plan) -> Plan:
        """The plan that the job works by: where an entity has yet to leave a former topic, it reads that. Of a former topic that
        is gone, or that somebody created again, nothing remains to read: the entity moves at once. Meanwhile another entity that
        has the former topic now reads none."""
        topics = _topics(plan)
        boundaries = self._boundaries(topics)
        last = former_topics(topics, boundaries)
        present = self.admin.topics(sorted({*last.values(), *(topics[entity] for entity in last)})) if last else {}
        ids = {b.topic: b.topic_id for b in sorted(boundaries, key=lambda b: b.epoch)}
        former = {
            entity: topic for entity, topic in last.items() if topic in present and present[topic].id == ids[topic]
        }
        for entity, topic in sorted(former.items()):
            if self.former.get(entity) != topic:
                new = topics[entity]
                text = (
                    f"entity {entity} has topic {new} now: the job reads {topic} to its end, once {new} has a new record, and "
                    f"then {new}"
                )
                if new not in present:
                    text += f"; {new} does not exist yet"
                self.report(JobEvent(what="topic changed", text=text))
        self.plan, self.former, self.due, self.next_look = plan, former, False, -math.inf
        self.targets = {topic: ends for topic, ends in self.targets.items() if topic in former.values()}
        others = {
            entity: topic for entity, topic in topics.items() if entity not in former and topic in former.values()
        }
        waiting = {entity: "" for entity, topic in others.items() if last_topic(boundaries, entity) != topic}
        return plan.with_topics({**former, **waiting})

    def look(self, positions: Mapping[Partition, int]) -> bool:
        """Whether a move is due. Asks broker and registry after each batch, and now and then. `positions`: where the job reads on
        in each partition."""
        if self.former and not self.due and (positions != self.looked_at or self.now() >= self.next_look):
            self.looked_at, self.next_look = dict(positions), self.now() + LOOK_SECONDS
            self.due = self.is_outdated() or bool(self._due_now(positions))
        return self.due

    def is_outdated(self) -> bool:
        """Whether an operator made a move that the job waits for (`statestore epoch`): then the former topic is none of the
        entity's any more, and no batch may read it."""
        if not self.former:
            return False
        assert self.plan is not None
        topics = _topics(self.plan)
        last = former_topics(topics, self._boundaries(topics))
        outdated = any(last.get(entity) != topic for entity, topic in self.former.items())
        self.due = self.due or outdated
        return outdated

    def make(self, positions: Mapping[Partition, int]) -> Plan | None:
        """Makes the moves that are due; returns the plan to go on by, None where nothing moved. `positions`: where the next batch
        begins, by the checkpoint. No stream may run."""
        if self.plan is None or not self.former:
            return None
        topics = _topics(self.plan)
        outdated = self.is_outdated()
        moving = frozenset() if outdated else self._due_now(positions)
        new: list[EpochBoundary] = []
        if moving:
            boundaries, broker = self._boundaries(topics), self._broker()
            for entity in sorted(moving):
                former = self.former[entity]
                new += move_boundaries(entity, former, topics[entity], positions, broker, [*boundaries, *new])
            self.registry.add_epochs(new)
        self.due = False
        if not (moving or outdated):
            return None
        for entity in sorted(moving):
            former = self.former[entity]
            ends = ", ".join(f"{b.partition}: {b.from_offset}" for b in new if (b.entity, b.topic) == (entity, former))
            text = (
                f"entity {entity} has left topic {former} (partition: offset {ends}) and reads {topics[entity]}: the job reads "
                f"no later record of {former}"
            )
            self.report(JobEvent(what="topic left", text=text))
        return self.fit(self.plan)

    def _due_now(self, positions: Mapping[Partition, int]) -> frozenset[str]:
        """The entities that can move now. The end of a former topic counts as it was when the next one had begun, so a producer
        that still writes to it holds nothing up."""
        assert self.plan is not None
        topics, broker = _topics(self.plan), self._broker()
        boundaries = self._boundaries(topics)
        for entity, topic in self.former.items():
            if topic in broker and has_begun(entity, topics[entity], broker, boundaries):
                broker[topic] = self.targets.setdefault(topic, broker[topic])
        return due_moves(self.former, topics, positions, broker, boundaries)

    def _broker(self) -> dict[str, TopicEnds]:
        """The former and the next topics that exist."""
        assert self.plan is not None
        topics = _topics(self.plan)
        named = {*self.former.values(), *(topics[entity] for entity in self.former)}
        present = self.admin.topics(sorted(named))
        return {name: TopicEnds(one.id, self.admin.watermarks(name)) for name, one in present.items()}

    def _boundaries(self, topics: Mapping[str, str]) -> Sequence[EpochBoundary]:
        return self.registry.epochs(sorted(topics.values()), sorted(topics))


def _topics(plan: Plan) -> dict[str, str]:
    """The topic of each entity."""
    return {name: entity.entity.topic for name, entity in plan.entities.items()}
