"""How the decimals of records without a schema arrive, for a person who must say so in the definitions.

The job never learns a form from values: it asks for `decimals` in the entity, and refuses what it cannot tell.
"""

from collections.abc import Iterable, Iterator, Mapping

from processor.records import canonical_json
from processor.records.change_formats import DebeziumImage, read_image
from processor.records.entity import Entity
from processor.records.framing import is_framed
from processor.records.numbers import TextForm, text_form
from processor.records.record import Record, Value
from processor.records.values import DEBEZIUM


def untold_forms(records: Iterable[Record], entity: Entity) -> Mapping[str, frozenset[TextForm]]:
    """The number columns of which the entity does not say how their text arrives -> the forms of text in these records."""
    columns = [
        name
        for name, column in entity.columns.items()
        if column.name in ("decimal", "float") and entity.decimal_form(name) is None
    ]
    found: dict[str, set[TextForm]] = {}
    for image in _images(records, entity) if columns else ():
        for name in columns:
            if image.schemas is None or name not in image.schemas:
                found.setdefault(name, set()).update(_forms(image, name))
    return {name: frozenset(forms) for name, forms in found.items() if forms}


def _images(records: Iterable[Record], entity: Entity) -> Iterator[DebeziumImage]:
    """The new rows in the records that are JSON."""
    for record in records:
        if record.value is None or is_framed(record.value):
            continue
        try:
            image = read_image(canonical_json.loads(record.value), entity)
        except ValueError:
            continue
        if isinstance(image, DebeziumImage) and not image.deleted:
            yield image


def _forms(image: DebeziumImage, column: str) -> Iterator[TextForm]:
    """The forms in one row. A plain row has numbers in its text. Text that is no number there says that the row is flattened."""
    value: Value = image.row.get(column)
    for text in value if isinstance(value, list) else [value]:
        form = text_form(text) if isinstance(text, str) else None
        if form is not None and (image.reading is DEBEZIUM or form == "bytes"):
            yield form
