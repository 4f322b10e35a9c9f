"""Reduces a document to the part that its product's SQL can answer: declared members, and timestamps in microseconds.

Promises: documents of equal value become the same text: members in the order of their names, numbers in their shortest form.
"""

from collections.abc import Mapping
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from typing import Any, Final

from processor.records.entity import ColumnType
from processor.records.record import Value
from processor.records.times import to_microseconds, to_timestamp

_TIMESTAMP: Final = ColumnType(name="timestamp")
_EXACT: Final = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def comparable(value: Value, schema: Mapping[str, Any]) -> Value:
    """The document, or a part of it, without the undeclared members of whole rows, and with timestamps in the precision of
    PostgreSQL. A float becomes the shortest number that means it: PostgreSQL prints some floats with other digits than Python.
    `schema`: of the part, made by `json_schema.document_schema`. A value that does not fit it is unchanged."""
    match value:
        case dict():
            known = schema.get("properties", {})
            whole = "properties" in schema and "additionalProperties" not in schema
            return {n: comparable(value[n], known.get(n, {})) for n in sorted(value) if n in known or not whole}
        case list():
            return [comparable(element, schema.get("items", {})) for element in value]
        case str() if schema.get("format") == "date-time":
            return _instant(value)
        case int() | Decimal() if type(value) is not bool and schema.get("format") == "double":
            return Decimal(repr(float(value))).normalize(_EXACT) if value else 0
        case int() | Decimal() if type(value) is not bool:
            return Decimal(value).normalize(_EXACT) if value else 0
    return value


def _instant(text: str) -> str:
    try:
        return to_microseconds(to_timestamp(text, _TIMESTAMP, None))
    except ValueError:
        return text
