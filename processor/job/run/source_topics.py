"""The topics that the job reads, as the broker has them.

A topic that does not exist yet stops nothing: its entity has no rows, and the stream begins again once the topic is there. A
source may make the topic of a table with its first row. If none of the topics exists for GRACE_SECONDS, a person must act: the
names are wrong, or nothing writes to this broker. A topic that the job has read, and that is gone, is a failure: somebody deleted
it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from processor.engine.protocol.epochs import last_topic
from processor.engine.rounds.events import JobEvent, Report
from processor.errors import BoundaryError, KafkaError
from processor.text import duration_text, nearest_topic
from registry.model import EpochBoundary

LOOK_SECONDS = 10.0
"""Between two questions to the broker about topics that are missing."""
ANSWER_SECONDS = 5.0
"""The longest wait for an answer about missing topics: the job must stop within 10 s of a signal."""
GRACE_SECONDS = 300.0
"""A job whose topics are all missing is wrong after this time: the connector may start after the job."""


class TopicAdmin(Protocol):
    """Kafka's administration (`processor.job.kafka.admin`): the topics among the given ones that exist, and the names of all."""

    def topics(self, names: Sequence[str], seconds: float) -> Mapping[str, object]: ...

    def names(self, seconds: float) -> frozenset[str]: ...


class BoundaryRegistry(Protocol):
    """The registry: the recorded boundaries of topics, and of all topics that entities ever read."""

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> Sequence[EpochBoundary]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingTopic:
    """A topic that does not exist. `since`: when the job missed it first, on its clock; `near`: the nearest topic of the broker
    that no entity reads; None where none is near."""

    topic: str
    entity: str
    since: float
    near: str | None

    @property
    def named(self) -> str:
        """Its name, with the nearest one."""
        return f"{self.topic} (the broker has {self.near})" if self.near else self.topic


@dataclass(slots=True, kw_only=True)
class SourceTopics:
    """The topics of the present stream, and those of the next one.

    now: the job's clock, in seconds.
    readers: each topic to read and its entity, at the last look. present: those of them that existed then; missing: the others.
    streamed: the topics that the stream reads.
    """

    admin: TopicAdmin
    registry: BoundaryRegistry
    now: Callable[[], float]
    report: Report
    readers: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, MissingTopic] = field(default_factory=dict)
    streamed: frozenset[str] = frozenset()
    next_look: float = 0.0
    said: str = ""

    @property
    def present(self) -> frozenset[str]:
        """The topics to read that exist."""
        return frozenset(self.readers.keys() - self.missing.keys())

    def look(self, readers: Mapping[str, str]) -> None:
        """Asks the broker which topics exist: when others are to read than before, and now and then while some are missing. A
        broker that does not answer the second question changes nothing: the monitor names it.

        Raises BoundaryError when one is gone that its entity has read.
        """
        same = readers == self.readers
        if same and (not self.missing or self.now() < self.next_look):
            return
        try:
            missing = self.find_missing(readers)
            found = self._describe(readers, missing)
        except KafkaError:
            if not same:
                raise
        else:
            self._tell(found, readers)
            self.readers, self.missing = dict(readers), found
            self._tell_wrong()
        self.next_look = self.now() + LOOK_SECONDS

    def find_missing(self, readers: Mapping[str, str]) -> frozenset[str]:
        """The topics among these that do not exist yet. Raises BoundaryError when one is gone that its entity has read."""
        missing = sorted(readers.keys() - self.admin.topics(sorted(readers), ANSWER_SECONDS).keys())
        for topic in missing:
            entity = readers[topic]
            if last_topic(self.registry.epochs([topic], [entity]), entity) == topic:
                raise BoundaryError(
                    f"topic {topic} is gone, and entity {entity} has read it: create it again, run `statestore epoch {topic}`, "
                    "and start with a new checkpoint; or give the entity another `topic`"
                )
        return frozenset(missing)

    def outdated(self, readers: Mapping[str, str]) -> bool:
        """Whether the stream reads other topics than it should."""
        return readers != self.readers or self.streamed != self.present

    @property
    def wrong(self) -> str:
        """Why a person must act, empty where nobody must: none of the topics exists for a long time."""
        if not self.missing or self.present:
            return ""
        seconds = self.now() - max(one.since for one in self.missing.values())
        if seconds < GRACE_SECONDS:
            return ""
        names = ", ".join(one.named for one in self.missing.values())
        return (
            f"the job reads nothing: none of its topics exists, for {duration_text(seconds)}: {names}; correct `topic` of the "
            "entities and --bootstrap-servers, or start what writes the topics"
        )

    def _describe(self, readers: Mapping[str, str], missing: Collection[str]) -> dict[str, MissingTopic]:
        """The missing topics, each with the nearest name."""
        others = self.admin.names(ANSWER_SECONDS) - readers.keys() if missing else frozenset[str]()
        return {
            topic: MissingTopic(
                topic=topic,
                entity=readers[topic],
                since=self.missing[topic].since if topic in self.missing else self.now(),
                near=nearest_topic(topic, others),
            )
            for topic in sorted(missing)
        }

    def _tell(self, found: Mapping[str, MissingTopic], readers: Mapping[str, str]) -> None:
        """Reports each topic that is missing now and was not before, and each that is there at last."""
        for topic, one in found.items():
            if topic not in self.missing:
                near = f"; the broker has {one.near}" if one.near else ""
                text = (
                    f"topic {topic} of entity {one.entity} does not exist{near}: the job reads it from its first record once it "
                    "is there; create it, or correct `topic` of the entity"
                )
                self.report(JobEvent(what="missing topic", text=text, level="warning"))
        for topic in sorted(self.missing.keys() & readers.keys() - found.keys()):
            self.report(
                JobEvent(what="found topic", text=f"topic {topic} is there: the job reads it from its first record")
            )

    def _tell_wrong(self) -> None:
        """Reports once that none of the topics exists."""
        if self.wrong and not self.said:
            self.report(JobEvent(what="no topic", text=self.wrong, level="error"))
        self.said = self.wrong
