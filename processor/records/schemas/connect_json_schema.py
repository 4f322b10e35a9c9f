"""Reads a JSON Schema as Kafka Connect's JsonSchemaConverter writes it: gives the schema in the form of the JsonConverter.

Kafka Connect names a type by `title`, its base by `connect.type`, and its parameters by `connect.parameters`. A schema of another
writer has none of these, and says nothing about how to read a value.
"""

from collections.abc import Mapping
from typing import Any

from processor.records.schemas.chosen_branches import union_schema
from processor.records.schemas.connect_values import DECIMAL


def connect_schema(schema: Any) -> dict[str, Any]:
    """The schema by Kafka Connect; empty for a schema that says nothing."""
    if not isinstance(schema, dict):
        return {}
    choice = schema["oneOf"] if isinstance(schema.get("oneOf"), list) else []
    branches = [branch for branch in choice if isinstance(branch, dict) and branch.get("type") != "null"]
    if branches:  # Kafka Connect writes what may be null as a choice of two
        return union_schema([connect_schema(branch) for branch in branches])
    kind, title = schema.get("connect.type", schema.get("type")), schema.get("title")
    made: dict[str, Any] = {"type": kind}
    if isinstance(title, str) and (title != DECIMAL or kind == "bytes"):
        made["name"] = title  # decimals may also come as numbers
    if isinstance(schema.get("connect.parameters"), dict):
        made["parameters"] = schema["connect.parameters"]
    if kind == "array":
        made["items"] = connect_schema(schema.get("items"))
    elif isinstance(schema.get("properties"), dict):
        made |= {"type": "struct", "fields": _fields(schema["properties"])}
    return made


def _fields(properties: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{**connect_schema(schema), "field": name} for name, schema in properties.items()]
