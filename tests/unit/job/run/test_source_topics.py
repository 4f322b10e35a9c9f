"""Which topics a stream reads: those that exist, and those that appear later."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import pytest

from processor.errors import BoundaryError, KafkaError
from processor.job.run.topics import GRACE_SECONDS, LOOK_SECONDS, SourceTopics
from registry.model import EpochBoundary

USER = {"users": "user"}
BOTH = {"users": "user", "stars": "star"}


class Broker:
    """A broker's topics, a registry's boundaries, a clock, and what operators see."""

    def __init__(self, *topics: str) -> None:
        self.existing, self.seconds = {*topics}, 0.0
        self.read: list[EpochBoundary] = []
        self.asked, self.away = 0, False
        self.lines: list[str] = []

    def topics(self, names: Sequence[str], seconds: float) -> dict[str, int]:
        assert seconds <= 5
        self.asked += 1
        if self.away:
            raise KafkaError("cannot describe topic users at 127.0.0.1:9092: Local: Timed out")
        return dict.fromkeys(self.existing & {*names}, 1)

    def names(self, seconds: float) -> frozenset[str]:
        assert seconds <= 5
        return frozenset(self.existing)

    def epochs(self, topics: Collection[str], entities: Collection[str] = ()) -> list[EpochBoundary]:
        return [one for one in self.read if one.entity in entities]

    def source(self) -> SourceTopics:
        broker: Any = self
        return SourceTopics(
            admin=broker, registry=broker, now=lambda: self.seconds, report=lambda event: self.lines.append(event.text)
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
    assert broker.lines[1:] == ["topic stars is there: the job reads it from its first record"]


def test_a_topic_that_its_entity_has_read_is_gone_and_not_missing() -> None:
    broker = Broker("users")
    first = EpochBoundary(topic="stars", topic_id="1", partition=0, from_offset=0, epoch=1, entity="star")
    broker.read = [first]
    with pytest.raises(BoundaryError, match="topic stars is gone, and entity star has read it: create it again, run"):
        broker.source().look(BOTH)
    broker.read.append(replace(first, topic="stars2", epoch=2))
    broker.source().look(BOTH)


def test_a_missing_topic_is_named_with_the_nearest_topic_that_no_entity_reads() -> None:
    broker = Broker("users", "dev.public.stars", "unrelated")
    source = broker.source()
    source.look({"users": "user", "prod.public.stars": "star", "user": "guest"})
    first, second = broker.lines
    assert "topic prod.public.stars of entity star does not exist; the broker has dev.public.stars: the job" in first
    assert "topic user of entity guest does not exist: the job" in second, "users is the topic of another entity"
    assert source.wrong == ""


def test_without_any_of_its_topics_a_job_is_wrong_after_a_while_and_says_so_once() -> None:
    broker = Broker("dev.users", "dev.stars")
    source = broker.source()
    source.look(BOTH)
    while broker.seconds < GRACE_SECONDS - LOOK_SECONDS:
        broker.seconds += LOOK_SECONDS
        source.look(BOTH)
        assert source.wrong == ""
    for _ in range(3):
        broker.seconds += LOOK_SECONDS
        source.look(BOTH)
    assert source.wrong.startswith(
        "the job reads nothing: none of its topics exists, for 5 min 20 s: stars (the broker has dev.stars), "
        "users (the broker has dev.users); correct `topic` of the entities"
    )
    assert [line.startswith("the job reads nothing") for line in broker.lines] == [False, False, True]
    broker.existing.add("users")
    broker.seconds += LOOK_SECONDS
    source.look(BOTH)
    assert source.wrong == ""


def test_a_broker_that_is_away_changes_nothing_for_a_stream_that_misses_a_topic() -> None:
    broker = Broker("users")
    source = broker.source()
    source.look(BOTH)
    source.streamed = source.present
    broker.away = True
    broker.seconds += LOOK_SECONDS
    source.look(BOTH)
    assert not source.outdated(BOTH)
    with pytest.raises(KafkaError):
        source.look(USER)
    broker.away = False
    broker.existing.add("stars")
    broker.seconds += LOOK_SECONDS
    source.look(BOTH)
    assert source.outdated(BOTH)
