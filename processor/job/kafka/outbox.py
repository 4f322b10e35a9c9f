"""Producers.

Promises: everything sent is acknowledged by all replicas, or `flush` raises; keys go to the partitions that Java's clients
would choose (murmur2). A `TransactionalOutbox` is fenced: once another one was made for its id, its sends fail.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from time import monotonic
from typing import Any

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, Producer

from processor.errors import KafkaError, SettingError, StatestoreError, TopicRefused, TransactionTimedOut
from processor.job.kafka.client import TIMEOUT, client_error, setting_errors, settings
from processor.values.record import MAX_MESSAGE_BYTES, Message

BATCH_BYTES = 1_000_000
"""The most bytes that a producer sends as one batch: librdkafka's default. A topic measures a batch, not each message."""
TRANSACTION_SECONDS = 900
"""Kafka's own default of a broker's transaction.max.timeout.ms, in seconds."""
TRANSACTIONS = "__transaction_state"
"""Kafka's own topic, which a broker has as soon as a producer begins a transaction."""
CONNECT_SECONDS = 5
RECONNECT_MS = 10
"""A producer of a transaction lives for one round, and connects three times. librdkafka waits 100 ms between two of them."""
REFUSED = {
    ClientError.MSG_SIZE_TOO_LARGE,
    ClientError.INVALID_RECORD,
    ClientError.INVALID_MSG,
    ClientError.POLICY_VIOLATION,
    ClientError.TOPIC_AUTHORIZATION_FAILED,
    ClientError.TOPIC_EXCEPTION,
    ClientError.UNKNOWN_TOPIC_OR_PART,
    ClientError._UNKNOWN_TOPIC,
    ClientError._UNKNOWN_PARTITION,
}
"""What the broker says of a topic, not of itself; another try ends alike."""
UNKNOWN = {ClientError.UNKNOWN_TOPIC_OR_PART, ClientError._UNKNOWN_TOPIC}
PURGED = {ClientError._PURGE_QUEUE, ClientError._PURGE_INFLIGHT}
"""What the client says of messages that it drops when their transaction fails."""


