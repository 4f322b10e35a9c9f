"""How the decimals of records without a schema arrive, for a person who may say so in the definitions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from processor.doctor.sampled_images import new_images
from processor.records.change_formats import DebeziumImage
from processor.records.entity import ColumnType, Entity
from processor.records.numbers import text_form
from processor.records.record import Record, Value
from processor.records.values import DEBEZIUM

SampledForm = Literal["text", "bytes", "either", "unread"]
"""`text` and `bytes` as `text_form` has them; `either`: nobody can tell. `unread`: bytes that decode refuses, because the column
has no scale, or the row looks like a plain one."""


def untold_forms(records: Iterable[Record], entity: Entity) -> Mapping[str, frozenset[SampledForm]]:
    """The number columns of which the entity does not say how their text arrives -> the forms of text in these records."""
    columns = [name for name in entity.columns if is_untold(entity, name)]
    found: dict[str, set[SampledForm]] = {}
    for image in new_images(records, entity) if columns else ():
        for name in columns:
            if image.schemas is None or name not in image.schemas:
                found.setdefault(name, set()).update(_forms(image, name, entity.columns[name]))
    return {name: frozenset(forms) for name, forms in found.items() if forms}


def is_untold(entity: Entity, column: str) -> bool:
    """Whether a column takes text of numbers, and the entity does not say its form."""
    return entity.columns[column].name in ("decimal", "float") and entity.decimal_form(column) is None


def _forms(image: DebeziumImage, column: str, column_type: ColumnType) -> Iterator[SampledForm]:
    """The forms in one row. A plain row, and a column without a scale, have numbers in their text."""
    value: Value = image.row.get(column)
    digits = image.reading is not DEBEZIUM or column_type.scale is None
    for text in value if isinstance(value, list) else [value]:
        form = text_form(text, column_type) if isinstance(text, str) else None
        if form is not None and not digits:
            yield "either" if form == "letters" else form
        elif form in ("bytes", "letters"):
            yield "unread"
