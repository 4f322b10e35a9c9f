"""How far a job is behind its topics: the records that it has yet to read, and since when the oldest of them waits."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from time import monotonic
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition

from processor.engine.protocol.epochs import Partition
from processor.job.kafka.client import client_errors, make_consumer

ANSWER_SECONDS = 5.0
"""The longest wait for one answer of the broker."""
ENDS_SECONDS = 8.0
"""The longest wait for the ends of all partitions together: the monitor must go on reporting while a broker is away."""
FETCH_SECONDS = 3.0
"""The longest wait for the oldest unread records."""
SMALL_FETCH = {"queued_min_messages": "1", "queued_max_messages_kbytes": "1024"}
"""One record of each partition is enough."""


class TopicLag(NamedTuple):
    """`records`: offsets behind the last batch, with those of open transactions; None: unknown, the broker did not show the ends
    of all partitions. `oldest`: since when the oldest unread record waits, in seconds since 1970; None where there is none, or
    where the broker did not show it in time."""

    records: int | None
    oldest: float | None

    def seconds(self, now: float) -> float | None:
        """How long the oldest unread record waits: 0 where there is none, None where the broker did not show it in time."""
        if self.records == 0:
            return 0.0
        return None if self.oldest is None else max(0.0, now - self.oldest)


UNKNOWN = TopicLag(None, None)
"""The lag of a topic whose ends the broker does not show."""


class Unread(NamedTuple):
    """The unread `offsets` of a partition. `oldest`: Kafka's time of the first record there, in seconds since 1970; None where
    there is none, or where the broker did not show it in time."""

    offsets: range
    oldest: float | None


class LagWatch:
    """The lags of a job between two looks at the broker. `looked`: when the last look began, in seconds since 1970; 0 before."""

    def __init__(self) -> None:
        self._unread: Mapping[Partition, Unread] = {}
        self.looked = 0.0
        self._read_all: dict[Partition, float] = {}

    def keep(self, unread: Mapping[Partition, Unread], at: float) -> None:
        """Takes the answer to a look that began at this time."""
        self._unread, self.looked = unread, at

    def lags(self, topics: Collection[str], read: Mapping[Partition, int]) -> dict[str, TopicLag]:
        """The lag of each of these topics, unknown where the last look did not find it. `read`: where the job reads on in each
        partition now.

        Once the job has read all that a look found in a partition, its later records came after this look. So they wait no
        longer, even if their producer gave them older times, as an import or a mirror of a topic does."""
        records, since = Counter[str](), defaultdict[str, list[float]](list)
        for at, (offsets, oldest) in self._unread.items():
            topic, begin = at[0], max(offsets.start, read.get(at, 0))
            records[topic] += max(0, offsets.stop - begin)
            if begin >= offsets.stop:
                self._read_all[at] = self.looked
            elif begin == offsets.start and oldest is not None:
                since[topic].append(max(oldest, self._read_all.get(at, oldest)))
        return {
            topic: TopicLag(records[topic], min(since[topic], default=None)) if topic in records else UNKNOWN
            for topic in sorted(topics)
        }


def read_unread(
    bootstrap: str, extra: Mapping[str, str], topics: Iterable[str], read: Mapping[Partition, int]
) -> dict[Partition, Unread]:
    """The unread records of each topic whose ends the broker shows in time: of a topic without a leader it shows none. `read`:
    where the job reads on in each partition; a job reads the others from their beginning. Raises KafkaError when no broker
    answers, within ENDS_SECONDS."""
    consumer = make_consumer(bootstrap, extra, isolation="read_uncommitted", **SMALL_FETCH)
    unread: dict[Partition, range] = {}
    until = monotonic() + ENDS_SECONDS
    try:
        with client_errors(f"cannot read topics at {bootstrap}"):
            for topic in topics:
                unread |= _unread(consumer, topic, read, until)
            times = _first_times(consumer, {at: offsets.start for at, offsets in unread.items() if offsets})
    finally:
        consumer.close()
    return {at: Unread(offsets, times.get(at)) for at, offsets in sorted(unread.items())}


def report_now(bootstrap: str, extra: Mapping[str, str], report: Mapping[str, Any], at: float) -> dict[str, Any]:
    """The last report of a job that does not run, with the lag of its topics at `at`: what the broker has behind the positions
    that the job reported last. Raises KafkaError as `read_unread` does."""
    places = ((*place.rpartition("/"), end) for place, end in report.get("positions", {}).items())
    positions = {(topic, int(partition)): end for topic, _, partition, end in places}
    unread = read_unread(bootstrap, extra, report["topics"], positions)
    watch = LagWatch()
    watch.keep(unread, at)
    topics = {
        topic: {**report["topics"][topic], "records": lag.records, "seconds": lag.seconds(at)}
        for topic, lag in watch.lags(report["topics"], positions).items()
    }
    return {**report, "topics": topics, "at": at}


def _unread(consumer: Consumer, topic: str, read: Mapping[Partition, int], until: float) -> dict[Partition, range]:
    """The unread offsets of each partition; none at all where one of them does not show its end in time."""
    found = {}
    described = consumer.list_topics(topic, timeout=_patience(until)).topics[topic]
    try:
        for partition in described.partitions if described.error is None else ():
            begin, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), _patience(until))
            found[topic, partition] = range(max(begin, read.get((topic, partition), begin)), end)
    except KafkaException:  # the topic is missing, or a partition has no leader now: its lag is unknown
        return {}
    return found


def _patience(until: float) -> float:
    """The seconds to wait for the next answer."""
    return max(0.1, min(ANSWER_SECONDS, until - monotonic()))


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