class KafkaOutbox:
    """An idempotent producer outside transactions: what is sent counts once it is acknowledged."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str], **more: Any) -> None:
        self._errors: list[tuple[str, ClientError]] = []
        own = {
            "acks": "all",
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "message.max.bytes": MAX_MESSAGE_BYTES,
            "message.timeout.ms": int(TIMEOUT * 1000),
            "linger.ms": 5,
            "queue.buffering.max.messages": 100_000,
        }
        with setting_errors():
            self._producer = Producer({"reconnect.backoff.ms": RECONNECT_MS} | settings(bootstrap, extra) | own | more)

    def send(self, message: Message) -> None:
        self.produce(message, partition=message.partition, timestamp=0)

    def produce(self, message: Message, partition: int, timestamp: int) -> None:
        """Sends a message to a partition (-1: by its key), with a time in milliseconds (0: now)."""
        while True:
            try:
                self._producer.produce(
                    message.topic,
                    key=message.key,
                    value=message.value,
                    headers=list(message.headers),
                    partition=partition,
                    timestamp=timestamp,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                if not self._errors:  # what failed before may not be reported yet
                    self._serve(lambda: self._producer.poll(1))
                self._errors.append((message.topic, error.args[0]))
                raise self._failed(f"cannot send to {message.topic}") from None
            else:
                self._serve(lambda: self._producer.poll(0))
                return

    def flush(self) -> None:
        left = self._serve(lambda: self._producer.flush(TIMEOUT))
        if self._errors:
            raise self._failed(f"{len(self._errors)} messages were not acknowledged")
        if left:
            raise KafkaError(f"{left} messages were not acknowledged within {TIMEOUT:.0f} s; is the broker in reach?")

    def _serve(self, wait: Callable[[], int]) -> int:
        """Waits, and runs the client's callbacks. The client raises a fatal error (being fenced is one) out of there; together
        with a delivery report it becomes a SystemError, and then the report says what happened."""
        try:
            return wait()
        except KafkaException as error:
            raise self._failure(error.args[0], "the producer failed") from None
        except SystemError:
            return wait()

    def _delivered(self, error: ClientError | None, message: Any) -> None:
        if error is not None:
            self._errors.append((message.topic(), error))

    def _failed(self, what: str) -> StatestoreError:
        """What the errors say: of the first topic that refused, which takes the others along, else of the first."""
        for topic, error in self._errors:
            if error.code() in REFUSED:
                too_large = error.code() == ClientError.MSG_SIZE_TOO_LARGE
                return TopicRefused(topic, error.str(), too_large=too_large, gone=error.code() in UNKNOWN)
        return self._failure(self._errors[0][1], what)

    def _failure(self, error: ClientError, what: str) -> StatestoreError:
        return client_error(error, what)


class TransactionalOutbox(KafkaOutbox):
    """A producer with a fixed transactional id: making it fences every earlier one of that id. Sends between two flushes are
    one transaction, which `flush` commits. The broker aborts a transaction that lasts longer than `seconds`. `batch_bytes`: at
    most what each topic takes. Raises SettingError where the broker allows no transactions of `seconds`."""

    def __init__(
        self,
        bootstrap: str,
        extra: Mapping[str, str],
        transactional_id: str,
        *,
        seconds: int = TRANSACTION_SECONDS,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        times = {"transaction.timeout.ms": seconds * 1000, "message.timeout.ms": int(min(TIMEOUT, seconds) * 1000)}
        sizes = {"batch.size": min(batch_bytes, BATCH_BYTES)}
        super().__init__(bootstrap, extra, **{"transactional.id": transactional_id, **times, **sizes})
        self._seconds = seconds
        self._began = monotonic()
        self._open = False
        with suppress(KafkaException):
            # Without a connection to a broker by its id, the client may wait 500 ms in vain. The first call learns the ids.
            self._producer.list_topics(TRANSACTIONS, timeout=CONNECT_SECONDS)
            self._producer.list_topics(TRANSACTIONS, timeout=CONNECT_SECONDS)
        self._transaction(lambda: self._producer.init_transactions(TIMEOUT))

    def produce(self, message: Message, partition: int, timestamp: int) -> None:
        if not self._open:
            self._transaction(self._producer.begin_transaction)
            self._began, self._open = monotonic(), True
        super().produce(message, partition, timestamp)

    def flush(self) -> None:
        super().flush()
        if self._open:
            self._transaction(lambda: self._producer.commit_transaction(TIMEOUT))
            self._open = False

    def _transaction(self, act: Callable[[], None]) -> None:
        for attempt in range(5):
            try:
                act()
            except KafkaException as error:
                if not error.args[0].retriable() or attempt == 4:
                    raise self._failure(error.args[0], "the transaction failed") from None
            else:
                return

    def _transaction_error(self) -> ClientError | None:
        """Why the transaction failed. The client reports a purged message, and may report the reason only later; a commit of a
        failed transaction sends nothing, and raises the reason at once."""
        try:
            self._producer.commit_transaction(TIMEOUT)
        except KafkaException as failure:
            reason: ClientError = failure.args[0]
            return reason
        return None

    def _failure(self, error: ClientError, what: str) -> StatestoreError:
        """A producer cannot ask why it is fenced: the broker fences the producer of a transaction that it aborts for its age,
        too. So the age of the transaction decides."""
        if self._open and error.code() in PURGED:
            error = self._transaction_error() or error
        if error.code() == ClientError.INVALID_TRANSACTION_TIMEOUT:
            return SettingError(
                f"transaction_seconds: {self._seconds} is more than the broker's transaction.max.timeout.ms allows: lower "
                "the setting, or raise transaction.max.timeout.ms at the broker"
            )
        age = monotonic() - self._began
        if self._open and age >= self._seconds:
            return TransactionTimedOut(
                f"a publisher's transaction lasted {age:.0f} s, longer than transaction_seconds = {self._seconds}, so the "
                "broker aborted it: raise transaction_seconds, use more lanes, or lower batch_size or fan_out_page "
                f"({error.str()})"
            )
        return super()._failure(error, what)
