"""The topics of the tables: they get the records of a history, and later a steady stream of events that documents show."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Event

from confluent_kafka import Producer

from benchmarks.job_process import background
from benchmarks.peers.whole_jobs.target_topics import TITLE
from processor.job.kafka.client import settings
from processor.values import canonical_json
from processor.values.record import Record

RATE = 5.0
"""Events a second of the steady stream."""


class SourceTopics:
    """`records`: what the topics have; `number`: of the next event of the stream."""

    def __init__(self, servers: str) -> None:
        self.records: list[Record] = []
        self.number = 0
        self._known: set[str] = set()
        self._producer = Producer(settings(servers, {"linger.ms": "5", "enable.idempotence": "true"}))

    def send(self, records: Iterable[Record]) -> None:
        """Sends records in their order, and waits until the broker has them.

        The broker has the first record of a topic before the producer gets the next one. Else the producer does not know the
        topic's partitions yet, and librdkafka 2.16 mixes the records that wait for them with later ones of the same partition.
        """
        for record in records:
            self._send(record)
            if record.topic not in self._known:
                self._producer.flush()
                self._known.add(record.topic)
        self._producer.flush()

    def _send(self, record: Record) -> None:
        while True:
            try:
                self._producer.produce(record.topic, key=record.key, value=record.value, partition=record.partition)
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)
        self.records.append(record)

    @contextmanager
    def stream(self) -> Iterator[None]:
        """Within the block, gives one pull request after another another title, which its author's documents show."""
        rows, stopped = pull_requests_with_author(self.records), Event()

        def send() -> None:
            while not stopped.wait(1 / RATE):
                record = rows[self.number % len(rows)]
                row = {**canonical_json.loads(record.value or b""), "title": TITLE.format(self.number)}
                self.number += 1
                self.send([replace(record, value=canonical_json.encode(row))])

        with background(send):
            try:
                yield
            finally:
                stopped.set()


def pull_requests_with_author(records: Iterable[Record]) -> list[Record]:
    """The last records of the pull requests whose author is a user at the end, in the order of their keys."""
    last = {(record.topic, record.key): record for record in records}
    rows = {place: canonical_json.loads(r.value) for place, r in last.items() if r.value is not None}
    users = {row["username"] for (topic, _), row in rows.items() if topic == "user"}
    kept = [place for place, row in rows.items() if place[0] == "pull_request" and row["author"] in users]
    return [last[place] for place in sorted(kept, key=lambda place: place[1] or b"")]
