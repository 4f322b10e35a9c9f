"""Reads topics: whole, single records, back from the end by pages, on from a moment, or together with a group."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from time import monotonic
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka import KafkaError as ClientError

from processor.engine.protocol.epochs import Partition
from processor.errors import KafkaError
from processor.job.kafka.client import (
    TIMEOUT,
    check_access,
    client_error,
    client_errors,
    list_partitions,
    make_consumer,
    watermarks,
)
from processor.values.record import Record

AT_ONCE: Final = {"fetch_wait_max_ms": "10"}
"""The broker answers at once that a partition has no more records, and does not wait 0.5 s for new ones."""
TAIL: Final = 8
"""A transaction ends with a marker, which has an offset, too. So the last message is a few offsets before the end."""
_OFFSET_TAIL: Final = -2000
"""librdkafka's own: less n, it is the offset n before the end."""


@contextmanager
def _reading(
    bootstrap: str, extra: Mapping[str, str], what: str, isolation: str = "read_committed"
) -> Iterator[Consumer]:
    """A consumer within the block. `what`: the beginning of the text of its errors."""
    check_access(bootstrap, extra)
    consumer = make_consumer(bootstrap, extra, isolation, **AT_ONCE)
    try:
        with client_errors(what):
            yield consumer
    finally:
        consumer.close()


def _next(consumer: Consumer, what: str, seconds: float = TIMEOUT) -> Any:
    """The next message of the client; one with an error is the end of its partition. `seconds`: the longest wait."""
    message = consumer.poll(seconds)
    if message is None:
        raise KafkaError(f"{what}: no answer within {seconds:.0f} s; is the broker in reach?")
    error = message.error()
    if error is not None and error.code() != ClientError._PARTITION_EOF:
        raise client_error(error, what)
    return message


def _to_the_end(
    consumer: Consumer,
    begins: Mapping[Partition, int],
    what: str,
    seconds: float = TIMEOUT,
    ends: dict[Partition, int] | None = None,
) -> Iterator[Record]:
    """The records of these partitions from these offsets on, to where each ends now. `seconds`: the longest wait for one. Notes
    these `ends`, behind open transactions too."""
    consumer.assign([TopicPartition(*at, offset) for at, offset in begins.items()])
    waiting = set(begins)
    while waiting:
        message = _next(consumer, what, seconds)
        if message.error() is None:
            yield record_of(message)
        else:
            waiting.discard(at := (message.topic(), message.partition()))
            if ends is not None:
                last = consumer.get_watermark_offsets(TopicPartition(*at), cached=True)[1]
                ends[at] = max(last, message.offset())


def read_topic(
    bootstrap: str, extra: Mapping[str, str], topic: str, begins: Mapping[int, int] | None = None
) -> Iterator[Record]:
    """The committed records of a topic, from its beginning to where it ends now; each partition in order. Never others,
    whatever `isolation.level` [kafka] has for the source: nobody published the documents of an aborted transaction. `begins`:
    the first offset of a partition, where it is not the beginning."""
    what = f"cannot read topic {topic} at {bootstrap}"
    with _reading(bootstrap, extra, what) as consumer:
        partitions = list_partitions(consumer, topic, bootstrap)
        offsets = {(topic, p): (begins or {}).get(p, OFFSET_BEGINNING) for p in partitions}
        yield from _to_the_end(consumer, offsets, what)


