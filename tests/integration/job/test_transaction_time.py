"""Transactions last as long as their work; a transaction that is too old is not taken for a job that was taken over."""

from time import monotonic, sleep
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from processor.errors import Fenced, SettingError, TransactionTimedOut
from processor.job.kafka.client import make_consumer
from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.kafka.reader import read_topic
from processor.values.record import Message

Scene = Any  # conftest's
pytestmark = pytest.mark.plain
ABORT_SECONDS = 300
"""The broker looks for transactions that are too old once a second. On a busy machine the abort may take longer."""


def outbox(scene: Scene, seconds: int) -> TransactionalOutbox:
    return TransactionalOutbox(scene.settings.bootstrap_servers, {}, scene.settings.job, seconds=seconds)


@pytest.mark.parametrize("late", ["a message", "the commit"])
def test_a_transaction_that_lasts_too_long_says_so(scene: Scene, late: str) -> None:
    message = Message(scene.topic("user"), b"1", b"value")
    mine = outbox(scene, 2)
    mine.send(message)
    mine._producer.flush(300)
    _wait_for_abort(scene, message.topic)
    with pytest.raises(TransactionTimedOut, match=r"lasted \d+ s, longer than transaction_seconds = 2, so the broker"):
        _finish(mine, message if late == "a message" else None)
    again = outbox(scene, 60)
    again.send(message)
    again.flush()
    (found,) = read_topic(scene.settings.bootstrap_servers, {}, message.topic)
    assert found.value == b"value"


def test_a_producer_that_was_taken_over_in_time_is_fenced(scene: Scene) -> None:
    message = Message(scene.topic("user"), b"1", b"value")
    mine = outbox(scene, 60)
    mine.send(message)
    outbox(scene, 60)
    with pytest.raises(Fenced, match="another job took over"):
        _finish(mine, message)


def test_a_job_refuses_transactions_longer_than_the_broker_allows(scene: Scene) -> None:
    with (
        pytest.raises(
            SettingError, match=r"transaction_seconds: 901 is more than the broker's transaction\.max\.timeout\.ms"
        ),
        scene.opened(transaction_seconds=901),
    ):
        pass


def _wait_for_abort(scene: Scene, topic: str) -> None:
    """Until a reader of committed records may pass the message and the mark of its abort: both have an offset."""
    deadline = monotonic() + ABORT_SECONDS
    consumer = make_consumer(scene.settings.bootstrap_servers, {})
    try:
        while sum(consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1] for p in range(2)) < 2:
            assert monotonic() < deadline, f"the broker did not abort within {ABORT_SECONDS} s"
            sleep(0.1)
    finally:
        consumer.close()


def _finish(outbox: TransactionalOutbox, message: Message | None) -> None:
    if message is not None:
        outbox.send(message)
    outbox.flush()
