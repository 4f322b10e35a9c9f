"""The feeds of a job: recorded topics that `run --from ... --to ...` produces before, with the messages that it reads back; and
the topics that say which transactions of the source have ended, and how many records each has.

A feed of transactions asks the broker only when the driver asks. Nothing in it fails the job: where the topic is missing, the
broker or the schema registry is away, or a record cannot be read, the feed gives no end, and says so once. It then looks again
after LOOK_SECONDS, from where it began. It keeps no offsets. A new feed begins at the time that the driver gives, and some
records before it: these name the transactions that had ended when a connector was killed, whose records it then sends again.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Final

from processor.engine.plan.plan import Plan
from processor.engine.rounds.events import JobEvent, Report
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError, StatestoreError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import TimedReader, read_topic
from processor.values.dead_letters import read_dead_letters
from processor.values.framing import FramedReader, bare_value
from processor.values.record import Message, Record, Rejected, TransactionEnd, read_transaction_end
from processor.values.recorded_topics import read_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    """Recorded topics that a job produces before it streams. `others`: the records of topics that no entity names: the job does
    not read those."""

    settings: Settings
    records: Sequence[Record]
    partitions: Mapping[str, int]
    others: int

    def produce(self) -> None:
        """Produces the records in file order, each into its partition. Raises KafkaError where a topic has records by now."""
        _check_fresh(Admin(self.settings.bootstrap_servers, dict(self.settings.kafka)), self.partitions)
        produce_records(self.settings, self.records, self.partitions)


def produce_records(settings: Settings, records: Iterable[Record], partitions: Mapping[str, int]) -> None:
    """Makes those of the topics that are missing, with these numbers of partitions. Then produces the records in their order,
    each into its partition, and waits for the broker. Raises KafkaError where a topic has fewer partitions.

    The broker has the first record of a topic before the producer gets the next one. Else the producer does not know the topic's
    partitions yet, and librdkafka 2.16 mixes the records that wait for them with later ones of the same partition."""
    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    for topic, found in admin.topics(sorted(partitions)).items():
        if found.partitions < partitions[topic]:
            raise KafkaError(
                f"topic {topic} has {found.partitions} partitions, and a record names partition {partitions[topic] - 1}: write a "
                f"partition below {found.partitions}, or leave it out"
            )
    for topic, count in sorted(partitions.items()):
        admin.ensure([topic], partitions=count, compacted=False)
    outbox, known = KafkaOutbox(settings.bootstrap_servers, dict(settings.kafka)), set[str]()
    for record in records:
        message = Message(topic=record.topic, key=record.key, value=record.value, headers=record.headers)
        outbox.produce(message, record.partition, max(record.timestamp, 0))
        if record.topic not in known:
            outbox.flush()
            known.add(record.topic)
    outbox.flush()


def read_feed(settings: Settings, plan: Plan, path: str) -> Feed:
    """The feed of a file. Raises RecordedError for a file that holds no recorded topics, and as `feed_of`."""
    return feed_of(settings, plan, list(read_records(path)))


def feed_of(settings: Settings, plan: Plan, records: Sequence[Record]) -> Feed:
    """The feed of these records; writes nothing. Raises KafkaError when one of their topics has records already."""
    partitions = {entity.entity.topic: settings.partitions for entity in plan.entities.values()}
    others = sum(record.topic not in partitions for record in records)
    for record in records:
        partitions[record.topic] = max(record.partition + 1, partitions.get(record.topic, 1))
    _check_fresh(Admin(settings.bootstrap_servers, dict(settings.kafka)), partitions)
    return Feed(settings=settings, records=records, partitions=partitions, others=others)


def _check_fresh(admin: Admin, topics: Iterable[str]) -> None:
    for topic in admin.topics(sorted(topics)):
        if any(admin.ends(topic).values()):
            raise KafkaError(
                f"topic {topic} holds records already, and --from needs fresh topics: leave --from out to go on with what is "
                "there, or begin with empty parts after `statestore local down`"
            )


def read_back(settings: Settings, plan: Plan) -> tuple[list[Record], list[Rejected]]:
    """The messages of the products' topics, each key in order, and the dead letters, each once."""
    topics = dict.fromkeys(product.product.topic for product in plan.products.values())
    published = [record for topic in topics for record in _read(settings, topic)]
    return published, [letter.rejected for letter in read_dead_letters(_read(settings, settings.dead_letter_topic))]


def _read(settings: Settings, topic: str) -> Iterable[Record]:
    return read_topic(settings.bootstrap_servers, dict(settings.kafka), topic)


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
        """The reader of the topic, which has begun at this time or before. It begins again where the driver did not ask for a
        while: the driver does not need the ends between."""
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
