"""The two ends of `run --from ... --to ...`: produces recorded topics, and reads the published messages back."""

from collections.abc import Iterable

from processor.errors import KafkaError
from processor.job.kafka.admin import Admin
from processor.job.kafka.outbox import KafkaOutbox
from processor.job.kafka.reader import read_topic
from processor.plan.plan import Plan
from processor.records.dead_letters import read_dead_letters
from processor.records.message import Message
from processor.records.record import Record, Rejected
from processor.records.recorded_topics import read_records
from processor.settings.settings import Settings


def feed(settings: Settings, plan: Plan, path: str) -> int:
    """Produces recorded topics, in file order, into new topics; returns how many records belong to topics that no entity names:
    the job does not read those. Raises KafkaError when one of the topics has records already."""
    records = list(read_records(path))
    produce(settings, plan, records)
    read = {entity.entity.topic for entity in plan.entities.values()}
    return sum(record.topic not in read for record in records)


def produce(settings: Settings, plan: Plan, records: Iterable[Record]) -> None:
    """Produces records into fresh topics, each into its partition."""
    records = list(records)
    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    partitions = {entity.entity.topic: settings.partitions for entity in plan.entities.values()}
    for record in records:
        partitions[record.topic] = max(record.partition + 1, partitions.get(record.topic, 1))
    for topic in admin.topics(sorted(partitions)):
        if any(admin.ends(topic).values()):
            raise KafkaError(
                f"topic {topic} holds records already, and --from needs fresh topics: leave --from out to go on with what is "
                "there, or begin with empty parts after `statestore local down`"
            )
    for topic, count in sorted(partitions.items()):
        admin.ensure([topic], partitions=count, compacted=False)
    outbox = KafkaOutbox(settings.bootstrap_servers, dict(settings.kafka))
    for record in records:
        message = Message(topic=record.topic, key=record.key, value=record.value, headers=record.headers)
        outbox.produce(message, record.partition, max(record.timestamp, 0))
    outbox.flush()


def read_back(settings: Settings, plan: Plan) -> tuple[list[Record], list[Rejected]]:
    """The messages of the products' topics, each key in order, and the dead letters, each once."""
    published = [record for product in plan.products.values() for record in _read(settings, product.product.topic)]
    return published, [letter.rejected for letter in read_dead_letters(_read(settings, settings.rejects_topic))]


def _read(settings: Settings, topic: str) -> Iterable[Record]:
    return read_topic(settings.bootstrap_servers, dict(settings.kafka), topic)
