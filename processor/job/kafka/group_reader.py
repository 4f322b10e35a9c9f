"""Reads a topic together with the other processes of a group: Kafka gives each partition to one of them."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ClientError

from processor.job.kafka.check_access import check_access
from processor.job.kafka.client import client_error, list_partitions, make_consumer
from processor.job.kafka.reader import record_of
from processor.values.record import Record

ASK_SECONDS: Final = 5.0
"""The longest wait for an answer that only shows that the broker is there."""
Offsets = Callable[[Collection[int]], Mapping[int, int]]
"""Tells where the reader goes on in each of these partitions; it begins the others at their first record."""


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
        self._consumer: Consumer = make_consumer(bootstrap, extra, group_id=group)
        list_partitions(self._consumer, topic, bootstrap)
        self._given: frozenset[int] = frozenset()
        self._placed = True
        self._consumer.subscribe([topic], on_assign=self._take, on_revoke=self._give, on_lost=self._give)

    def read(self, most: int, seconds: float) -> TopicPortion:
        """At most so many records, after at most so many seconds. Raises KafkaError, and the errors of `offsets`."""
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
                raise client_error(error, f"cannot read topic {self._topic} at {self._bootstrap}")
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
        try:
            found = self._consumer.committed(asked, timeout=ASK_SECONDS)
        except KafkaException as error:
            raise client_error(error.args[0], f"cannot read the group at {self._bootstrap}") from None
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
        try:
            self._consumer.assign(places)
        except KafkaException as error:
            raise client_error(error.args[0], f"cannot read topic {self._topic} at {self._bootstrap}") from None
        self._placed = True
