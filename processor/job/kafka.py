"""The doorway to Kafka: the only module that imports confluent_kafka.

Promises: everything sent is acknowledged by all replicas, or `flush` raises; keys go to the partitions that Java's clients
would choose (murmur2). A `TransactionalOutbox` is fenced: once another one was made for its id, its sends fail.
Spark reads topics by its own connector; `read_topic` here is for tools and for reading back what was published.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer, TopicCollection, TopicPartition
from confluent_kafka import KafkaError as ClientError
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from processor.errors import (
    Fenced,
    KafkaError,
    SettingError,
    StatestoreError,
    TopicRefused,
    TransactionTimedOut,
)
from processor.records.message import MAX_MESSAGE_BYTES, Message
from processor.records.record import Record

LOG = logging.getLogger("statestore.kafka")
LOG.addHandler(logging.NullHandler())  # for messages that are no errors; silent unless a program adds a handler
TIMEOUT = 60.0
"""Seconds within which the broker must answer, or acknowledge what was sent."""
TRANSACTION_SECONDS = 900
"""Kafka's own default of a broker's transaction.max.timeout.ms, in seconds."""
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


class TopicDescription(NamedTuple):
    """A topic as the broker describes it. The id changes when the topic is deleted and created again."""

    id: str
    partitions: int


def settings(bootstrap: str, extra: Mapping[str, str]) -> dict[str, Any]:
    """A client's settings; `extra` are librdkafka's own names."""
    return {"bootstrap.servers": bootstrap, "logger": LOG, **extra}


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
        with _setting_errors():
            self._producer = Producer(settings(bootstrap, extra) | own | more)

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
                return TopicRefused(topic, error.str())
        return self._failure(self._errors[0][1], what)

    def _failure(self, error: ClientError, what: str) -> StatestoreError:
        return _failure(error, what)


class TransactionalOutbox(KafkaOutbox):
    """A producer with a fixed transactional id: making it fences every earlier one of that id. Sends between two flushes are
    one transaction, which `flush` commits. The broker aborts a transaction that lasts longer than `seconds`. Raises
    SettingError where the broker allows no transactions of `seconds`."""

    def __init__(
        self, bootstrap: str, extra: Mapping[str, str], transactional_id: str, *, seconds: int = TRANSACTION_SECONDS
    ) -> None:
        times = {"transaction.timeout.ms": seconds * 1000, "message.timeout.ms": int(min(TIMEOUT, seconds) * 1000)}
        super().__init__(bootstrap, extra, **{"transactional.id": transactional_id, **times})
        self._seconds = seconds
        self._began = monotonic()
        self._open = False
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

    def _failure(self, error: ClientError, what: str) -> StatestoreError:
        """A producer cannot ask why it is fenced: the broker fences the producer of a transaction that it aborts for its age,
        too. So the age of the transaction decides."""
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


class Admin:
    """Topics: made, looked at, measured."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str]) -> None:
        self._bootstrap, self._extra = bootstrap, extra
        with _setting_errors():
            self._admin = AdminClient(settings(bootstrap, extra))

    def topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        """The topics among `names` that exist."""
        found: dict[str, TopicDescription] = {}
        for name, future in self._admin.describe_topics(TopicCollection(list(names)), request_timeout=TIMEOUT).items():
            try:
                description = future.result()
            except KafkaException as error:
                if error.args[0].code() != ClientError.UNKNOWN_TOPIC_OR_PART:
                    raise _failure(error.args[0], f"cannot describe topic {name} at {self._bootstrap}") from None
            else:
                found[name] = TopicDescription(str(description.topic_id), len(description.partitions))
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

    def max_message_bytes(self, topic: str) -> int | None:
        """The most bytes of a message of the topic; None where this job may not ask. Asks again for a while about a topic that
        the broker does not know: it may just have been made."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        for attempt in range(5):
            try:
                found = self._admin.describe_configs([resource], request_timeout=TIMEOUT)[resource].result()
            except KafkaException as error:
                code = error.args[0].code()
                if code in (ClientError.TOPIC_AUTHORIZATION_FAILED, ClientError.CLUSTER_AUTHORIZATION_FAILED):
                    return None
                if code != ClientError.UNKNOWN_TOPIC_OR_PART or attempt == 4:
                    raise _failure(error.args[0], f"cannot describe topic {topic} at {self._bootstrap}") from None
                sleep(1)
            else:
                return int(found["max.message.bytes"].value)
        return None

    def begins(self, topic: str) -> dict[int, int]:
        """Where each partition of the topic begins: the first offset that retention has left."""
        return {p: begin for p, (begin, _) in self._watermarks(topic).items()}

    def ends(self, topic: str) -> dict[int, int]:
        """Where each partition of the topic ends, behind open transactions too: the offset that its next record gets."""
        return {p: end for p, (_, end) in self._watermarks(topic).items()}

    def _watermarks(self, topic: str) -> dict[int, tuple[int, int]]:
        consumer = _consumer(self._bootstrap, self._extra, isolation="read_uncommitted")
        try:
            return {
                p: consumer.get_watermark_offsets(TopicPartition(topic, p), TIMEOUT)
                for p in _partitions(consumer, topic, self._bootstrap)
            }
        except KafkaException as error:
            raise _failure(error.args[0], f"cannot read topic {topic} at {self._bootstrap}") from None
        finally:
            consumer.close()


def read_topic(bootstrap: str, extra: Mapping[str, str], topic: str) -> Iterator[Record]:
    """The committed records of a topic, from its beginning to where it ends now; each partition in order. Never others,
    whatever `isolation.level` [kafka] has for the source: nobody published the documents of an aborted transaction."""
    consumer = _consumer(bootstrap, extra)
    try:
        partitions = _partitions(consumer, topic, bootstrap)
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


def read_record(bootstrap: str, extra: Mapping[str, str], topic: str, partition: int, offset: int) -> Record | None:
    """The record at an offset, committed or not; None where the topic holds none there (any more)."""
    consumer = _consumer(bootstrap, extra, isolation="read_uncommitted")
    try:
        if partition not in _partitions(consumer, topic, bootstrap):
            return None
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT)
        if not first <= offset < end:
            return None
        consumer.assign([TopicPartition(topic, partition, offset)])
        message = consumer.poll(TIMEOUT)
        if message is None:
            raise KafkaError(f"topic {topic} could not be read within {TIMEOUT:.0f} s; is the broker in reach?")
        error = message.error()
        if error is None:
            return _record(message) if message.offset() == offset else None
        if error.code() == ClientError._PARTITION_EOF:
            return None
        raise _failure(error, f"cannot read topic {topic} at {bootstrap}")
    except KafkaException as failure:
        raise _failure(failure.args[0], f"cannot read topic {topic} at {bootstrap}") from None
    finally:
        consumer.close()


def _consumer(bootstrap: str, extra: Mapping[str, str], isolation: str = "read_committed") -> Consumer:
    own = {
        "group.id": "statestore-reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
    }
    with _setting_errors():
        return Consumer(settings(bootstrap, extra) | own)


@contextmanager
def _setting_errors() -> Iterator[None]:
    """Turns the errors of a client that cannot be made into ours: an unknown or wrong setting, or no address."""
    try:
        yield
    except KafkaException as error:
        raise KafkaError(
            f"Kafka's client refuses its settings: {error.args[0].str()}; correct [kafka] in the settings file, or "
            "--bootstrap-servers"
        ) from None
    except (TypeError, ValueError) as error:
        raise KafkaError(
            f"Kafka's client refuses its settings: {error}; correct [kafka] in the settings file"
        ) from None


def _partitions(consumer: Consumer, topic: str, bootstrap: str) -> list[int]:
    """The partitions of a topic. Raises KafkaError if there is no such topic, or the broker does not answer."""
    try:
        described = consumer.list_topics(topic, timeout=TIMEOUT).topics[topic]
    except KafkaException as error:
        raise _failure(error.args[0], f"cannot read topic {topic} at {bootstrap}") from None
    if described.error is not None:
        raise KafkaError(
            f"there is no topic {topic} at {bootstrap}, or it cannot be read ({described.error.str()}): correct its name or the "
            "address; a job creates its topics when it starts"
        )
    return sorted(described.partitions)


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
