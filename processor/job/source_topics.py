"""The topics that the job reads, as the broker has them.

A topic that does not exist yet stops nothing: its entity has no rows, and the stream begins again once the topic is there. A
topic that the job has read, and that is gone, is a failure: somebody deleted it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from processor.errors import BoundaryError
from processor.progress.epochs import last_topic
from processor.rounds.job_event import JobEvent, Report
from registry.model import EpochBoundary

LOOK_SECONDS = 10.0
"""Between two questions to the broker about topics that are missing."""


class TopicAdmin(Protocol):
    """Kafka's administration (`processor.job.kafka.admin`): the topics among the given ones that exist."""

    def topics(self, names: Sequence[str]) -> Mapping[str, object]: ...


class BoundaryRegistry(Protocol):
    """The registry: the recorded boundaries of topics, and of all topics that entities ever read."""

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> Sequence[EpochBoundary]: ...


@dataclass(slots=True, kw_only=True)
class SourceTopics:
    """The topics of the present stream, and those of the next one.

    now: the job's clock, in seconds.
    readers: each topic to read and its entity, at the last look. present: those of them that existed then.
    streamed: the topics that the stream reads.
    """

    admin: TopicAdmin
    registry: BoundaryRegistry
    now: Callable[[], float]
    report: Report
    readers: Mapping[str, str] = field(default_factory=dict)
    present: frozenset[str] = frozenset()
    streamed: frozenset[str] = frozenset()
    next_look: float = 0.0

    def look(self, readers: Mapping[str, str]) -> None:
        """Asks the broker which topics exist: when others are to read than before, and now and then while some are missing.

        Raises BoundaryError when one is gone that its entity has read.
        """
        same = readers == self.readers
        if same and (self.present == readers.keys() or self.now() < self.next_look):
            return
        missing = self.find_missing(readers)
        for topic in sorted(missing - (self.readers.keys() - self.present)):
            text = (
                f"topic {topic} of entity {readers[topic]} does not exist: the job reads it from its first record once it is "
                "there; create it, or correct `topic` of the entity"
            )
            self.report(JobEvent(what="missing topic", text=text, level="warning"))
        self.readers, self.present = dict(readers), frozenset(readers.keys() - missing)
        self.next_look = self.now() + LOOK_SECONDS

    def find_missing(self, readers: Mapping[str, str]) -> frozenset[str]:
        """The topics among these that do not exist yet. Raises BoundaryError when one is gone that its entity has read."""
        missing = sorted(readers.keys() - self.admin.topics(sorted(readers)).keys())
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
