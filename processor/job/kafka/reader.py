"""Reads whole topics, and single records."""

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ClientError

from processor.errors import KafkaError
from processor.job.kafka.check_access import check_access
from processor.job.kafka.client import TIMEOUT, client_error, list_partitions, make_consumer
from processor.values.record import Record

AT_ONCE: Final = {"fetch_wait_max_ms": "10"}
"""The broker answers at once that a partition has no more records, and does not wait 0.5 s for new ones."""
TAIL: Final = 8
"""A transaction ends with a marker, which has an offset, too. So the last message is a few offsets before the end."""
_OFFSET_TAIL: Final = -2000
"""librdkafka's own: less n, it is the offset n before the end."""


def read_topic(
    bootstrap: str, extra: Mapping[str, str], topic: str, begins: Mapping[int, int] | None = None
) -> Iterator[Record]:
    """The committed records of a topic, from its beginning to where it ends now; each partition in order. Never others,
    whatever `isolation.level` [kafka] has for the source: nobody published the documents of an aborted transaction. `begins`:
    the first offset of a partition, where it is not the beginning."""
    check_access(bootstrap, extra)
    consumer = make_consumer(bootstrap, extra, **AT_ONCE)
    try:
        partitions = list_partitions(consumer, topic, bootstrap)
        yield from _to_the_end(
            consumer, bootstrap, topic, {p: (begins or {}).get(p, OFFSET_BEGINNING) for p in partitions}
        )
    finally:
        consumer.close()


def read_sample(bootstrap: str, extra: Mapping[str, str], topic: str, most: int) -> list[Record]:
    """The last records of a topic: about `most`, spread over its partitions."""
    check_access(bootstrap, extra)
    consumer = make_consumer(bootstrap, extra, **AT_ONCE)
    try:
        partitions = list_partitions(consumer, topic, bootstrap)
        share = max(1, most // max(1, len(partitions)))
        begins = {}
        for partition in partitions:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT)
            begins[partition] = max(first, end - share)
        return list(islice(_to_the_end(consumer, bootstrap, topic, begins), 10 * most))
    except KafkaException as failure:
        raise client_error(failure.args[0], f"cannot read topic {topic} at {bootstrap}") from None
    finally:
        consumer.close()


def _to_the_end(consumer: Consumer, bootstrap: str, topic: str, begins: Mapping[int, int]) -> Iterator[Record]:
    """The records of these partitions from these offsets on, to where each ends now."""
    consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in begins.items()])
    done: set[int | None] = set()
    while len(done) < len(begins):
        message = consumer.poll(TIMEOUT)
        if message is None:
            raise KafkaError(
                f"topic {topic} could not be read to its end within {TIMEOUT:.0f} s; is the broker in reach?"
            )
        error = message.error()
        if error is None:
            yield record_of(message)
        elif error.code() == ClientError._PARTITION_EOF:
            done.add(message.partition())
        else:
            raise client_error(error, f"cannot read topic {topic} at {bootstrap}")


def read_last(
    bootstrap: str, extra: Mapping[str, str], topics: Collection[str], counts: Callable[[Record], bool] = lambda _: True
) -> list[Record]:
    """The last committed record of each partition of those topics that exist: among the last TAIL offsets, without the records of
    transactions that are still open, and without those that do not count."""
    check_access(bootstrap, extra)
    consumer = make_consumer(bootstrap, extra, **AT_ONCE)
    last: dict[tuple[str, int], Record] = {}
    try:
        described = consumer.list_topics(timeout=TIMEOUT).topics
        partitions = [(name, p) for name in topics if name in described for p in described[name].partitions]
        consumer.assign([TopicPartition(name, p, _OFFSET_TAIL - TAIL) for name, p in partitions])
        done: set[tuple[str | None, int | None]] = set()
        while len(done) < len(partitions):
            message = consumer.poll(TIMEOUT)
            if message is None:
                raise KafkaError(f"{bootstrap} did not answer within {TIMEOUT:.0f} s; is the broker in reach?")
            error = message.error()
            if error is None:
                record = record_of(message)
                if counts(record):
                    last[record.topic, record.partition] = record
            elif error.code() == ClientError._PARTITION_EOF:
                done.add((message.topic(), message.partition()))
            else:
                raise client_error(error, f"cannot read the topics of products at {bootstrap}")
    except KafkaException as failure:
        raise client_error(failure.args[0], f"cannot read the topics of products at {bootstrap}") from None
    finally:
        consumer.close()
    return list(last.values())


def read_record(bootstrap: str, extra: Mapping[str, str], topic: str, partition: int, offset: int) -> Record | None:
    """The record at an offset, committed or not; None where the topic holds none there (any more)."""
    check_access(bootstrap, extra)
    consumer = make_consumer(bootstrap, extra, isolation="read_uncommitted", **AT_ONCE)
    try:
        if partition not in list_partitions(consumer, topic, bootstrap):
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
            return record_of(message) if message.offset() == offset else None
        if error.code() == ClientError._PARTITION_EOF:
            return None
        raise client_error(error, f"cannot read topic {topic} at {bootstrap}")
    except KafkaException as failure:
        raise client_error(failure.args[0], f"cannot read topic {topic} at {bootstrap}") from None
    finally:
        consumer.close()


def record_of(message: Any) -> Record:
    """The record in a message of the client."""
    return Record(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp=message.timestamp()[1],
        key=message.key(),
        value=message.value(),
        headers=tuple(message.headers() or ()),
    )
