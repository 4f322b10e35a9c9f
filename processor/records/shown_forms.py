"""Which forms of decimals a record shows, in columns whose form is not settled."""

from collections.abc import Mapping, Sequence

from processor.records.change_formats import DebeziumImage, key_schemas, unwrap
from processor.records.entity import ColumnType, DecimalForm, Entity
from processor.records.numbers import text_form
from processor.records.record import Value
from processor.records.schemas.schema_readings import Schemas
from processor.records.values import DEBEZIUM


def shown_forms(columns: Sequence[str], key: Value, image: DebeziumImage, entity: Entity) -> Mapping[str, DecimalForm]:
    """The forms that the text of these columns shows in a record of Debezium, where no schema says how to read it. `key`: the
    value of its Kafka key. Decode has read each text, so none has two meanings."""
    found: dict[str, DecimalForm] = {}
    if image.reading is not DEBEZIUM:
        return found
    for name in columns:
        if name in entity.key:
            parts, schema = unwrap(key, entity)
            part = parts.get(name) if type(parts) is dict else parts
            _note(found, name, part, entity.columns[name], key_schemas(schema, entity.key))
        _note(found, name, image.row.get(name), entity.columns[name], image.schemas)
    return found


def _note(
    found: dict[str, DecimalForm], name: str, value: Value, column_type: ColumnType, schemas: Schemas | None
) -> None:
    """Notes the form of a value: of the first text in an array that shows one."""
    if type(value) not in (str, list) or (schemas is not None and name in schemas):
        return
    for text in value if type(value) is list else [value]:
        form = text_form(text, column_type) if type(text) is str else None
        if form == "text" or form == "bytes":
            found.setdefault(name, form)
