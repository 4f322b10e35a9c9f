"""The two ends of `run --from ... --to ...`: produces recorded topics, and reads the published messages back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from processor.engine.plan.plan import Plan
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.values.dead_letters import read_dead_letters
from processor.values.record import Message, Record, Rejected
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
    published = [record for product in plan.products.values() for record in _read(settings, product.product.topic)]
    return published, [letter.rejected for letter in read_dead_letters(_read(settings, settings.dead_letter_topic))]


def _read(settings: Settings, topic: str) -> Iterable[Record]:
    return read_topic(settings.bootstrap_servers, dict(settings.kafka), topic)
