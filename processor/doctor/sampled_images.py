"""What the last records of a topic show of the columns of their entity: which of them arrive at all, and whether nulls do."""

from collections.abc import Collection, Iterable, Iterator

from processor.findings.finding import Finding, failure, warning
from processor.plan.plan import EntityPlan
from processor.records import canonical_json
from processor.records.change_formats import DebeziumImage, check_row, read_image
from processor.records.entity import Entity
from processor.records.framing import is_framed
from processor.records.record import Record
from processor.records.values import DEBEZIUM

ENOUGH = 20
"""Plain rows without a column that are a sign: one plain row may leave a column out."""


def new_images(records: Iterable[Record], entity: Entity) -> Iterator[DebeziumImage]:
    """The new rows in the records that are JSON, without those that become dead letters."""
    for record in records:
        if record.value is None or is_framed(record.value):
            continue
        try:
            value = canonical_json.loads(record.value)
            image = read_image(value, entity)
            if not isinstance(image, DebeziumImage) or image.deleted or image.refusal:
                continue
            check_row(value, image, entity)
        except ValueError:
            continue
        yield image


def shows_null(records: Iterable[Record], entity: Entity, columns: Collection[str]) -> bool:
    """Whether a record has null in one of the columns."""
    images = new_images(records, entity)
    return any(name in image.row and image.row[name] is None for image in images for name in columns)


def absent_findings(records: Iterable[Record], plan: EntityPlan) -> Iterator[Finding]:
    """The declared columns that records lack, and of which the entity does not say `absent`."""
    entity, images = plan.entity, list(new_images(records, plan.entity))
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
