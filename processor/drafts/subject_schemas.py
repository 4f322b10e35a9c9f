"""Drafts entities from the schemas of a registry, without a record: the subjects TOPIC-key and TOPIC-value."""

from collections.abc import Mapping
from typing import Any

from processor.drafts.draft import DraftEntity, fit_limits, short_names
from processor.drafts.schema_types import schema_column
from processor.records import canonical_json
from processor.records.change_formats import key_schemas
from processor.records.schemas.avro_schema import read_avro_schema
from processor.records.schemas.connect_json_schema import connect_schema
from processor.schema_registry.registry_client import RegistryClient, SchemaMissing, WriterSchema

_VALUE = "-value"


def draft_subjects(client: RegistryClient, prefix: str | None, known: set[str]) -> list[DraftEntity]:
    """An entity for each subject TOPIC-value whose topic begins with `prefix`. Leaves out the topics of `known`."""
    subjects = set(client.subjects())
    topics = sorted(name.removesuffix(_VALUE) for name in subjects if name.endswith(_VALUE))
    topics = [topic for topic in topics if topic not in known and topic.startswith(f"{prefix}." if prefix else "")]
    return [_entity(client, topic, name, subjects) for topic, name in short_names(topics).items()]


def _entity(client: RegistryClient, topic: str, name: str, subjects: set[str]) -> DraftEntity:
    columns, key, note = dict[str, Any](), tuple[str, ...](), ""
    try:
        columns = _row_fields(_connect(client.latest(f"{topic}{_VALUE}")))
        key_subject = f"{topic}-key"
        fields = (key_schemas(_connect(client.latest(key_subject)), ()) or {}) if key_subject in subjects else {}
        columns, key = {**fields, **columns}, tuple(fields)
    except (SchemaMissing, ValueError) as error:
        note = f"the schemas of topic {topic} cannot be read: {error}"
    guess = ""
    if not key and "id" in columns:
        key, guess = ("id",), "by its name: no schema names the columns of the key"
    typed = {column: schema_column(schema) for column, schema in columns.items()}
    return fit_limits(DraftEntity(name=name, topic=topic, key=key, key_guess=guess, columns=typed, note=note))


def _connect(schema: WriterSchema) -> Mapping[str, Any]:
    """The schema by Kafka Connect. Raises ValueError for one that cannot be read without its records."""
    match schema.kind:
        case "AVRO":
            references = {name: canonical_json.loads(text) for name, text in schema.references.items()}
            return read_avro_schema(canonical_json.loads(schema.text), references).connect
        case "JSON":
            references = {name: canonical_json.loads(text) for name, text in schema.references.items()}
            return connect_schema(canonical_json.loads(schema.text), references)
    raise ValueError(f"{schema.kind} needs a record: give --bootstrap-servers")


def _row_fields(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schemas of the columns: those of `after` in an envelope of Debezium."""
    fields = dict(key_schemas(schema, ()) or {})
    after = fields.get("after")
    return _row_fields(after) if after is not None and "op" in fields else fields
