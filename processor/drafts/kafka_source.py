"""Drafts entities from the records of a file or of a Kafka cluster, and from the subjects of its schema registry."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from processor.drafts.draft import DraftEntity, short_names
from processor.drafts.guessed_references import guess_references
from processor.drafts.topics import draft_topics
from processor.records.record import Record
from processor.records.recorded_topics import read_records
from processor.schema_registry.open_schemas import open_client, open_schemas
from processor.settings.resolve_secrets import resolve_schema_registry
from processor.settings.settings import Settings

SAMPLE = 200
"""The last records of each topic that show its columns."""
_OF_CONNECT = ("connect-configs", "connect-offsets", "connect-status")


def recorded_entities(settings: Settings, path: str) -> list[DraftEntity]:
    """The entities that a file of recorded topics shows. Raises RecordedError."""
    schemas = open_schemas(resolve_schema_registry(settings.schema_registry))
    return guess_references(draft_topics(read_records(path), schemas))


def kafka_entities(settings: Settings, prefix: str | None) -> list[DraftEntity]:
    """The entities that topics show by their last records, and those without records that a schema registry knows. `prefix`: of
    all topics. Raises KafkaError, SchemaRegistryAway and SettingError."""
    access = resolve_schema_registry(settings.schema_registry)
    records: Iterable[Record] = _sample(settings, prefix) if settings.bootstrap_servers else ()
    found = draft_topics(records, open_schemas(access))
    if access:
        from processor.drafts.subject_schemas import draft_subjects

        found += draft_subjects(open_client(access), prefix, {entity.topic for entity in found})
        names = short_names(entity.topic for entity in found)
        found = [replace(entity, name=names[entity.topic]) for entity in found]
    return guess_references(sorted(found, key=lambda entity: entity.name))


def _sample(settings: Settings, prefix: str | None) -> Iterator[Record]:
    from processor.kafka.admin import Admin
    from processor.kafka.reader import read_sample

    address, extra = settings.bootstrap_servers, dict(settings.kafka)
    others = {settings.rejects_topic, *_OF_CONNECT}
    for topic in sorted(Admin(address, extra).names()):
        if topic not in others and (prefix is None or topic.startswith(f"{prefix}.")):
            yield from read_sample(address, extra, topic, SAMPLE)
