"""Reads a topic on from a moment, without a group: what came since then, and then what comes."""

from collections.abc import Mapping
from time import monotonic
from typing import Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as ClientError

from processor.job.kafka.client import client_error, list_partitions, make_consumer
from processor.job.kafka.reader import record_of
from processor.values.record import Record

ANSWER_SECONDS: Final = 2.0
"""The longest wait for an answer about the topic: its reader waits within the queue of a job."""
QUEUED_KILOBYTES: Final = 1024
"""The most that the client keeps of records that nobody has asked for yet."""
FETCH_MS: Final = 100
"""So long the broker holds back an answer without records: other questions wait behind it."""


class TimedReader:
    """A reader of all partitions of a topic, of committed records only. It stores no offsets. All methods raise KafkaError where
    the broker does not answer, or has no such topic."""

    def __init__(self, bootstrap: str, extra: Mapping[str, str], topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        more = {"queued_max_messages_kbytes": str(QUEUED_KILOBYTES), "fetch_wait_max_ms": str(FETCH_MS)}
        self._consumer: Consumer = make_consumer(bootstrap, extra, **more)
        self._partitions: list[int] = []
        self._ended: set[int] = set()

    def begin(self, at: float, before: int = 0) -> None:
        """Goes to the first record of each partition that has at least this time, in seconds since 1970, and from there so many
        records back."""
        try:
            self._partitions = list_partitions(self._consumer, self._topic, self._bootstrap, ANSWER_SECONDS)
            # asked before the times, so that no record falls between the two answers
            marks = {p: self._marks(p) for p in self._partitions}
            asked = [TopicPartition(self._topic, p, max(0, int(at * 1000))) for p in self._partitions]
            found = self._consumer.offsets_for_times(asked, ANSWER_SECONDS)
            places = [(one.partition, one.offset if one.offset >= 0 else marks[one.partition][1]) for one in found]
            self._consumer.assign(
                [TopicPartition(self._topic, p, max(marks[p][0], offset - before)) for p, offset in places]
            )
        except KafkaException as error:
            raise self._failure(error.args[0]) from None
        self._ended = set()

    def grown(self) -> bool:
        """Whether the topic has other partitions than at its begin."""
        return self._partitions != list_partitions(self._consumer, self._topic, self._bootstrap, ANSWER_SECONDS)

    def read(self, most: int, seconds: float) -> list[Record]:
        """The next records: at most so many, and of at most so many seconds. Does not wait at the end of the topic."""
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
                raise self._failure(error)
        return records

    def close(self) -> None:
        """Ends the client."""
        self._consumer.close()

    def _marks(self, partition: int) -> tuple[int, int]:
        begin, end = self._consumer.get_watermark_offsets(TopicPartition(self._topic, partition), ANSWER_SECONDS)
        return int(begin), int(end)

    def _failure(self, error: ClientError) -> Exception:
        return client_error(error, f"cannot read topic {self._topic} at {self._bootstrap}")
