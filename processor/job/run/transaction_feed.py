"""Reads the topics that say which transactions of the source have ended, and how many records each has.

Promises: asks the broker only when the driver asks. Nothing here fails the job: where the topic is missing, the broker or the
schema registry is away, or a record cannot be read, the feed gives no end, and says so once. It then looks again after
LOOK_SECONDS, from where it began.
Does not: keep offsets. A new feed begins at the time that the driver gives, and some records before it: these name the
transactions that had ended when a connector was killed, whose records it then sends again.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Final

from processor.engine.rounds.events import JobEvent, Report
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.job.kafka.reader import TimedReader
from processor.values.framing import FramedReader, bare_value
from processor.values.record import Record
from processor.values.source_transaction import TransactionEnd, read_transaction_end

MOST: Final = 2_000
"""Records that one call reads of a topic."""
READ_SECONDS: Final = 0.2
MARGIN_SECONDS: Final = 60.0
"""So much before the oldest record the feed begins: producers give the times, and their clocks differ."""
RECORDS_BEFORE: Final = 10_000
"""This many records a partition before that time, however old: a connector may have been away for long."""
CURE: Final = "`transactions` of an entity names the topic that provide.transaction.metadata=true fills"
LOOK_SECONDS: Final = 10.0
"""Between two tries to read a topic that could not be read."""
PARTITION_SECONDS: Final = 60.0
"""Between two looks for new partitions of a topic."""


@dataclass(slots=True, kw_only=True)
class _ReadTopic:
    """A topic that the feed reads. `began`: where, on Kafka's clock. On the clock of the process: when the driver last asked, and
    when to look for new partitions."""

    reader: TimedReader
    began: float
    asked: float
    next_look: float


@dataclass(slots=True, kw_only=True)
class KafkaTransactionFeed:
    """The feed of a job. `open_reader`: makes the reader of a topic. `unreadable`: records of each topic that are neither a
    begin nor an end."""

    open_reader: Callable[[str], TimedReader]
    schemas: FramedReader
    report: Report
    now: Callable[[], float] = monotonic
    unreadable: Counter[str] = field(default_factory=Counter)
    _topics: dict[str, _ReadTopic] = field(default_factory=dict)
    _tries: dict[str, float] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        """The next ends in a topic (`TransactionFeed`)."""
        if self.now() < self._tries.get(topic, 0):
            return []
        try:
            records = self._place(topic, since - MARGIN_SECONDS).read(MOST, READ_SECONDS)
            found = list(self._read(topic, records))
        except StatestoreError as error:
            self._drop(topic)
            self._tries[topic] = self.now() + LOOK_SECONDS
            self._say(topic, "away", f"the job cannot read it, so no transaction is complete ({error}); {CURE}")
            return []
        if self._said.pop(f"away {topic}", None) is not None:
            self.report(
                JobEvent(what="transaction topic", text=f"topic {topic}: the job reads the ends of transactions")
            )
        return found

    def close(self) -> None:
        """Ends the readers."""
        for topic in list(self._topics):
            self._drop(topic)

    def _place(self, topic: str, at: float) -> TimedReader:
        """The reader of the topic, which has begun at this time or before. It begins again where nobody asked for a while: nobody
        needs the ends between."""
        now, known = self.now(), self._topics.get(topic)
        if known is None:
            reader = self.open_reader(topic)
            known = self._topics[topic] = _ReadTopic(
                reader=reader, began=math.inf, asked=now, next_look=now + PARTITION_SECONDS
            )
        if at < known.began or now - known.asked > MARGIN_SECONDS or self._grown(known):
            known.reader.begin(at, RECORDS_BEFORE if known.began == math.inf else 0)
            known.began = at
        known.asked = now
        return known.reader

    def _grown(self, known: _ReadTopic) -> bool:
        if self.now() < known.next_look:
            return False
        known.next_look = self.now() + PARTITION_SECONDS
        return known.reader.grown()

    def _read(self, topic: str, records: list[Record]) -> Iterator[TransactionEnd]:
        for record in records:
            value = bare_value(record, self.schemas)
            end = read_transaction_end(value)
            if end is not None:
                yield end._replace(time=record.timestamp / 1000)
            elif record.value is not None and not (type(value) is dict and value.get("status") == "BEGIN"):
                self.unreadable[topic] += 1
                place = f"partition {record.partition}, offset {record.offset}"
                self._say(
                    topic,
                    "unreadable",
                    f"{place} is no begin and no end of a transaction, and the job skips it; {CURE}",
                )

    def _say(self, topic: str, kind: str, text: str) -> None:
        """Reports a kind of failure of a topic once, until it is over."""
        if f"{kind} {topic}" not in self._said:
            self._said[f"{kind} {topic}"] = text
            self.report(JobEvent(what="transaction topic", text=f"topic {topic}: {text}", level="warning"))

    def _drop(self, topic: str) -> None:
        if (known := self._topics.pop(topic, None)) is not None:
            known.reader.close()


def transaction_feed(settings: Settings, schemas: FramedReader, report: Report) -> KafkaTransactionFeed:
    """The feed over the broker of the settings."""
    open_reader = partial(TimedReader, settings.bootstrap_servers, dict(settings.kafka))
    return KafkaTransactionFeed(open_reader=open_reader, schemas=schemas, report=report)
