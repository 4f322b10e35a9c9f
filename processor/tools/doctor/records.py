"""The last records of the topics that the job reads: what the definitions do not say about them.

A record may lack a declared column, be of another envelope or another table, say an undeclared delete, or name no
transaction. Without a schema, the form of its decimals is unknown: a person may say it in the definitions.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from processor.engine.plan.plan import EntityPlan
from processor.engine.protocol.decode import decode
from processor.engine.rounds.decoding import settled_forms
from processor.environment.settings.schema_registry import registry_kind
from processor.finding import Checks, Finding, failure, ok, warning
from processor.tools.doctor.context import KAFKA, CheckContext
from processor.tools.doctor.table import need_definitions
from processor.values import canonical_json
from processor.values.decimal_forms import (
    NO_FORMS,
    Forms,
    SampledForm,
    form_finding,
    is_undeclared,
    sampled_forms,
)
from processor.values.entity import Entity
from processor.values.envelopes.kind import RowImage, row_images
from processor.values.envelopes.kinds import check_row, kind_of, read_image, read_transaction, stated_tables, unwrap
from processor.values.framing import FRAMINGS, FramedReader, NoSchemas, is_framed
from processor.values.reasons import REASONS, ReasonCode
from processor.values.record import Change, Record, Rejected
from processor.values.values import DEBEZIUM
from statestore.store import StoreError

if TYPE_CHECKING:
    from processor.job.kafka.admin import TopicState

CHECKS = Checks()
SAMPLE = 50
"""Records that the check reads from each topic."""
ENOUGH = 20
"""Plain rows without a column that are a sign: one plain row may leave a column out."""
_FAILURES: tuple[ReasonCode, ...] = ("other-format", "other-registry", "unknown-op", "row-missing")
_CODES: tuple[ReasonCode, ...] = (*_FAILURES, "other-table", "delete-unsaid")
_SOFT = ("deleted", "is_deleted", "isDeleted")
"""Columns that mark the rows of a table that are still there. A transform may write the same names for a delete."""
SETTING = "provide.transaction.metadata=true"
STREAMED = ("c", "u", "d")
FLATTENED = "transaction.id, transaction.data_collection_order, source.schema (or source.db) and source.table"


@CHECKS.check("source records", "the last records of these topics", cure=KAFKA, needs=("source topics",))
def check_records(around: CheckContext) -> Iterator[Finding]:
    """Whether entities can store the records, and say how their decimals arrive, where a record does not. Whether records have
    all declared columns, and name their transactions, where the entity says so."""
    need_definitions(around)
    entities = [one.entity for _, one in sorted(around.plan.entities.items())]
    named = {entity.topic for entity in entities} | {entity.transactions for entity in entities} - {""}
    topics = around.kafka.topics(sorted(named))
    yield from _transaction_topic_findings(entities, topics)
    undeclared = [entity for entity in entities if any(is_undeclared(entity, name) for name in entity.columns)]
    forms = _settled_forms(around) if undeclared else {}
    wrong: list[Finding] = []
    framing = FRAMINGS[registry_kind(dict(around.settings.schema_registry))]
    for entity in entities:
        topic, settled = topics.get(entity.topic), forms.get(entity.name, NO_FORMS)
        if topic is None or (topic.rights is not None and "READ" not in topic.rights):
            continue
        records = around.kafka.last_records(entity.topic, SAMPLE)
        shown = [
            *_absent_findings(records, around.plan.entities[entity.name]),
            *format_findings(entity, records, NoSchemas(framing)),
            *misfit_findings(entity, records),
        ]
        yield from shown
        yield from _transaction_findings(entity, records)
        found = undeclared_forms(records, entity)
        forms_of = (form_finding(entity, c, found.get(c, frozenset()), settled.get(c)) for c in entity.columns)
        decimals = [one for one in forms_of if one is not None]
        yield from decimals
        wrong += [one for one in (*shown, *decimals) if one.state != "ok"]
    if not wrong:
        good = "all columns, no other format, and no decimal whose form is unknown"
        yield ok(f"the last records of each topic show {good}; looked at {SAMPLE} of each")


def _settled_forms(around: CheckContext) -> Forms:
    """The forms that the table has; none without a table. Other checks name the failure of a table."""
    try:
        return settled_forms(around.store) if around.table_state else {}
    except StoreError:
        return {}


def undeclared_forms(records: Iterable[Record], entity: Entity) -> Mapping[str, frozenset[SampledForm]]:
    """The number columns of which the entity does not say how their text arrives -> the forms of text in these records."""
    columns = [name for name in entity.columns if is_undeclared(entity, name)]
    found: dict[str, set[SampledForm]] = {}
    for image in _new_images(records, entity) if columns else ():
        for name in columns:
            if image.schemas is None or name not in image.schemas:
                found.setdefault(name, set()).update(
                    sampled_forms(image.row.get(name), entity.columns[name], plain=image.reading is not DEBEZIUM)
                )
    return {name: frozenset(forms) for name, forms in found.items() if forms}


def _new_images(records: Iterable[Record], entity: Entity) -> Iterator[RowImage]:
    """The new rows in the records that are JSON, without those that become dead letters."""
    for record in records:
        if record.value is None or is_framed(record.value):
            continue
        try:
            value = canonical_json.loads(record.value)
            image = read_image(value, entity)
            rows = [row for row in row_images(image) if not (row.deleted or row.refusal)]
            for row in rows:
                check_row(value, row, entity)
        except ValueError:
            continue
        yield from rows


def shows_null(records: Iterable[Record], entity: Entity, columns: Collection[str]) -> bool:
    """Whether a record has null in one of the columns."""
    images = _new_images(records, entity)
    return any(name in image.row and image.row[name] is None for image in images for name in columns)


def _absent_findings(records: Iterable[Record], plan: EntityPlan) -> Iterator[Finding]:
    """The declared columns that records lack, and of which the entity does not say `absent`."""
    entity, images = plan.entity, list(_new_images(records, plan.entity))
    sure = [image for image in images if image.schemas is not None or image.reading is DEBEZIUM]
    for name in entity.columns:
        if name in entity.key or entity.absent_choice(name) is not None:
            continue
        without = sum(name not in image.row and name not in (image.schemas or ()) for image in sure)
        if not without and len(images) >= ENOUGH and not any(name in image.row for image in images):
            without = len(images)
        if without:
            text = f"{entity.topic}: {without} of the last {len(images)} records lack column {name} of entity {entity.name}"
            cure = "correct `columns` if the source renamed or dropped it; else declare `absent` of the column"
            loud = sure and name not in plan.unread
            yield failure(f"{text}: documents show null", cure) if loud else warning(text, cure)


def format_findings(entity: Entity, records: Sequence[Record], schemas: FramedReader) -> Iterator[Finding]:
    """The kinds of records that become dead letters, where no schema is needed to see it; the tables that share a
    topic, and flags that may be deletes."""
    found: Counter[tuple[ReasonCode, str]] = Counter()
    for record in records:
        decoded = decode(record, entity, schemas)
        if isinstance(decoded, Rejected) and decoded.code in _CODES:
            found[decoded.code, decoded.plain] += 1
    for (code, reason), count in found.items():
        text = f"{entity.topic}: {count} of the last {len(records)} records become dead letters of entity {entity.name}: {reason}"
        yield (failure if code in _FAILURES else warning)(text, REASONS[code].cure)
    payloads = list(_payloads(records, entity))
    tables = Counter(stated[-1] for payload in payloads if (stated := stated_tables(payload)))
    if len(tables) > 1 and not entity.table:
        text = f"{entity.topic}: its records are of the tables {', '.join(sorted(tables))}, and entity {entity.name} takes all"
        yield warning(text, "write `table` in the entity, the table whose records count; the job ignores the others")
    if entity.table and tables:
        yield _table_finding(entity, tables, sum(entity.table in stated_tables(payload) for payload in payloads))
    rules = sorted({text for one in payloads if (text := kind_of(one, entity)[0].partitioned_by(one))})
    if len(rules) > 1 and len({record.partition for record in records}) > 1:
        text = f"{entity.topic}: {' and '.join(rules)} choose the partitions of its records, so a row has changes in several"
        yield failure(
            text, "give the topic one partition, or let the system use one rule (AWS DMS: partition-key-type)"
        )
    soft = {name for name in _SOFT if name not in entity.columns and not entity.deleted}
    for name in sorted({name for payload in payloads for name in soft if payload.get(name) in (True, 1, "true")}):
        text = f"{entity.topic}: rows have {name!r}, which entity {entity.name} does not declare, and the job stores them as rows"
        yield warning(
            text, f"declare {name} if it is a column, or write `deleted: {{column: {name}}}` if it says a delete"
        )


def misfit_findings(entity: Entity, records: Sequence[Record]) -> Iterator[Finding]:
    """The columns with values that their declared types cannot hold."""
    found: Counter[str] = Counter()
    lenient = replace(entity, unrepresentable="null")
    for record in records:
        decoded = decode(record, lenient)
        found.update(decoded.nulled if isinstance(decoded, Change) else ())
    for name, count in sorted(found.items()):
        text = f"{entity.topic}: {count} of the last {len(records)} records have a value in column {name}"
        text += f" that {entity.columns[name]} cannot hold"
        if entity.nulls(name):
            yield ok(f"{text}: it is null")
        else:
            yield warning(
                f"{text}: dead letters", f"declare `unrepresentable: {{{name}: null}}`, or json for the column"
            )


def _table_finding(entity: Entity, tables: Counter[str], own: int) -> Finding:
    """How many records are of the entity's `table`. `tables`: those that records name."""
    shown, total = ", ".join(sorted(tables)), sum(tables.values())
    text = f"{entity.topic}: {own} of the last {total} records are of the table {entity.table} of entity {entity.name}"
    if not own:
        return warning(
            f"{text}: they are of {shown}", "correct `table` of the entity, if the topic should have its rows"
        )
    return ok(f"{text}, which ignores {total - own}")


