"""The doorway to Kafka: the only module that imports confluent_kafka.

Promises: everything sent is acknowledged by all replicas, or `flush` raises; keys go to the partitions that Java's clients
would choose (murmur2). A `TransactionalOutbox` is fenced: once another one was made for its id, its sends fail.
Spark reads topics by its own connector; `read_topic` here is for tools and for reading back what was published.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka import KafkaError as ClientError
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from processor.errors import Fenced, KafkaError, TopicRefused
from processor.model.change import Record
from processor.model.step import MAX_MESSAGE_BYTES, Message

LOG = logging.getLogger("statestore.kafka")
LOG.addHandler(logging.NullHandler())  # what the client says beside its errors; silent unless a program asks for it
TIMEOUT = 60.0
"""Seconds within which the broker must answer, or acknowledge what was sent."""
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


class Topic(NamedTuple):
    """A topic as it stands: the id changes when a topic of the same name is created anew."""

    id: str
    partitions: int


def settings(bootstrap: str, extra: Mapping[str, str]) -> dict[str, Any]:
    """A client's settings; `extra` are librdkafka's own names."""
    return {"bootstrap.servers": bootstrap, "logger": LOG, **extra}


class Outbox:
    """An idempotent producer outside transactions: what is sent counts once it is acknowledged."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str], **more: Any) -> None:
        self._errors: list[tuple[str, ClientError]] = []
        self._producer = Producer(
            settings(bootstrap, extra)
            | {
                "acks": "all",
                "enable.idempotence": True,
                "partitioner": "murmur2_random",
                "message.max.bytes": MAX_MESSAGE_BYTES,
                "message.timeout.ms": int(TIMEOUT * 1000),
                "linger.ms": 5,
                "queue.buffering.max.messages": 100_000,
            }
            | more
        )

    def send(self, message: Message) -> None:
        self.produce(message, partition=-1, timestamp=0)

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
            raise _failure(error.args[0], "the producer failed") from None
        except SystemError:
            return wait()

    def _delivered(self, error: ClientError | None, message: Any) -> None:
        if error is not None:
            self._errors.append((message.topic(), error))

    def _failed(self, what: str) -> KafkaError | Fenced:
        """What the errors say: of the first topic that refused, which takes the others along, else of the first."""
        for topic, error in self._errors:
            if error.code() in REFUSED:
                return TopicRefused(topic, error.str())
        return _failure(self._errors[0][1], what)


class TransactionalOutbox(Outbox):
    """A producer with a fixed transactional id: making it fences every earlier one of that id. Sends between two flushes are
    one transaction, which `flush` commits."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str], transactional_id: str) -> None:
        super().__init__(bootstrap, extra, **{"transactional.id": transactional_id, "transaction.timeout.ms": 60_000})
        self._open = False
        self._transaction(lambda: self._producer.init_transactions(TIMEOUT))

    def produce(self, message: Message, partition: int, timestamp: int) -> None:
        if not self._open:
            self._transaction(self._producer.begin_transaction)
            self._open = True
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
                    raise _failure(error.args[0], "the transaction failed") from None
            else:
                return


class Admin:
    """Topics: made, looked at, measured."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        self._bootstrap, self._extra = bootstrap, extra
        self._admin = AdminClient(settings(bootstrap, extra))

    def topics(self, names: Sequence[str]) -> dict[str, Topic]:
        """The topics among `names` that exist."""
        found: dict[str, Topic] = {}
        for name, future in self._admin.describe_topics(TopicCollection(list(names)), request_timeout=TIMEOUT).items():
            try:
                description = future.result()
            except KafkaException as error:
                if error.args[0].code() != ClientError.UNKNOWN_TOPIC_OR_PART:
                    raise _failure(error.args[0], f"cannot describe topic {name} at {self._bootstrap}") from None
            else:
                found[name] = Topic(str(description.topic_id), len(description.partitions))
        return found

    def ensure(self, names: Iterable[str], *, partitions: int, compacted: bool) -> None:
        """Makes the topics that are missing; those that are there stay as they are. What is not compacted is kept for good."""
        config = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
        config |= {"cleanup.policy": "compact"} if compacted else {"retention.ms": "-1"}
        wanted = [NewTopic(name, num_partitions=partitions, config=config) for name in names]
        if not wanted:
            return
        for name, future in self._admin.create_topics(wanted, request_timeout=TIMEOUT).items():
            try:
                future.result()
            except KafkaException as error:
                if error.args[0].code() != ClientError.TOPIC_ALREADY_EXISTS:
                    raise _failure(error.args[0], f"cannot create topic {name} at {self._bootstrap}") from None

    def ends(self, topic: str) -> dict[int, int]:
        """Where each partition of the topic ends: the offset that its next record gets."""
        consumer = _consumer(self._bootstrap, self._extra)
        try:
            return {
                p: consumer.get_watermark_offsets(TopicPartition(topic, p), TIMEOUT)[1]
                for p in _partitions(consumer, topic)
            }
        except KafkaException as error:
            raise _failure(error.args[0], f"cannot read topic {topic} at {self._bootstrap}") from None
        finally:
            consumer.close()


def read_topic(bootstrap: str, extra: Mapping[str, str], topic: str) -> Iterator[Record]:
    """The committed records of a topic, from its beginning to where it ends now; each partition in order."""
    consumer = _consumer(bootstrap, extra)
    try:
        partitions = _partitions(consumer, topic)
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        done: set[int | None] = set()
        while len(done) < len(partitions):
            message = consumer.poll(TIMEOUT)
            if message is None:
                raise KafkaError(
                    f"topic {topic} could not be read to its end within {TIMEOUT:.0f} s; is the broker in reach?"
                )
            error = message.error()
            if error is None:
                yield _record(message)
            elif error.code() == ClientError._PARTITION_EOF:
                done.add(message.partition())
            else:
                raise _failure(error, f"cannot read topic {topic} at {bootstrap}")
    finally:
        consumer.close()


def _consumer(bootstrap: str, extra: Mapping[str, str]) -> Consumer:
    return Consumer(
        settings(bootstrap, extra)
        | {
            "group.id": "statestore-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    return sorted(consumer.list_topics(topic, timeout=TIMEOUT).topics[topic].partitions)


def _record(message: Any) -> Record:
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
    )


def _failure(error: ClientError, what: str) -> KafkaError | Fenced:
    if error.code() in (ClientError._FENCED, ClientError.PRODUCER_FENCED, ClientError.INVALID_PRODUCER_EPOCH):
        return Fenced(f"{what}: another job took over the publishing; this one must stop ({error.str()})")
    return KafkaError(f"{what}: {error.str()}")
