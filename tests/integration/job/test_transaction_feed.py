"""The ends of transactions on a real broker: from a moment on, in all partitions, and of committed records only."""

import json
from collections.abc import Iterator
from time import monotonic, sleep, time

import pytest
from confluent_kafka import Producer

from processor.engine.rounds.events import JobEvent
from processor.environment.embedded import Addresses
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.run import feed as feeds
from processor.job.run.feed import KafkaTransactionFeed, transaction_feed
from processor.values.framing import NO_SCHEMAS
from processor.values.record import Message

pytestmark = pytest.mark.plain
NOW = time()


@pytest.fixture
def events() -> list[JobEvent]:
    return []


@pytest.fixture
def feed(
    addresses: Addresses, events: list[JobEvent], monkeypatch: pytest.MonkeyPatch
) -> Iterator[KafkaTransactionFeed]:
    monkeypatch.setattr(feeds, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(feeds, "RECORDS_BEFORE", 0)
    made = transaction_feed(Settings(bootstrap_servers=addresses.bootstrap_servers), NO_SCHEMAS, events.append)
    yield made
    made.close()


def end(name: str) -> bytes:
    counts = [{"data_collection": "public.orders", "event_count": 2}]
    return json.dumps({"status": "END", "id": name, "event_count": 2, "data_collections": counts}).encode()


def produce(addresses: Addresses, topic: str, *records: tuple[int, float, str]) -> None:
    """Each record: its partition, its time, and the id of the transaction that it ends."""
    outbox = KafkaOutbox(addresses.bootstrap_servers, {})
    for partition, at, name in records:
        outbox.produce(Message(topic, name.encode(), end(name)), partition, int(at * 1000))
    outbox.flush()


def collect(feed: KafkaTransactionFeed, topic: str, since: float, wanted: set[str]) -> list[str]:
    """The ids that come until all wanted ones are there."""
    found: list[str] = []
    until = monotonic() + 60
    while not wanted <= {*found}:
        assert monotonic() < until, found
        found += [one.id for one in feed.ends(topic, since)]
        sleep(0.01)
    return found


def test_a_new_feed_gives_some_ends_of_before_with_their_times(
    addresses: Addresses, feed: KafkaTransactionFeed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "RECORDS_BEFORE", 2)
    topic = "before.transaction"
    Admin(addresses.bootstrap_servers, {}).ensure([topic], partitions=2, compacted=True)
    produce(addresses, topic, *((0, NOW - 900 + n, name) for n, name in enumerate("abc")), (0, NOW, "d"), (1, NOW, "e"))
    found: dict[str, float] = {}
    until = monotonic() + 60
    while not {"d", "e"} <= found.keys():
        assert monotonic() < until, found
        found |= {one.id: one.time for one in feed.ends(topic, NOW)}
    assert found.keys() == {"b", "c", "d", "e"}
    assert found["b"] == int((NOW - 899) * 1000) / 1000


def test_the_feed_begins_at_a_time_in_each_partition_and_goes_back_for_an_older_one(
    addresses: Addresses, feed: KafkaTransactionFeed, events: list[JobEvent]
) -> None:
    topic = "begins.transaction"
    Admin(addresses.bootstrap_servers, {}).ensure([topic], partitions=3, compacted=True)
    produce(addresses, topic, (0, NOW - 900, "a"), (1, NOW - 800, "b"), (0, NOW - 30, "c"), (1, NOW, "d"))
    assert sorted(collect(feed, topic, NOW, {"c", "d"})) == ["c", "d"]
    produce(addresses, topic, (2, NOW, "e"))
    assert collect(feed, topic, NOW, {"e"}) == ["e"]
    assert sorted(collect(feed, topic, NOW - 850, {"a", "b", "c", "d", "e"})) == ["a", "b", "c", "d", "e"]
    assert feed.ends(topic, NOW) == []
    began = monotonic()
    assert feed.ends(topic, NOW) == []
    assert monotonic() - began < 0.1, "at the end of the topic, a call does not wait"
    assert events == []


def test_the_feed_gives_no_end_of_an_open_or_aborted_transaction(
    addresses: Addresses, feed: KafkaTransactionFeed
) -> None:
    topic = "aborted.transaction"
    Admin(addresses.bootstrap_servers, {}).ensure([topic], partitions=1, compacted=False)
    producer = Producer({"bootstrap.servers": addresses.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, end("aborted"))
    producer.flush(60)
    assert feed.ends(topic, NOW) == []
    producer.abort_transaction(60)
    produce(addresses, topic, (0, NOW, "a"))
    assert collect(feed, topic, NOW, {"a"}) == ["a"]


def test_the_feed_reads_a_topic_once_it_is_there(
    addresses: Addresses, feed: KafkaTransactionFeed, events: list[JobEvent]
) -> None:
    topic = "late.transaction"
    assert feed.ends(topic, NOW) == []
    assert [event.level for event in events] == ["warning"]
    Admin(addresses.bootstrap_servers, {}).ensure([topic], partitions=1, compacted=False)
    produce(addresses, topic, (0, NOW, "a"))
    assert collect(feed, topic, NOW, {"a"}) == ["a"]
    assert [event.level for event in events] == ["warning", "info"]
