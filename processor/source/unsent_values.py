"""Which types of PostgreSQL Debezium sends as null in place of a large value that did not change (TOAST). Pure.

Captured from Debezium 3.6.3 on PostgreSQL 15. Without REPLICA IDENTITY FULL, PostgreSQL does not log such a value. Debezium has a
placeholder for the types below; it sends null for other arrays and for bits, and nobody can tell this null from a real one.

    text, character varying, xml, json, jsonb, hstore, tsvector, bytea      the placeholder; bytea only by some settings
    text[], character varying[], json[], jsonb[], uuid[], integer[],        the placeholder
    bigint[]
    bytea[], date[]                                                         the placeholder by some settings
    other arrays, bit varying                                               null
"""

import re
from collections.abc import Mapping
from typing import Final

ALWAYS: Final = "always"
_SENT: Final = frozenset({"text", "character varying", "json", "jsonb", "uuid", "integer", "bigint"})
"""The types whose arrays have a placeholder."""
_BY_SETTING: Final[Mapping[str, str]] = {
    "bytea": "binary.handling.mode base64 or base64-url-safe",
    "bytea[]": "binary.handling.mode base64, base64-url-safe or hex",
    "date[]": "time.precision.mode isostring",
}
_ARGUMENTS: Final = re.compile(r"\([^()]*\)")


def unsent_as_null(kind: str) -> str:
    """When Debezium sends null for an unchanged large value of a type, as PostgreSQL writes it: `always`, or the settings of the
    connector; empty: never."""
    name = _ARGUMENTS.sub("", kind)
    if name in _BY_SETTING:
        return _BY_SETTING[name]
    element = name.removesuffix("[]")
    return ALWAYS if name == "bit varying" or (element != name and element not in _SENT) else ""
