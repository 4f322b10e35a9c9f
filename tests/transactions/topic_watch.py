"""Watches the topics of products as a consumer does: committed messages only, each with the moment in which it came."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Thread
from time import time
from typing import Any

from processor.errors import KafkaError
from processor.job.kafka.admin import Admin
from processor.job.kafka.reader import TimedReader, read_topic
from processor.values.record import Record

MOST = 10_000
LOOK_SECONDS = 0.05
"""Between two looks at a topic: the error of a moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A message. `order`: its key; `document`: None of a tombstone; `at`: when it came, in seconds since 1970."""

    order: int
    document: Any
    at: float
    record: Record

    @property
    def revision(self) -> int | None:
        """The revision of the order that the message shows; None of one that is gone."""
        return None if self.document is None else int(self.document["revision"])


@dataclass(slots=True, kw_only=True)
class TopicWatch:
    """The watch of the topics of products. It continues while the broker is away. `arrivals`: by partition and offset."""

    bootstrap: str
    topics: Sequence[str]
    arrivals: dict[tuple[str, int, int], Arrival] = field(default_factory=dict)
    _stopped: Event = field(default_factory=Event)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watches during the block, in a thread for each topic, and then to where each topic ends."""
        Admin(self.bootstrap, {}).ensure(self.topics, partitions=2, compacted=True)
        threads = [Thread(target=self._watch, args=(topic,), daemon=True) for topic in self.topics]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join()
        for topic in self.topics:
            self._take(read_topic(self.bootstrap, {}, topic))

    def _watch(self, topic: str) -> None:
        reader, reads = TimedReader(self.bootstrap, {}, topic), False
        while not self._stopped.wait(LOOK_SECONDS):
            try:
                if not reads:
                    reader.begin(0)
                reads = True
                self._take(reader.read(MOST, 1.0))
            except KafkaError:  # the broker is away; the records of a broken read come again
                reads = False
        reader.close()

    def _take(self, records: Iterable[Record]) -> None:
        at = time()
        for record in records:
            self.arrivals.setdefault((record.topic, record.partition, record.offset), _arrival(record, at))


def _arrival(record: Record, at: float) -> Arrival:
    document = None if record.value is None else json.loads(record.value)
    order = int(json.loads(record.key or b"")["id"])
    return Arrival(order=order, document=document, at=at, record=record)
