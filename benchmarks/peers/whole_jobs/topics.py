"""The topics of the products, as a reader of committed messages has them, and their comparison with the answer of SQL."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Event
from time import perf_counter, sleep
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from benchmarks.job_process import background
from benchmarks.peers.whole_jobs.system import System, cpu_seconds
from processor.errors import StatestoreError
from processor.job.kafka.client import make_consumer, settings
from processor.values import canonical_json
from processor.values.record import Record

Documents = Mapping[str, Mapping[str, Any]]
"""Topic -> message key -> document."""
QUIET_SECONDS = 3.0
"""The reader compares after this time without a message, so that it takes no time from the system."""
SILENT_SECONDS = 120.0
"""A system without another message for this long has ended its work: twelve checkpoints of Flink."""
LIMIT_SECONDS = 600.0
"""A system that needs longer for its documents is not measured."""
TITLE = "event {:06}"
_NUMBER = re.compile(rb'"event (\d{6})"')


@dataclass(slots=True)
class TargetTopics:
    """`last`: (topic, key) -> last message; `fresh`: the keys that came since the last comparison; `count`, `at`: how many
    messages came, and when the last one did; `shown`: the event with the highest number in a document, and when it came."""

    consumer: Consumer
    last: dict[tuple[str, str], bytes | None] = field(default_factory=dict)
    fresh: set[tuple[str, str]] = field(default_factory=set)
    count: int = 0
    at: float = 0.0
    shown: int = -1
    shown_at: float = 0.0
    stopped: Event = field(default_factory=Event)

    def read(self) -> None:
        """Reads until it is stopped."""
        while not self.stopped.is_set():
            messages = [m for m in self.consumer.consume(1_000, timeout=0.05) if m.error() is None]
            for message in messages:
                self._take(message.topic() or "", message.key() or b"null", message.value())
            if messages:
                self.at = perf_counter()
                self.count += len(messages)

    def _take(self, topic: str, key: bytes, value: bytes | None) -> None:
        place = topic, canonical_json.dumps(json.loads(key))
        self.last[place] = value
        self.fresh.add(place)
        if numbers := _NUMBER.findall(value or b""):
            newest = int(max(numbers))
            if newest > self.shown:
                self.shown, self.shown_at = newest, perf_counter()

    def wait_until_right(self, answer: Documents, system: System) -> int:
        """Waits until each document equals the answer, or the system ends its work: the number of wrong documents.
        Raises StatestoreError if the system has not ended after LIMIT_SECONDS."""
        began, wrong = perf_counter(), set[tuple[str, str]]()
        todo = {(topic, key) for topic, documents in answer.items() for key in documents} | self.last.keys()
        while True:
            system.check()
            now = perf_counter()
            if now - self.at > QUIET_SECONDS:
                changed, self.fresh = self.fresh | todo, set()
                todo = set()
                for topic, key in changed:
                    expected = answer.get(topic, {}).get(key)
                    is_right = same(self.last.get((topic, key)), expected, ordered=system.ordered)
                    (wrong.discard if is_right else wrong.add)((topic, key))
                if not wrong or (self.at > began and now - self.at > SILENT_SECONDS):
                    return len(wrong)
            if now - began > LIMIT_SECONDS:
                raise StatestoreError(self._unfinished(answer, wrong, now - self.at))
            sleep(0.2)

    def _unfinished(self, answer: Documents, wrong: Collection[tuple[str, str]], silent: float) -> str:
        """How far a system came that has not ended its work."""
        cpu = ", ".join(f"{program} {seconds:.0f}" for program, seconds in cpu_seconds().items())
        came = f"{self.count:,} messages came, the last one {silent:.0f} s ago" if self.count else "no message came"
        topic, key = min(wrong, default=("", ""))
        return (
            f"after {LIMIT_SECONDS:.0f} s, {len(wrong):,} of {sum(map(len, answer.values())):,} documents are not right, such as "
            f"{key} of topic {topic}; {came}; CPU seconds: {cpu}"
        )

    def wait_for_event(self, number: int, system: System) -> float:
        """Waits for a document that shows this event or a later one: when it came."""
        began = perf_counter()
        while self.shown < number:
            system.check()
            if perf_counter() - began > LIMIT_SECONDS:
                raise StatestoreError(f"no document shows event {number} after {LIMIT_SECONDS:.0f} s")
            sleep(0.02)
        return self.shown_at


def same(message: bytes | None, expected: Any, *, ordered: bool) -> bool:
    """Whether a message has the expected document; None: no document. Without `ordered` a list may have any order, and null
    means an empty list."""
    if message is None or expected is None:
        return message is None and expected is None
    shown = canonical_json.loads(message)
    return bool(shown == expected if ordered else _without_order(shown) == _without_order(expected))


def _without_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_order(part) for name, part in value.items()}
    return sorted(json.dumps(part, sort_keys=True) for part in value) or None if isinstance(value, list) else value


@contextmanager
def target_topics(servers: str, topics: Mapping[str, int]) -> Iterator[TargetTopics]:
    """A reader of these topics, each with its number of partitions, from their beginning until the block ends."""
    consumer = make_consumer(servers, {})
    consumer.assign([TopicPartition(name, p, OFFSET_BEGINNING) for name, n in topics.items() for p in range(n)])
    reader = TargetTopics(consumer)
    with background(reader.read):
        try:
            yield reader
        finally:
            reader.stopped.set()
    consumer.close()


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
