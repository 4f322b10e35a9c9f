"""What of a document its product's SQL can answer: the declared members, and timestamps as instants in microseconds."""

from collections.abc import Mapping
from typing import Any, Final

from processor.model.change import Value
from processor.model.entity import ColumnType
from processor.model.times import to_microseconds, to_timestamp

_TIMESTAMP: Final = ColumnType(name="timestamp")


def comparable(value: Value, schema: Mapping[str, Any]) -> Value:
    """The document, or a part of it, without the undeclared members of whole rows, and with its timestamps cut to what
    PostgreSQL keeps. `schema`: what `json_schema.document_schema` says of it; what does not fit it stays as it is."""
    match value:
        case dict() if "properties" in schema:
            known, closed = schema["properties"], "additionalProperties" in schema
            return {n: comparable(v, known.get(n, {})) for n, v in value.items() if closed or n in known}
        case list() if "items" in schema:
            return [comparable(element, schema["items"]) for element in value]
        case str() if schema.get("format") == "date-time":
            return _instant(value)
    return value


def _instant(text: str) -> str:
    try:
        return to_microseconds(to_timestamp(text, _TIMESTAMP, None))
    except ValueError:
        return text
