"""Finds the document that a topic has for a key, among the last messages of the topic: a page never reads a whole topic. A
message in Avro is read by its schema in the registry."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from processor.errors import KafkaError, SchemaRegistryAway, SettingError
from processor.kafka.reader import read_sample
from processor.product.product import Product
from processor.records import canonical_json
from processor.records.entity import Entity
from processor.records.record import Record
from processor.schema_registry.document_schemas import NO_REGISTRY, as_json
from processor.settings.resolve_secrets import resolve_schema_registry
from processor.settings.settings import Settings

MOST_MESSAGES: Final = 2_000


class PublishedMessage(NamedTuple):
    """The last message of a key. `found`: whether it is among those that were read; `value`: its document, None for a tombstone;
    `why`: the reason where it was not found."""

    found: bool
    value: Any = None
    why: str = ""


def published_message(
    settings: Settings, product: Product, entities: Mapping[str, Entity], key: bytes
) -> PublishedMessage:
    """The last message of a key, among the last MOST_MESSAGES of the product's topic."""
    if not settings.bootstrap_servers:
        return PublishedMessage(False, why="give --bootstrap-servers, and the console looks for it in the topic")
    try:
        records = read_sample(settings.bootstrap_servers, dict(settings.kafka), product.topic, MOST_MESSAGES)
        mine = [record for record in records if record.key == key]
        if not mine:
            why = f"it is not among the last {MOST_MESSAGES:,} messages of topic {product.topic}"
            return PublishedMessage(False, why=why)
        return PublishedMessage(True, _document(settings, product, entities, mine[-1]))
    except (KafkaError, SchemaRegistryAway, SettingError) as error:
        return PublishedMessage(False, why=str(error))
    except ValueError:
        why = f"topic {product.topic} has a message that is no document of this version, or of another program"
        return PublishedMessage(False, why=why)


def _document(settings: Settings, product: Product, entities: Mapping[str, Entity], message: Record) -> Any:
    """The document of a message; None of a tombstone. Raises ValueError for bytes that are none."""
    if product.format == "avro":
        if not settings.schema_registry:
            raise SettingError(NO_REGISTRY)
        (message,) = as_json([message], product, entities, resolve_schema_registry(settings.schema_registry))
    return None if message.value is None else canonical_json.loads(message.value)
