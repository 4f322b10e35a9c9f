"""The most bytes of a message of a topic, and of each product's topic."""

from collections.abc import Mapping

from processor.engine.plan.plan import Plan
from processor.environment.settings.settings import Settings
from processor.job.kafka.admin import Admin
from processor.values.record import MAX_MESSAGE_BYTES

KAFKA_DEFAULT_BYTES = 1_048_588
"""Kafka's own default of `max.message.bytes`."""


def ask_limit(settings: Settings, topic: str) -> int:
    """The most bytes of a message of a topic that refused a larger one: Kafka's default where the job may not ask."""
    admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
    return min(admin.max_message_bytes(topic) or KAFKA_DEFAULT_BYTES, MAX_MESSAGE_BYTES)


def message_limits(plan: Plan, configs: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
    """Product -> the most bytes of a message of its topic, by the configuration of the topics that the job may see."""
    topics = {name: product.product.topic for name, product in plan.products.items()}
    return {
        name: min(int(configs[topic]["max.message.bytes"]), MAX_MESSAGE_BYTES)
        for name, topic in topics.items()
        if topic in configs
    }
