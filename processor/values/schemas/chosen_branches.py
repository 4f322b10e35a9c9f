"""The branches of unions in a value: a value that a union of several types holds carries the schema of its branch.

Kafka Connect has no such unions, so a schema has one form for all records. Here the schema of a record gets the branch that the
record chose, in place of the union. Elements of one array may choose different branches: then their schema is a union again.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from processor.values.record import Value


class Chosen(NamedTuple):
    """A value of a union, and the schema of the branch that the record chose."""

    value: Value
    connect: dict[str, Any]


def with_branches(value: Value, schema: dict[str, Any]) -> tuple[Value, dict[str, Any]]:
    """The value as plain JSON, and the schema with the chosen branches in place of the unions."""
    if type(value) is Chosen:
        return with_branches(value.value, value.connect)
    if type(value) is list:
        return _array(value, schema)
    if type(value) is dict:
        return _members(value, schema)
    return value, schema


def union_schema(branches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a value that is of one of these branches, and does not show of which."""
    different = [branch for n, branch in enumerate(branches) if branch not in branches[:n]]
    return different[0] if len(different) == 1 else {"type": "union", "branches": different}


def _array(values: list[Value], schema: dict[str, Any]) -> tuple[Value, dict[str, Any]]:
    items = schema.get("items", {})
    read = [with_branches(value, items) for value in values]
    found = [inner for value, inner in read if value is not None]
    known = schema | {"items": union_schema(found)} if found and "items" in schema else schema
    return [value for value, _ in read], known


def _members(members: Mapping[str, Value], schema: dict[str, Any]) -> tuple[Value, dict[str, Any]]:
    fields = {field["field"]: field for field in schema.get("fields", ())}
    read = {name: with_branches(value, fields.get(name, {})) for name, value in members.items()}
    known = (
        schema | {"fields": [read[name][1] | {"field": name} for name in fields if name in read]} if fields else schema
    )
    return {name: value for name, (value, _) in read.items()}, known
