"""The topics that the job publishes to, when a plan begins: does each have all documents, and keep them? What does a plan need to
publish: sequences, the limits of topics, the ids of schemas?

For a topic that drops documents, the job shows a warning with the command to give, and continues.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from processor.engine.plan.plan import Plan
from processor.engine.protocol.identity import (
    SEQUENCES,
    TOPICS,
    PublishedTopic,
    describe_change,
    is_new,
    ledgers_in,
    other_number,
    read_published_topics,
    read_sequences,
    write_published_topic,
    write_sequence,
)
from processor.engine.protocol.ledger import group_partition
from processor.engine.rounds.events import JobEvent, Report, no_report
from processor.engine.rounds.round import PublishSetup
from processor.environment.settings.settings import Settings
from processor.errors import OwnedByAnother
from processor.job.kafka.admin import Admin, message_limits
from processor.job.kafka.reader import read_topic
from processor.job.kafka.schemas import SchemaRegistration
from processor.values.record import sequence_of
from statestore.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductTopics:
    """The topics of a job's products. `warned`: what this run has shown already."""

    admin: Admin
    store: Store
    report: Report
    warned: set[str] = field(default_factory=set)

    def look(self, plan: Plan) -> Mapping[str, Mapping[str, str]]:
        """Warns of topics that changed, or that drop documents, and notes new ones. Returns the configurations of the topics."""
        configs = self.admin.configs(product.product.topic for product in plan.products.values())
        for text in (*self._changes(plan), *_policies(plan, configs)):
            if text not in self.warned:
                self.warned.add(text)
                self.report(JobEvent(what="product topic", text=text, level="warning"))
        return configs

    def _changes(self, plan: Plan) -> Iterator[str]:
        topics = self.admin.topics([product.product.topic for product in plan.products.values()])
        noted = read_published_topics(self.store.partition(TOPICS))
        for name, product in plan.products.items():
            if (found := topics.get(product.product.topic)) is None:
                continue
            before = noted.get(name)
            now = PublishedTopic(product.product.topic, found.id, found.partitions, product.version)
            if before is None or is_new(before, now):
                self.store.write(write_published_topic(name, now))
            elif text := describe_change(name, before, now):
                yield text


def _policies(plan: Plan, configs: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """A warning for each topic that is not compacted."""
    for name, product in plan.products.items():
        topic = product.product.topic
        policy = configs.get(topic, {}).get("cleanup.policy", "compact")
        if policy != "compact":
            kept = configs[topic].get("retention.ms", "-1")
            loses = "drops documents" if "delete" in policy and kept != "-1" else "keeps every message"
            yield (
                f"topic {topic} of product {name} has cleanup.policy={policy} and {loses}: kafka-configs.sh --alter "
                f"--entity-type topics --entity-name {topic} --add-config cleanup.policy=compact"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishPreparation:
    """The preparation of a run. `configs`: asks for the configurations of a plan's topics. `letter_bytes`: the largest dead
    letter, None for any."""

    settings: Settings
    store: Store
    configs: Callable[[Plan], Mapping[str, Mapping[str, str]]]
    registration: SchemaRegistration
    letter_bytes: int | None
    report: Report = no_report

    def setup(self, plan: Plan) -> PublishSetup:
        """What the driver needs to publish by this plan. Registers the schemas of Avro products."""
        sequences = earlier_sequences(self.settings, plan, self.store, self.report)
        limits = message_limits(plan, self.configs(plan))
        registered = self.registration.register(plan)
        return PublishSetup(
            letter_bytes=self.letter_bytes,
            earlier_sequences=sequences,
            message_limits=limits,
            schema_ids=registered.ids,
            unready=registered.refused,
        )


def earlier_sequences(settings: Settings, plan: Plan, store: Store, report: Report = no_report) -> dict[str, int]:
    """Product -> the highest sequence that its topic had before the product published there. Reads the topic of a product that
    the table does not know yet, or knows with another root or another topic. Reports messages that no job wrote. Raises
    OwnedByAnother where the registry gives a product another ledger number than the table knows."""
    items = {item["SK"]: item for item in store.partition(SEQUENCES)}
    known, found = read_sequences(items.values()), dict[str, int]()
    for name, product in plan.products.items():
        ledger = group_partition(product.ledger)
        if other := other_number(items.values(), name, ledger, product.number):
            raise OwnedByAnother(
                f"the registry {settings.registry_schema} went back to an earlier moment: {other}. Restore a newer backup, or "
                "stop every job and make a new registry for the table: `statestore rebuild-registry --registry-is-lost` with "
                "another --registry-schema"
            )
        topic = product.product.topic
        if (name, ledger, topic) not in known:
            above = _highest_sequence(settings, topic, report)
            former = ledgers_in([items[name]] if name in items else [])
            store.write(write_sequence(name, above, topic, ledger, product.number, former))
            for other, item in items.items():  # one that comes back to this topic has to read it again
                if other != name and item.get("topic") == topic:
                    place = (item["ledger"], item["number"], item["former"])
                    store.write(write_sequence(other, item["above"], "", *place))
            known[name, ledger, topic] = above
        found[name] = known[name, ledger, topic]
    return found


def _highest_sequence(settings: Settings, topic: str, report: Report) -> int:
    """The highest sequence of a topic's messages; 0 without one. Passes over messages that no job wrote, and reports them."""
    highest, foreign, first = 0, 0, ""
    for message in read_topic(settings.bootstrap_servers, dict(settings.kafka), topic):
        sequence = sequence_of(dict(message.headers))
        if sequence is None:
            foreign, first = foreign + 1, first or f"partition {message.partition}, offset {message.offset}"
        highest = max(highest, sequence or 0)
    if foreign:
        text = (
            f"topic {topic} has {foreign} messages that no statestore job wrote, the first at {first}: their sequences do not "
            "count. No other program may write to the topic of a product; `statestore verify` names documents that differ"
        )
        report(JobEvent(what="product topic", text=text, level="warning"))
    return highest
