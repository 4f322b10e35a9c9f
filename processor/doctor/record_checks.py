"""The last records of the topics that the job reads: what the definitions do not say about them."""

from collections.abc import Iterator

from processor.doctor.registry_checks import existing_registry
from processor.doctor.surroundings import Surroundings
from processor.findings.finding import Finding, ok, warning
from processor.records.decimal_forms import untold_forms
from processor.records.entity import Entity
from processor.records.numbers import TextForm

SAMPLE = 50
"""Records that the check reads from each topic."""
BYTES_CURE = "declare `decimals: bytes` in the entity, and decimal(precision,scale) with the scale of the source"


def check_records(around: Surroundings) -> Iterator[Finding]:
    """Whether each entity says how its decimals arrive, where a record does not."""
    existing_registry(around)
    entities = [one.entity for _, one in sorted(around.plan.entities.items())]
    topics = around.kafka.topics(sorted(entity.topic for entity in entities))
    wrong = False
    for entity in entities:
        topic = topics.get(entity.topic)
        if topic is None or (topic.rights is not None and "READ" not in topic.rights) or not _may_have_text(entity):
            continue
        for column, forms in untold_forms(around.kafka.last_records(entity.topic, SAMPLE), entity).items():
            wrong = True
            yield _finding(entity, column, forms)
    if not wrong:
        yield ok(f"the last records of each topic show no decimal whose form is unknown; looked at {SAMPLE} of each")


def _may_have_text(entity: Entity) -> bool:
    """Whether the entity has a number column of which it does not say how its text arrives."""
    kinds = ((name, column.name) for name, column in entity.columns.items())
    return any(kind in ("decimal", "float") and entity.decimal_form(name) is None for name, kind in kinds)


def _finding(entity: Entity, column: str, forms: frozenset[TextForm]) -> Finding:
    what = f"{entity.topic}: column {column} of entity {entity.name} arrives without a schema, as"
    if {"text", "bytes"} <= forms:
        cure = "declare `decimals` as the newer records are; those of the other form become dead letters"
        return warning(f"{what} digits in some records and as Debezium's bytes in others", cure)
    if "bytes" in forms:
        return warning(f"{what} Debezium's bytes: these records become dead letters", BYTES_CURE)
    if "text" in forms:
        text = f"{what} digits: a number of 4, 8 or 12 digits without a point may be bytes, and becomes a dead letter"
        return warning(text, "declare `decimals: text` in the entity")
    text = f"{what} text that may be digits or Debezium's bytes: these records become dead letters"
    return warning(text, "declare `decimals: text` if decimal.handling.mode is string, else `decimals: bytes`")
