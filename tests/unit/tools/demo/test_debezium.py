"""Debezium's events become messages: their own topics, keys and values, acknowledged before the engine stores its offset."""

from typing import NamedTuple

import pytest

from processor.errors import KafkaError
from processor.tools.demo import debezium
from processor.tools.demo.debezium import EventProducer, connector_properties
from processor.values.record import Message


class Event(NamedTuple):
    """A change event as the engine gives it."""

    topic: str
    key_text: str | None
    value_text: str | None

    def destination(self) -> str:
        return self.topic

    def key(self) -> str | None:
        return self.key_text

    def value(self) -> str | None:
        return self.value_text


class Broker:
    """Takes what the producer does, in order. `answers`: whether the broker acknowledges."""

    def __init__(self, *_: object) -> None:
        self.done: list[object] = []
        self.answers = True

    def ensure(self, names: list[str], *, partitions: int, compacted: bool) -> None:
        self.done.append(("topic", names, partitions, compacted))

    def send(self, message: Message) -> None:
        self.done.append(message)

    def flush(self) -> None:
        if not self.answers:
            raise KafkaError("no answer")
        self.done.append("acknowledged")


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    for name in ("Admin", "KafkaOutbox"):
        monkeypatch.setattr(debezium, name, lambda *_: broker)
    return broker


def test_a_batch_goes_to_its_topics_unchanged_and_is_acknowledged_before_the_handler_returns(broker: Broker) -> None:
    producer = EventProducer("broker:9092")
    events = [Event("shop.public.line", '{"id": "é"}', '{"op": "d"}'), Event("shop.public.line", '{"id": "é"}', None)]
    producer.handleJsonBatch([*events, Event("shop.transaction", None, "{}")])
    assert broker.done == [
        ("topic", ["shop.public.line"], 2, False),
        Message("shop.public.line", '{"id": "é"}'.encode(), b'{"op": "d"}'),
        Message("shop.public.line", '{"id": "é"}'.encode(), None),
        ("topic", ["shop.transaction"], 2, False),
        Message("shop.transaction", None, b"{}"),
        "acknowledged",
    ]


def test_a_batch_without_an_acknowledgement_fails_so_the_engine_keeps_its_old_offset(broker: Broker) -> None:
    broker.answers = False
    with pytest.raises(KafkaError, match="no answer"):
        EventProducer("broker:9092").handleJsonBatch([Event("t", None, None)])


def test_the_connector_reads_the_database_of_the_shop_and_keeps_its_offsets_in_kafka() -> None:
    made = connector_properties("postgresql+psycopg://postgres:secret@127.0.0.1:5433/postgres", "127.0.0.1:9092")
    assert {name.removeprefix("database."): made[name] for name in made if name.startswith("database.")} == {
        "hostname": "127.0.0.1",
        "port": "5433",
        "user": "postgres",
        "password": "secret",
        "dbname": "shop",
    }
    assert made["offset.storage"].endswith("KafkaOffsetBackingStore")
    assert made["bootstrap.servers"] == "127.0.0.1:9092"
