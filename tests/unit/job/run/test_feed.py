"""The records of a file go into their topics in their order."""

from types import SimpleNamespace
from typing import Any

import pytest

from processor.environment.settings.settings import Settings
from processor.job.run import feed
from processor.values.record import Message, Record


class ListedOutbox:
    """Lists what the broker gets, and `flush`."""

    def __init__(self, *_: Any) -> None:
        self.sent: list[str] = []

    def produce(self, message: Message, partition: int, timestamp: int) -> None:
        self.sent.append(f"{message.topic} {message.value!r}")

    def flush(self) -> None:
        self.sent.append("flush")


def test_the_broker_has_the_first_record_of_a_topic_before_the_producer_gets_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outbox = ListedOutbox()
    admin = SimpleNamespace(topics=lambda names: {}, ensure=lambda names, **_: None)
    monkeypatch.setattr(feed, "KafkaOutbox", lambda *_: outbox)
    monkeypatch.setattr(feed, "Admin", lambda *_: admin)
    places = [("a", b"1"), ("a", b"2"), ("b", b"3"), ("a", b"4")]
    records = [Record(topic=topic, partition=0, offset=0, epoch=0, key=b"k", value=value) for topic, value in places]
    feed.produce_records(Settings(), records, {"a": 1, "b": 1})
    assert outbox.sent == ["a b'1'", "flush", "a b'2'", "b b'3'", "flush", "a b'4'", "flush"]
