"""How far a job is behind its topics: the records that it has yet to read, and since when the oldest of them waits."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import monotonic
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from processor.errors import KafkaError
from processor.job.kafka.client import client_error, list_partitions, make_consumer
from processor.progress.epochs import Partition

ANSWER_SECONDS = 5.0
"""The longest wait for the ends of a partition."""
FETCH_SECONDS = 3.0
"""The longest wait for the oldest unread records."""
SMALL_FETCH = {"queued_min_messages": "1", "queued_max_messages_kbytes": "1024"}
"""One record of each partition is enough."""


class TopicLag(NamedTuple):
    """`records`: offsets behind the last batch, with those of open transactions. `oldest`: since when the oldest unread record
    waits, in seconds since 1970; None where there is none, or where the broker did not show it in time."""

    records: int
    oldest: float | None

    def seconds(self, now: float) -> float | None:
        """How long the oldest unread record waits: 0 where there is none, None where the broker did not show it in time."""
        if not self.records:
            return 0.0
        return None if self.oldest is None else max(0.0, now - self.oldest)


class Unread(NamedTuple):
    """The unread `offsets` of a partition. `oldest`: Kafka's time of the first record there, in seconds since 1970; None where
    there is none, or where the broker did not show it in time."""

    offsets: range
    oldest: float | None


class LagWatch:
    """The lags of a job between two looks at the broker."""

    def __init__(self) -> None:
        self._unread: Mapping[Partition, Unread] = {}
        self._looked = 0.0
        self._read_all: dict[Partition, float] = {}

    def keep(self, unread: Mapping[Partition, Unread], at: float) -> None:
        """Takes the answer to a look that began at this time."""
        self._unread, self._looked = unread, at

    def lags(self, read: Mapping[Partition, int]) -> dict[str, TopicLag]:
        """The lag of each topic. `read`: where the job reads on in each partition now.

        Once the job has read all that a look found in a partition, its later records came after this look. So they wait no
        longer, even if their producer gave them older times, as an import or a mirror of a topic does."""
        records, since = Counter[str](), defaultdict[str, list[float]](list)
        for at, (offsets, oldest) in self._unread.items():
            topic, begin = at[0], max(offsets.start, read.get(at, 0))
            records[topic] += max(0, offsets.stop - begin)
            if begin >= offsets.stop:
                self._read_all[at] = self._looked
            elif begin == offsets.start and oldest is not None:
                since[topic].append(max(oldest, self._read_all.get(at, oldest)))
        return {topic: TopicLag(number, min(since[topic], default=None)) for topic, number in records.items()}


def read_unread(
    bootstrap: str, extra: Mapping[str, str], topics: Iterable[str], read: Mapping[Partition, int]
) -> dict[Partition, Unread]:
    """The unread records of each topic whose ends the broker shows. `read`: where the job reads on in each partition; a job reads
    the others from their beginning. Raises KafkaError for records that cannot be read."""
    consumer = make_consumer(bootstrap, extra, isolation="read_uncommitted", **SMALL_FETCH)
    unread: dict[Partition, range] = {}
    try:
        for topic in topics:
            with suppress(KafkaError, KafkaException):  # a topic that is missing, or has no leader now, has no lag
                unread |= _unread(consumer, topic, list_partitions(consumer, topic, bootstrap), read)
        times = _first_times(consumer, {at: offsets.start for at, offsets in unread.items() if offsets})
    except KafkaException as error:
        raise client_error(error.args[0], f"cannot read topics at {bootstrap}") from None
    finally:
        consumer.close()
    return {at: Unread(offsets, times.get(at)) for at, offsets in sorted(unread.items())}


def _unread(
    consumer: Consumer, topic: str, partitions: Iterable[int], read: Mapping[Partition, int]
) -> dict[Partition, range]:
    """The unread offsets of each partition."""
    found = {}
    for partition in partitions:
        begin, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), ANSWER_SECONDS)
        found[topic, partition] = range(max(begin, read.get((topic, partition), begin)), end)
    return found


def _first_times(consumer: Consumer, starts: Mapping[Partition, int]) -> dict[Partition, float]:
    """Kafka's time of the first record from each of these offsets on."""
    consumer.assign([TopicPartition(*at, offset) for at, offset in starts.items()])
    times: dict[Partition, float] = {}
    waiting, until = set(starts), monotonic() + FETCH_SECONDS
    while waiting and (message := consumer.poll(max(0.0, until - monotonic()))) is not None:
        at = (str(message.topic()), int(message.partition() or 0))
        if at in waiting and message.error() is None:
            times[at] = message.timestamp()[1] / 1000
        waiting.discard(at)
    return times
