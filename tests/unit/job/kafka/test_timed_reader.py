"""A reader from a moment on, where there is nothing to read: the mock broker knows no times of records."""

import re

import pytest
from confluent_kafka.admin import AdminClient

from processor.errors import KafkaError
from processor.job.kafka.timed_reader import TimedReader


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
