"""Looks at the topics that the job publishes to, when a plan begins: does each have all documents, and keep them?

For a topic that does not, the job shows a warning with the command to give, and goes on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from processor.engine.plan.plan import Plan
from processor.engine.protocol.identity import (
    TOPICS,
    PublishedTopic,
    describe_change,
    is_new,
    read_published_topics,
    write_published_topic,
)
from processor.engine.rounds.events import JobEvent, Report
from processor.job.kafka.admin import Admin
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
