"""What of a document its product's SQL can answer: the declared members, and timestamps as instants in microseconds.

Promises: of documents that are equal by value, one spelling: members by name, numbers without what does not count.
"""

from collections.abc import Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, Final

from processor.model.change import Value
from processor.model.entity import ColumnType
from processor.model.times import to_microseconds, to_timestamp

_TIMESTAMP: Final = ColumnType(name="timestamp")
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def comparable(value: Value, schema: Mapping[str, Any]) -> Value:
    """The document, or a part of it, without the undeclared members of whole rows, and with its timestamps cut to what
    PostgreSQL keeps. `schema`: what `json_schema.document_schema` says of it; what does not fit it is kept."""
    match value:
        case dict():
            known = schema.get("properties", {})
            whole = "properties" in schema and "additionalProperties" not in schema
            return {n: comparable(value[n], known.get(n, {})) for n in sorted(value) if n in known or not whole}
        case list():
            return [comparable(element, schema.get("items", {})) for element in value]
        case str() if schema.get("format") == "date-time":
            return _instant(value)
        case int() | Decimal() if type(value) is not bool:
            return Decimal(value).normalize(_EXACT) if value else 0
    return value


def _instant(text: str) -> str:
    try:
        return to_microseconds(to_timestamp(text, _TIMESTAMP, None))
    except ValueError:
        return text
