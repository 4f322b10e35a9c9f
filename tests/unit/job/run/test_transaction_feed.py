"""The ends that a job reads of a transaction topic: from when on, and what it says where it cannot read."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, cast

from processor.engine.rounds.events import JobEvent
from processor.errors import KafkaError
from processor.job.run.feed import (
    LOOK_SECONDS,
    MARGIN_SECONDS,
    PARTITION_SECONDS,
    RECORDS_BEFORE,
    KafkaTransactionFeed,
)
from processor.values.framing import NO_SCHEMAS
from processor.values.record import Record, TransactionEnd

TOPIC = "app.transaction"


@dataclass
class ScriptedTopic:
    """A topic whose records are given. It refuses what a reader before `begin` would refuse."""

    records: list[Record] = field(default_factory=list)
    begun: list[float] = field(default_factory=list)
    before: list[int] = field(default_factory=list)
    kept: int = 0
    partitions: int = 1
    away: bool = False
    closed: int = 0
    seen: int = 1
    next: int | None = None

    def begin(self, at: float, before: int = 0) -> None:
        if self.away:
            raise KafkaError(f"there is no topic {TOPIC}")
        self.begun.append(at)
        self.before.append(before)
        self.seen = self.partitions
        self.next = max(0, sum(record.timestamp / 1000 < at for record in self.records) - min(before, self.kept))

    def grown(self) -> bool:
        return self.seen != self.partitions

    def read(self, most: int, seconds: float) -> list[Record]:
        assert self.next is not None
        if self.away:
            raise KafkaError("the broker is away")
        found = self.records[self.next : self.next + most]
        self.next += len(found)
        return found

    def close(self) -> None:
        self.closed += 1


@dataclass
class World:
    topic: ScriptedTopic = field(default_factory=ScriptedTopic)
    events: list[JobEvent] = field(default_factory=list)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.feed = KafkaTransactionFeed(
            open_reader=lambda _: cast(Any, self.topic),
            schemas=NO_SCHEMAS,
            report=self.events.append,
            now=lambda: self.now,
        )

    def produce(self, at: float, *values: Any) -> None:
        encoded = (v if isinstance(v, bytes | None) else json.dumps(v).encode() for v in values)
        self.topic.records += [
            Record(topic=TOPIC, partition=0, offset=n, timestamp=int(at * 1000), key=None, value=v)
            for n, v in enumerate(encoded, start=len(self.topic.records))
        ]

    def ends(self, since: float) -> list[str]:
        return ids(self.feed.ends(TOPIC, since))


def ids(ends: Iterable[TransactionEnd]) -> list[str]:
    return [one.id for one in ends]


def end(name: str) -> dict[str, Any]:
    counts = [{"data_collection": "public.a", "event_count": 1}]
    return {"status": "END", "id": name, "event_count": 1, "data_collections": counts}


def test_the_feed_begins_a_minute_before_the_oldest_record_and_gives_each_end_once() -> None:
    world = World()
    world.produce(900, end("early"))
    world.produce(960, end("a"), {"status": "BEGIN", "id": "b"}, {"schema": {}, "payload": end("b")})
    assert world.ends(1000) == ["a", "b"]
    assert world.ends(1000) == []
    world.produce(1010, end("c"))
    assert world.ends(1005) == ["c"]
    assert world.topic.begun == [1000 - MARGIN_SECONDS]
    assert world.events == []


def test_a_new_feed_also_gives_the_ends_of_before_however_old_and_when_each_came() -> None:
    world = World()
    world.topic.kept = 1
    world.produce(100, end("a"))
    world.produce(200, end("b"))
    world.produce(5000, end("b"))
    assert [(one.id, one.time) for one in world.feed.ends(TOPIC, 5000)] == [("b", 200.0), ("b", 5000.0)]
    world.ends(300)
    assert world.topic.before == [RECORDS_BEFORE, 0]


def test_an_older_record_takes_the_feed_back() -> None:
    world = World()
    world.produce(100, end("a"))
    world.produce(500, end("b"))
    assert world.ends(500) == ["b"]
    assert world.ends(120) == ["a", "b"]
    assert world.ends(500) == []


def test_after_a_while_without_a_question_the_feed_leaves_out_the_ends_between() -> None:
    world = World()
    world.produce(0, end("a"))
    assert world.ends(0) == ["a"]
    world.produce(500, end("b"))
    world.produce(1000, end("c"))
    world.now += MARGIN_SECONDS + 1
    assert world.ends(1000) == ["c"]
    assert world.ends(500) == ["b", "c"]


def test_a_new_partition_is_read_too() -> None:
    world = World()
    world.produce(0, end("a"))
    assert world.ends(0) == ["a"]
    world.topic.partitions = 2
    assert world.ends(0) == []
    world.now += PARTITION_SECONDS
    assert world.ends(0) == ["a"]


def test_a_topic_that_cannot_be_read_gives_nothing_and_is_named_once_until_it_is_there() -> None:
    world = World()
    world.topic.away = True
    world.produce(0, end("a"))
    assert world.ends(0) == []
    assert world.ends(0) == []
    world.now += LOOK_SECONDS
    assert world.ends(0) == []
    (said,) = world.events
    assert said.level == "warning"
    assert said.text == (
        f"topic {TOPIC}: the job cannot read it, so no transaction is complete (there is no topic {TOPIC}); `transactions` of an "
        "entity names the topic that provide.transaction.metadata=true fills"
    )
    world.topic.away = False
    assert world.ends(0) == [], "the feed waits between two tries"
    world.now += LOOK_SECONDS
    assert world.ends(0) == ["a"]
    assert [event.level for event in world.events] == ["warning", "info"]
    world.topic.away = True
    assert world.ends(0) == []
    assert len(world.events) == 3
    assert world.topic.closed == 3


def test_a_record_that_is_no_end_is_counted_and_named_once() -> None:
    world = World()
    world.produce(0, b"{", b"\0\0\0\0\1x", {"op": "c"}, None, end("a"))
    assert world.ends(0) == ["a"]
    assert world.feed.unreadable[TOPIC] == 3
    (said,) = world.events
    assert said.text.startswith(f"topic {TOPIC}: partition 0, offset 0 is no begin and no end of a transaction")


def test_the_feed_closes_what_it_opened() -> None:
    world = World()
    world.ends(0)
    world.feed.close()
    assert world.topic.closed == 1
