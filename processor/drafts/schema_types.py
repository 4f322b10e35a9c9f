"""The type to declare for a column by its schema, in the form of Kafka Connect's JsonConverter. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from processor.drafts.draft import DraftColumn
from processor.records.column_types import MAX_DIGITS
from processor.records.schemas.connect_values import DECIMAL
from processor.records.schemas.schema_readings import NAMED_TYPES

_JSON: Final = "io.debezium.data.Json"
_PRIMITIVES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int8", "int16", "int32", "int64", "int", "long", "integer"), "int"),
    **dict.fromkeys(("float", "double", "float32", "float64", "number"), "float"),
    **dict.fromkeys(("string", "bytes", "enum", "fixed"), "string"),
    **dict.fromkeys(("struct", "map", "record", "object"), "json"),
    "boolean": "bool",
}


def schema_column(schema: Mapping[str, Any]) -> DraftColumn:
    """The column of a schema. `doc`, which Avro and Kafka Connect know, becomes its comment."""
    doc = schema.get("doc")
    return _typed(schema)._replace(comment=doc if isinstance(doc, str) else "")


def _typed(schema: Mapping[str, Any]) -> DraftColumn:
    kind, name = schema.get("type"), schema.get("name")
    if kind == "array":
        items = schema.get("items")
        found = _typed(items) if isinstance(items, dict) else DraftColumn("json")
        inner = found.type if found.type and not found.type.endswith("[]") else "json"
        return DraftColumn(f"{inner}[]", found.guess)
    if name == DECIMAL:
        return DraftColumn(_decimal(schema.get("parameters")))
    if name == _JSON:
        return DraftColumn("json")
    if isinstance(name, str) and name in NAMED_TYPES:
        types, reading = NAMED_TYPES[name]
        return DraftColumn(f"{types[0]}({reading.unit})" if reading.unit else types[0])
    if isinstance(kind, str) and kind in _PRIMITIVES:
        return DraftColumn(_PRIMITIVES[kind])
    return DraftColumn("json", "its schema allows several types")


def _decimal(parameters: Any) -> str:
    found = parameters if isinstance(parameters, dict) else {}
    precision, scale = (str(found.get(name, "")) for name in ("connect.decimal.precision", "scale"))
    if (
        precision.isdecimal()
        and scale.isdecimal()
        and 0 < int(precision) <= MAX_DIGITS
        and int(scale) <= int(precision)
    ):
        return f"decimal({precision},{scale})"
    return "decimal"