def _payloads(records: Iterable[Record], entity: Entity) -> Iterator[dict[str, object]]:
    """The values of the records that are JSON objects."""
    for record in records:
        try:
            value = None if record.value is None or is_framed(record.value) else canonical_json.loads(record.value)
        except ValueError:
            continue
        payload, _ = unwrap(value, entity)
        if type(payload) is dict:
            yield payload


def _transaction_topic_findings(entities: Iterable[Entity], topics: "Mapping[str, TopicState]") -> Iterator[Finding]:
    """Of the topics that entities name in `transactions`."""
    for name in sorted({entity.transactions for entity in entities} - {""}):
        topic = topics.get(name)
        if topic is None:
            text = f"{name}: no such topic, and `transactions` of entities names it: no transaction counts as complete"
            yield warning(text, f"set {SETTING} in the connector, or correct `transactions`")
        elif topic.rights is not None and "READ" not in topic.rights:
            text = f"{name}: this user lacks READ: no transaction counts as complete"
            yield failure(text, f"give this user an ACL that allows READ; {SETTING} fills the topic")
        else:
            yield ok(f"{name}: the topic of transactions is there")


def _transaction_findings(entity: Entity, records: Iterable[Record]) -> Iterator[Finding]:
    """Of the newest record of an entity that must name its transaction: no tombstone, and none of a snapshot."""
    if not entity.transactions:
        return
    payloads = (_change(record, entity) for record in sorted(records, key=lambda one: one.timestamp, reverse=True))
    newest = next((payload for payload in payloads if payload is not None), None)
    if newest is not None and read_transaction(newest) is None:
        text = f"{entity.topic}: entity {entity.name} has `transactions`, and its last record names no transaction"
        cure = f"set {SETTING} in the connector, or remove `transactions`"
        if "op" not in newest:
            cure = f"set {SETTING}, and let add.fields of ExtractNewRecordState have {FLATTENED}"
        yield warning(text, cure)


def _change(record: Record, entity: Entity) -> Mapping[str, Any] | None:
    """The value of a JSON record of a change; None for any other."""
    if record.value is None or is_framed(record.value):
        return None
    try:
        payload, _ = unwrap(canonical_json.loads(record.value), entity)
    except ValueError:
        return None
    if type(payload) is not dict or payload.get("op", "c") not in STREAMED:
        return None
    snapshot = "__transaction_id" in payload and payload["__transaction_id"] is None
    return None if snapshot or payload.get("__op", "c") not in STREAMED else payload
