"""Transactions last as long as their work; a transaction that is too old is not taken for a job that was taken over."""

from time import sleep
from typing import Any

import pytest

from processor.errors import Fenced, SettingError, TransactionTimedOut
from processor.job.kafka.outbox import TransactionalOutbox
from processor.job.kafka.reader import read_topic
from processor.records.message import Message

Scene = Any  # conftest's
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")  # PySpark's own, of each collect
CLEANUP_SECONDS = 10
"""The broker looks for transactions that are too old once in this time."""


def outbox(scene: Scene, seconds: int) -> TransactionalOutbox:
    return TransactionalOutbox(scene.settings.bootstrap_servers, {}, scene.settings.job, seconds=seconds)


@pytest.mark.parametrize("late", ["a message", "the commit"])
def test_a_transaction_that_lasts_too_long_says_so(scene: Scene, late: str) -> None:
    message = Message(scene.topic("user"), b"1", b"value")
    mine = outbox(scene, 2)
    mine.send(message)
    mine._producer.flush(10)
    sleep(2 + CLEANUP_SECONDS + 3)
    with pytest.raises(TransactionTimedOut, match=r"lasted 1\d s, longer than transaction_seconds = 2, so the broker"):
        _finish(mine, message if late == "a message" else None)
    again = outbox(scene, 2)
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


def _finish(outbox: TransactionalOutbox, message: Message | None) -> None:
    if message is not None:
        outbox.send(message)
    outbox.flush()
