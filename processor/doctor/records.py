"""The last records of the topics that the job reads: what the definitions do not say about them."""

from collections.abc import Iterator

from processor.doctor.decimal_forms import SampledForm, is_untold, untold_forms
from processor.doctor.format_findings import format_findings
from processor.doctor.registry_checks import existing_registry
from processor.doctor.sampled_images import absent_findings
from processor.doctor.surroundings import Surroundings
from processor.doctor.transaction_findings import record_findings, topic_findings
from processor.findings.finding import Finding, ok, warning
from processor.progress.form_notes import PARTITION, Forms, read_form, with_notes
from processor.records.entity import Entity
from processor.records.settled_form import NO_FORMS, SettledForm
from statestore.errors import StoreError

SAMPLE = 50
"""Records that the check reads from each topic."""
BYTES_CURE = "declare `decimals: bytes` in the entity, and decimal(precision,scale) with the scale of the source"
WORDS = {"text": "digits", "bytes": "Debezium's bytes"}


def check_records(around: Surroundings) -> Iterator[Finding]:
    """Whether entities can store the records, and say how their decimals arrive, where a record does not. Whether records have
    all declared columns, and name their transactions, where the entity says so."""
    existing_registry(around)
    entities = [one.entity for _, one in sorted(around.plan.entities.items())]
    named = {entity.topic for entity in entities} | {entity.transactions for entity in entities} - {""}
    topics = around.kafka.topics(sorted(named))
    yield from topic_findings(entities, topics)
    untold = [entity for entity in entities if any(is_untold(entity, name) for name in entity.columns)]
    forms = _settled_forms(around) if untold else {}
    wrong = False
    for entity in entities:
        topic, settled = topics.get(entity.topic), forms.get(entity.name, NO_FORMS)
        if topic is None or (topic.rights is not None and "READ" not in topic.rights):
            continue
        records = around.kafka.last_records(entity.topic, SAMPLE)
        for finding in absent_findings(records, around.plan.entities[entity.name]):
            wrong = True
            yield finding
        for found_format in format_findings(entity, records):
            wrong = True
            yield found_format
        yield from record_findings(entity, records)
        found = untold_forms(records, entity)
        for column in entity.columns:
            of_decimal = _finding(entity, column, found.get(column, frozenset()), settled.get(column))
            if of_decimal is not None:
                wrong = wrong or of_decimal.state != "ok"
                yield of_decimal
    if not wrong:
        shown = "all columns, no other format, and no decimal whose form is unknown"
        yield ok(f"the last records of each topic show {shown}; looked at {SAMPLE} of each")


def _settled_forms(around: Surroundings) -> Forms:
    """The forms that the table has; none without a table. Other checks name the failure of a table."""
    try:
        return with_notes({}, map(read_form, around.store.partition(PARTITION))) if around.table_state else {}
    except StoreError:
        return {}


def _finding(entity: Entity, column: str, forms: frozenset[SampledForm], settled: SettledForm | None) -> Finding | None:
    what = f"{entity.topic}: column {column} of entity {entity.name}"
    arrives = f"{what} arrives without a schema, as"
    if "unread" in forms:
        return warning(f"{arrives} Debezium's bytes: these records become dead letters", BYTES_CURE)
    if settled is not None and not entity.settles(column):
        return None
    if settled is not None:
        text = f"{what} has `decimals: {settled.form}` since the record {settled.since}"
        if not ({"text", "bytes"} & forms) - {settled.form}:
            return ok(text)
        cure = "declare in the entity the `decimals` that the connector writes; that replaces what the record settled"
        return warning(f"{text}, and records of the other form become dead letters", cure)
    if {"text", "bytes"} <= forms:
        cure = "declare `decimals` as the newer records are; those of the other form become dead letters"
        return warning(f"{arrives} digits in some records and as Debezium's bytes in others", cure)
    for form in ("text", "bytes"):
        if form in forms:
            text = f"{arrives} {WORDS[form]}: the first such record settles the form; before, text that may be either is refused"
            return warning(text, f"declare `decimals: {form}` in the entity")
    if forms:
        text = f"{arrives} text that may be digits or Debezium's bytes: these records become dead letters"
        return warning(text, "declare `decimals: text` if decimal.handling.mode is string, else `decimals: bytes`")
    return None
