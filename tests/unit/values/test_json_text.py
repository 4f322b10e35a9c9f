"""JSON that arrives as text: a schema or the entity says it, or the column is an array. Text of another kind is a dead letter."""

from decimal import Decimal
from typing import Any

import pytest

from processor.engine.protocol.decode import decode
from processor.values import canonical_json
from processor.values.entity import Entity, parse_type
from processor.values.record import Change, Record, Rejected

NO_JSON = "(not JSON: expecting value at character 1)"
JSON = {"type": "string", "optional": True, "name": "io.debezium.data.Json"}


def sent(value: Any, schema: dict[str, Any] | None) -> Record:
    """A record of Debezium with this value in the column `v`, and with this schema of the column, or without schemas."""
    payload = {"op": "c", "before": None, "after": {"id": 1, "v": value}}
    fields = [{"field": "id", "type": "int32"}, {"field": "v", **(schema or {})}]
    schemas = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    whole = payload if schema is None else {"schema": schemas, "payload": payload}
    return Record(topic="t", partition=0, offset=0, key=b'{"id":1}', value=canonical_json.encode(whole))


def read(declared: str, value: Any, schema: dict[str, Any] | None = None) -> Any:
    """The value of the row, or the reason of the dead letter."""
    entity = Entity(name="t", topic="t", key=("id",), columns={"id": parse_type("int"), "v": parse_type(declared)})
    decoded = decode(sent(value, schema), entity)
    if isinstance(decoded, Rejected):
        return decoded.reason
    assert isinstance(decoded, Change)
    assert decoded.row is not None
    return decoded.row["v"]


@pytest.mark.parametrize(
    ("declared", "text", "value"),
    [
        ("json(text)", '{"a": [1, null]}', {"a": [1, None]}),
        ("json(text)", '[{"id": "a"}]', [{"id": "a"}]),
        ("json(text)", '"42"', "42"),
        ("json(text)", "1.50", Decimal("1.5")),
        ("json(text)", "null", None),
        ("json[]", '[{"id": "a"}, ["b"], "c"]', [{"id": "a"}, ["b"], "c"]),
        ("json(text)[]", '["{}", {"a": "[1]"}]', ["{}", {"a": "[1]"}]),
        ("string[]", '["a", null]', ["a", None]),
        ("int[]", "[1, 2.0]", [1, 2]),
        ("decimal(5,2)[]", '[1.50, "2"]', [Decimal("1.5"), Decimal(2)]),
        ("bool[]", "[true, false]", [True, False]),
        ("date[]", '["2026-03-01"]', ["2026-03-01"]),
        ("timestamp[]", '["2026-03-01T10:00:00+01:00"]', ["2026-03-01T09:00:00Z"]),
    ],
)
def test_records_with_and_without_schemas_give_the_same_value(declared: str, text: str, value: Any) -> None:
    assert (read(declared, text), read(declared, text, JSON)) == (value, value)


def test_json_is_parsed_only_where_the_schema_or_the_entity_says_so() -> None:
    assert read("json", '{"a": 1}') == '{"a": 1}'
    assert read("json", '{"a": 1}', JSON) == {"a": 1}
    assert read("json(text)", '{"a": 1}', {"type": "string"}) == {"a": 1}


@pytest.mark.parametrize("value", [{"a": 1}, [1, "x"], 7, True])
def test_a_value_that_is_no_text_stays_as_it_is(value: Any) -> None:
    assert read("json(text)", value) == value


def test_the_elements_of_an_array_of_json_texts_are_parsed() -> None:
    assert read("json(text)[]", ['{"a": 1}', None, {"b": 2}]) == [{"a": 1}, None, {"b": 2}]
    assert read("json[]", ['{"a": 1}'], {"type": "array", "items": JSON}) == [{"a": 1}]


@pytest.mark.parametrize(
    ("declared", "value", "reason"),
    [
        ("json(text)", "no json", f"column 'v': expected json, found text 'no json' {NO_JSON}"),
        ("json(text)", "", f"column 'v': expected json, found text '' {NO_JSON}"),
        ("json(text)[]", ["x"], f"column 'v': element 1: expected json, found text 'x' {NO_JSON}"),
        ("json[]", "{a,b}", "column 'v': expected json[], found text '{a,b}'"),
        ("string[]", '{"a": 1}', "column 'v': expected string[], found an object"),
        ("int[]", '["x"]', "column 'v': element 1: expected int[], found text 'x'"),
    ],
)
def test_text_that_is_not_such_json_is_a_dead_letter(declared: str, value: Any, reason: str) -> None:
    assert read(declared, value) == reason


def test_a_type_that_is_no_array_takes_no_json() -> None:
    assert read("int", "[1]", JSON) == (
        "column 'v': expected int, found text '[1]' (its schema says io.debezium.data.Json: declare string or json)"
    )
