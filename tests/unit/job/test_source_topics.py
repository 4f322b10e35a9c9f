"""Which topics a stream reads: those that exist, and those that appear later."""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from processor.errors import BoundaryError
from processor.job.source_topics import LOOK_SECONDS, SourceTopics
from registry.model import EpochBoundary

USER = {"users": "user"}
BOTH = {"users": "user", "stars": "star"}


class Broker:
    """A broker's topics, a registry's boundaries, a clock, and what operators see."""

    def __init__(self, *topics: str) -> None:
        self.existing, self.seconds = {*topics}, 0.0
        self.read: list[EpochBoundary] = []
        self.asked = 0
        self.lines: list[str] = []

    def topics(self, names: Sequence[str]) -> dict[str, int]:
        self.asked += 1
        return dict.fromkeys(self.existing & {*names}, 1)

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> list[EpochBoundary]:
        return [one for one in self.read if one.entity in entities]

    def source(self) -> SourceTopics:
        return SourceTopics(
            admin=self, registry=self, now=lambda: self.seconds, report=lambda event: self.lines.append(event.text)
        )


def test_a_stream_reads_the_topics_that_exist_and_asks_again_only_for_others() -> None:
    broker = Broker("users")
    source = broker.source()
    source.look(USER)
    assert source.present == {"users"}
    assert source.outdated(USER)
    source.streamed = source.present
    broker.seconds += 2 * LOOK_SECONDS
    source.look(USER)
    assert not source.outdated(USER)
    assert broker.asked == 1
    assert source.outdated(BOTH)


def test_a_missing_topic_is_reported_once_and_outdates_the_stream_when_it_appears() -> None:
    broker = Broker("users")
    source = broker.source()
    source.look(BOTH)
    source.streamed = source.present
    source.look(BOTH)
    assert broker.asked == 1
    broker.seconds += LOOK_SECONDS
    source.look(BOTH)
    assert not source.outdated(BOTH)
    (line,) = broker.lines
    assert line.startswith("topic stars of entity star does not exist: ")
    broker.existing.add("stars")
    broker.seconds += LOOK_SECONDS
    source.look(BOTH)
    assert source.present == BOTH.keys()
    assert source.outdated(BOTH)


def test_a_topic_that_its_entity_has_read_is_gone_and_not_missing() -> None:
    broker = Broker("users")
    first = EpochBoundary(topic="stars", topic_id="1", partition=0, from_offset=0, epoch=1, entity="star")
    broker.read = [first]
    with pytest.raises(BoundaryError, match="topic stars is gone, and entity star has read it: create it again, run"):
        broker.source().look(BOTH)
    broker.read.append(replace(first, topic="stars2", epoch=2))
    broker.source().look(BOTH)