def read_sample(
    bootstrap: str, extra: Mapping[str, str], topic: str, most: int, seconds: float = TIMEOUT
) -> list[Record]:
    """The last records of a topic: about `most`, spread over its partitions. `seconds`: the longest wait for an answer."""
    what = f"cannot read topic {topic} at {bootstrap}"
    with _reading(bootstrap, extra, what) as consumer:
        marks = watermarks(consumer, topic, bootstrap, seconds)
        share = max(1, most // max(1, len(marks)))
        offsets = {(topic, p): max(first, end - share) for p, (first, end) in marks.items()}
        return list(islice(_to_the_end(consumer, offsets, what, seconds), 10 * most))


class Tail(NamedTuple):
    """The last committed records of a partition, among those that count. `last`: the last that a transaction may have written;
    `loose`: those after it, in order. No transaction wrote them: it ends with a marker, which has an offset of its own, and which
    a broker keeps while it keeps a record of the transaction
    (github.com/apache/kafka: CleanedTransactionMetadata in LogCleaner.scala, read on 2026-11-27)."""

    last: Record | None
    loose: tuple[Record, ...]


def tail_of(records: Iterable[Record], end: int, counts: Callable[[Record], bool]) -> Tail:
    """The tail of a partition that ends at this offset, by its last records."""
    last, loose, following = None, list[Record](), None
    for record in records:
        if loose and record.offset != following:
            last, loose = loose[-1], []
        loose += [record] if counts(record) else []
        following = record.offset + 1
    return Tail(loose[-1], ()) if loose and following != end else Tail(last, tuple(loose))


def read_tails(
    bootstrap: str, extra: Mapping[str, str], topics: Collection[str], counts: Callable[[Record], bool] = lambda _: True
) -> list[Tail]:
    """The tail of each partition of those topics that exist: of its last TAIL offsets, and of more where these have only loose
    records. Without the records of transactions that are still open."""
    what = f"cannot read the topics of products at {bootstrap}"
    tails: dict[Partition, Tail] = {}
    with _reading(bootstrap, extra, what) as consumer:
        described = consumer.list_topics(timeout=TIMEOUT).topics
        waiting = [(name, p) for name in topics if name in described for p in described[name].partitions]
        size = TAIL
        while waiting:
            ends: dict[Partition, int] = {}
            records: dict[Partition, list[Record]] = {one: [] for one in waiting}
            for record in _to_the_end(consumer, dict.fromkeys(waiting, _OFFSET_TAIL - size), what, ends=ends):
                records[record.topic, record.partition].append(record)
            tails |= {one: tail_of(records[one], ends[one], counts) for one in waiting}
            waiting = [one for one in waiting if tails[one].loose and not tails[one].last and size < ends[one]]
            size *= TAIL
    return list(tails.values())


def read_record(
    bootstrap: str, extra: Mapping[str, str], topic: str, partition: int, offset: int, seconds: float = TIMEOUT
) -> Record | None:
    """The record at an offset, committed or not; None where the topic holds none there (any more). `seconds`: the longest wait
    for an answer."""
    what = f"cannot read topic {topic} at {bootstrap}"
    with _reading(bootstrap, extra, what, "read_uncommitted") as consumer:
        if partition not in list_partitions(consumer, topic, bootstrap, seconds):
            return None
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, partition), seconds)
        if not first <= offset < end:
            return None
        consumer.assign([TopicPartition(topic, partition, offset)])
        message = _next(consumer, what, seconds)
        return record_of(message) if message.error() is None and message.offset() == offset else None


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
    bootstrap: str,
    extra: Mapping[str, str],
    topic: str,
    before: Mapping[int, int],
    *,
    most: int,
    most_bytes: int,
    seconds: float = TIMEOUT,
) -> TopicPage:
    """The page before these offsets; of a partition that `before` does not name, from its end. `most`: records, spread over the
    partitions; `most_bytes`: the oldest records of a page with more wait for the next page; `seconds`: the longest wait for an
    answer. Raises KafkaError."""
    what = f"cannot read topic {topic} at {bootstrap}"
    with _reading(bootstrap, extra, what) as consumer:
        marks = watermarks(consumer, topic, bootstrap, seconds)
        share = max(1, most // max(1, len(marks)))
        until = {p: min(max(before.get(p, end), first), end) for p, (first, end) in marks.items()}
        kept = _Kept({p: max(first, until[p] - share) for p, (first, _) in marks.items()}, most_bytes)
        for record in _before(consumer, topic, dict(kept.begins), until, what, seconds):
            kept.add(record)
    return TopicPage(
        records=tuple(chain.from_iterable(kept.records[p] for p in marks)),
        begins=kept.begins,
        firsts={p: first for p, (first, _) in marks.items()},
        ends={p: end for p, (_, end) in marks.items()},
    )


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


def _before(
    consumer: Consumer, topic: str, begins: Mapping[int, int], until: Mapping[int, int], what: str, seconds: float
) -> Iterator[Record]:
    """The records from `begins` until these offsets. A partition that is done rests."""
    reading = {partition for partition, begin in begins.items() if begin < until[partition]}
    consumer.assign([TopicPartition(topic, partition, begins[partition]) for partition in reading])
    while reading:
        message = _next(consumer, what, seconds)
        ended, partition, offset = message.error() is not None, message.partition(), message.offset()
        if not ended and offset < until[partition]:
            yield record_of(message)
        if partition in reading and (ended or offset >= until[partition] - 1):
            reading.discard(partition)
            consumer.pause([TopicPartition(topic, partition)])


ANSWER_SECONDS: Final = 2.0
"""The longest wait for an answer about the topic: its reader waits within the queue of a job."""
QUEUED_KILOBYTES: Final = 1024
"""The most that the client keeps of records that no caller has asked for yet."""
FETCH_MS: Final = 100
"""So long the broker holds back an answer without records: other questions wait behind it."""


class TimedReader:
    """A reader of all partitions of a topic, of committed records only. It stores no offsets. All methods raise KafkaError where
    the broker does not answer, or has no such topic."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str], topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._what = f"cannot read topic {topic} at {bootstrap}"
        more = {"queued_max_messages_kbytes": str(QUEUED_KILOBYTES), "fetch_wait_max_ms": str(FETCH_MS)}
        self._consumer: Consumer = make_consumer(bootstrap, extra, **more)
        self._partitions: list[int] = []
        self._ended: set[int] = set()

    def begin(self, at: float, before: int = 0) -> None:
        """Goes to the first record of each partition that has at least this time, in seconds since 1970, and from there
        `before` records back."""
        with client_errors(self._what):
            # asked before the times, so that no record falls between the two answers
            marks = watermarks(self._consumer, self._topic, self._bootstrap, ANSWER_SECONDS)
            self._partitions = list(marks)
            asked = [TopicPartition(self._topic, p, max(0, int(at * 1000))) for p in marks]
            found = self._consumer.offsets_for_times(asked, ANSWER_SECONDS)
            places = [(one.partition, one.offset if one.offset >= 0 else marks[one.partition][1]) for one in found]
            self._consumer.assign(
                [TopicPartition(self._topic, p, max(marks[p][0], offset - before)) for p, offset in places]
            )
        self._ended = set()

    def grown(self) -> bool:
        """Whether the topic has other partitions than at its begin."""
        return self._partitions != list_partitions(self._consumer, self._topic, self._bootstrap, ANSWER_SECONDS)

    def read(self, most: int, seconds: float) -> list[Record]:
        """The next records: at most `most`, within `seconds`. Does not wait at the end of the topic."""
        records: list[Record] = []
        until = monotonic() + seconds
        while len(records) < most:
            at_end = len(self._ended) == len(self._partitions)
            message = self._consumer.poll(0 if at_end else max(0.0, until - monotonic()))
            if message is None:
                break
            error, partition = message.error(), int(message.partition() or 0)
            if error is None:
                self._ended.discard(partition)
                records.append(record_of(message))
            elif error.code() == ClientError._PARTITION_EOF:
                self._ended.add(partition)
            else:
                raise client_error(error, self._what)
        return records

    def close(self) -> None:
        """Ends the client."""
        self._consumer.close()


ASK_SECONDS: Final = 5.0
"""The longest wait for an answer that only shows that the broker is there."""
Offsets = Callable[[Collection[int]], Mapping[int, int]]
"""The offset at which the reader continues in each of these partitions; it begins the others at their first record."""


class TopicPortion(NamedTuple):
    """Committed records. `ends`: the offset of the next record of each partition; also of one that ended without records."""

    records: list[Record]
    ends: dict[int, int]


class GroupReader:
    """One reader of a group. The caller keeps the offsets; the group stores them only for tools that show its lag."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str], topic: str, group: str, offsets: Offsets) -> None:
        """Joins the group. Raises KafkaError if there is no such topic."""
        check_access(bootstrap, extra)
        self._bootstrap, self._topic, self._offsets = bootstrap, topic, offsets
        self._what = f"cannot read topic {topic} at {bootstrap}"
        self._consumer: Consumer = make_consumer(bootstrap, extra, group_id=group)
        list_partitions(self._consumer, topic, bootstrap)
        self._given: frozenset[int] = frozenset()
        self._placed = True
        self._consumer.subscribe([topic], on_assign=self._take, on_revoke=self._give, on_lost=self._give)

    def read(self, most: int, seconds: float) -> TopicPortion:
        """At most `most` records, after at most `seconds`. Raises KafkaError, and the errors of `offsets`."""
        if not self._placed:
            self._place()
        records: list[Record] = []
        ends: dict[int, int] = {}
        for message in self._consumer.consume(most, seconds):
            error, partition, offset = message.error(), int(message.partition() or 0), int(message.offset() or 0)
            if error is None:
                records.append(record_of(message))
                ends[partition] = offset + 1
            elif error.code() == ClientError._PARTITION_EOF:
                ends[partition] = max(offset, ends.get(partition, 0))
            elif error.code() != ClientError._MAX_POLL_EXCEEDED:  # the reader joins the group again at its next read
                raise client_error(error, self._what)
        return TopicPortion(records, ends)

    def show(self, offsets: Mapping[int, int], note: str) -> None:
        """Stores offsets in the group with a note, for those who ask for its lag. A failure costs nothing: the caller has the
        offsets."""
        stored = [TopicPartition(self._topic, partition, offset, note) for partition, offset in sorted(offsets.items())]
        if stored:
            self._consumer.commit(offsets=stored, asynchronous=True)

    def shown(self) -> dict[int, int]:
        """The offsets that the group has stored, of all partitions that have one. Raises KafkaError."""
        partitions = list_partitions(self._consumer, self._topic, self._bootstrap, ASK_SECONDS)
        asked = [TopicPartition(self._topic, one) for one in partitions]
        with client_errors(f"cannot read the group at {self._bootstrap}"):
            found = self._consumer.committed(asked, timeout=ASK_SECONDS)
        return {one.partition: one.offset for one in found if one.offset >= 0}

    def behind(self) -> int:
        """How many offsets lie between this reader and the ends of its partitions, as its client knows them."""
        ends = {
            one: self._consumer.get_watermark_offsets(TopicPartition(self._topic, one), cached=True)[1]
            for one in self._given
        }
        read = self._consumer.position([TopicPartition(self._topic, one) for one in self._given])
        return sum(max(0, ends[one.partition] - one.offset) for one in read if one.offset >= 0)

    def ask(self) -> None:
        """Raises KafkaError where the broker does not answer."""
        list_partitions(self._consumer, self._topic, self._bootstrap, ASK_SECONDS)

    def close(self) -> None:
        """Leaves the group, so that the others take over at once."""
        self._consumer.close()

    def _take(self, consumer: Consumer, partitions: list[Any]) -> None:
        """Takes partitions without reading them: only `read` may ask for their offsets, which may fail."""
        consumer.assign([])
        self._given, self._placed = frozenset(one.partition for one in partitions), False

    def _give(self, consumer: Consumer, _partitions: list[Any]) -> None:
        consumer.unassign()
        self._given, self._placed = frozenset(), True

    def _place(self) -> None:
        found = self._offsets(self._given)
        places = [TopicPartition(self._topic, one, found.get(one, OFFSET_BEGINNING)) for one in sorted(self._given)]
        with client_errors(self._what):
            self._consumer.assign(places)
        self._placed = True
