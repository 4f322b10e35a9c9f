"""The producer's errors, said by the reason and not by what follows from it."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from processor.errors import Fenced
from processor.job.kafka import outbox as module
from processor.job.kafka.outbox import TransactionalOutbox
from processor.values.record import Message


class FencedProducer:
    """Reports the message as purged before the client says that a newer producer fenced it."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._reports: list[Callable[..., None]] = []

    def list_topics(self, topic: str, timeout: float) -> None: ...
    def init_transactions(self, timeout: float) -> None: ...

    def begin_transaction(self) -> None: ...

    def produce(self, topic: str, *, on_delivery: Callable[..., None], **more: Any) -> None:
        self._reports.append(on_delivery)

    def poll(self, timeout: float) -> int:
        return 0

    def flush(self, timeout: float) -> int:
        while self._reports:
            self._reports.pop()(ClientError(ClientError._PURGE_QUEUE), SimpleNamespace(topic=lambda: "documents"))
        return 0

    def commit_transaction(self, timeout: float) -> None:
        raise KafkaException(ClientError(ClientError._FENCED))


def test_a_fenced_producer_says_so_though_its_messages_are_reported_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Producer", FencedProducer)
    outbox = TransactionalOutbox("nowhere:9092", {}, "job-0")
    outbox.send(Message("documents", b"late", b"{}", ()))
    with pytest.raises(Fenced, match="another job took over"):
        outbox.flush()
