"""Reads a topic back from its end, a page at a time: the last records of each partition before an offset."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ClientError

from processor.errors import KafkaError
from processor.job.kafka.check_access import check_access
from processor.job.kafka.client import TIMEOUT, client_error, list_partitions, make_consumer
from processor.job.kafka.reader import AT_ONCE, record_of
from processor.values.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPage:
    """A page. `records`: the committed ones, each partition in order; `begins`: where the page begins in each partition;
    `firsts`, `ends`: the first offset that the topic has, and its end."""

    records: tuple[Record, ...]
    begins: Mapping[int, int]
    firsts: Mapping[int, int]
    ends: Mapping[int, int]

    @property
    def messages(self) -> int:
        """How many messages the topic has at most: the ends of transactions count, too."""
        return sum(end - self.firsts[partition] for partition, end in self.ends.items())

    @property
    def has_earlier(self) -> bool:
        """Whether the topic has messages before this page."""
        return any(begin > self.firsts[partition] for partition, begin in self.begins.items())


def read_page(
    bootstrap: str, extra: Mapping[str, str], topic: str, before: Mapping[int, int], *, most: int, most_bytes: int
) -> TopicPage:
    """The page before these offsets; of a partition that `before` does not name, from its end. `most`: records, spread over the
    partitions; `most_bytes`: the oldest records of a page with more wait for the next page. Raises KafkaError."""
    check_access(bootstrap, extra)
    consumer = make_consumer(bootstrap, extra, **AT_ONCE)
    what = f"cannot read topic {topic} at {bootstrap}"
    try:
        partitions = list_partitions(consumer, topic, bootstrap)
        share = max(1, most // max(1, len(partitions)))
        firsts, ends, begins, until = {}, {}, {}, {}
        for partition in partitions:
            first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), TIMEOUT)
            firsts[partition], ends[partition] = first, end
            until[partition] = min(max(before.get(partition, end), first), end)
            begins[partition] = max(first, until[partition] - share)
        kept = _Kept(begins, most_bytes)
        for message in _messages(consumer, topic, begins, until, what):
            kept.add(record_of(message))
    except KafkaException as failure:
        raise client_error(failure.args[0], what) from None
    finally:
        consumer.close()
    records = tuple(chain.from_iterable(kept.records[partition] for partition in partitions))
    return TopicPage(records=records, begins=kept.begins, firsts=firsts, ends=ends)


class _Kept:
    """The records of a page. `begins`: where it begins in each partition, later where its bytes ask for it."""

    def __init__(self, begins: Mapping[int, int], most_bytes: int) -> None:
        self.begins = dict(begins)
        self.records: dict[int, deque[Record]] = {partition: deque() for partition in begins}
        self._left = most_bytes

    def add(self, record: Record) -> None:
        """Takes the next record of a partition, and gives up its oldest ones where the page becomes too large."""
        mine = self.records[record.partition]
        mine.append(record)
        self._left -= _size(record)
        while self._left < 0 and len(mine) > 1:
            self._left += _size(mine.popleft())
            self.begins[record.partition] = mine[0].offset


def _size(record: Record) -> int:
    return len(record.key or b"") + len(record.value or b"") + sum(len(value or b"") for _, value in record.headers)


def _messages(
    consumer: Consumer, topic: str, begins: Mapping[int, int], until: Mapping[int, int], what: str
) -> Iterator[Any]:
    """The messages from `begins` until these offsets, by the client. A partition that is done rests."""
    reading = {partition for partition, begin in begins.items() if begin < until[partition]}
    consumer.assign([TopicPartition(topic, partition, begins[partition]) for partition in reading])
    while reading:
        message = consumer.poll(TIMEOUT)
        if message is None:
            raise KafkaError(f"{what}: no answer within {TIMEOUT:.0f} s; is the broker in reach?")
        error, partition, offset = message.error(), int(message.partition() or 0), int(message.offset() or 0)
        if error is not None and error.code() != ClientError._PARTITION_EOF:
            raise client_error(error, what)
        if error is None and offset < until[partition]:
            yield message
        if partition in reading and (error is not None or offset >= until[partition] - 1):
            reading.discard(partition)
            consumer.pause([TopicPartition(topic, partition)])
