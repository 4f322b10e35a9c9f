"""Reading of a topic, on the mock broker of librdkafka, which knows no times of records."""

import re

import pytest
from confluent_kafka.admin import AdminClient

from processor.errors import KafkaError
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import TimedReader, read_topic
from processor.values.record import Message


def test_a_reader_begins_where_the_caller_says_and_else_at_the_beginning() -> None:
    cluster = AdminClient({"test.mock.num.brokers": 1, "bootstrap.servers": "ignored:1"})
    (broker,) = cluster.list_topics().brokers.values()
    address = f"{broker.host}:{broker.port}"
    outbox = KafkaOutbox(address, {})
    for partition, value in ((0, b"a"), (0, b"b"), (1, b"c")):
        outbox.produce(Message("topic", None, value), partition, 0)
    outbox.flush()
    assert {record.value for record in read_topic(address, {}, "topic")} == {b"a", b"b", b"c"}
    assert {record.value for record in read_topic(address, {}, "topic", {0: 1})} == {b"b", b"c"}


def test_a_missing_topic_and_a_broker_that_is_away_are_named() -> None:
    cluster = AdminClient(
        {"test.mock.num.brokers": 1, "bootstrap.servers": "ignored:1", "allow.auto.create.topics": False}
    )
    (broker,) = cluster.list_topics().brokers.values()
    for address in (f"{broker.host}:{broker.port}", "127.0.0.1:1"):
        reader = TimedReader(address, {}, "topic")
        with pytest.raises(KafkaError, match=re.escape(address)):
            reader.begin(0)
        reader.close()
