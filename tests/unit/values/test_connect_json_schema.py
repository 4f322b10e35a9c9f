"""References of a JSON Schema lead into its document or into those that the registry keeps for it, or are named."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from processor.job.kafka.registry_client import WriterSchema
from processor.values.connect_schema import connect_schema
from tests.unit.engine.protocol.decoding import entity
from tests.unit.job.kafka.framed import head, reader, reason, row

MILLIS = {"type": "integer", "title": "io.debezium.time.Timestamp", "connect.type": "int64"}
TABLE = entity("t", "id", "id int, at timestamp, name string")
INSTANT = "2026-11-20T22:38:37.758Z"


def document(at: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"id": {"type": "integer"}, "at": at, "name": {"type": "string"}}, **more}


def read(schema: Any, references: Mapping[str, Any] | None = None, value: Any = None) -> dict[str, Any]:
    return row(TABLE, None, _body(value), _schemas(schema, references))


def refused(schema: Any, references: Mapping[str, Any] | None = None, value: Any = None) -> str:
    return reason(TABLE, None, _body(value), _schemas(schema, references))


def _body(value: Any) -> bytes:
    return head(1) + json.dumps(value or {"id": 1, "at": 1795214317758, "name": "Ann"}).encode()


def _schemas(schema: Any, references: Mapping[str, Any] | None) -> Any:
    texts = {name: json.dumps(one) for name, one in (references or {}).items()}
    return reader({1: WriterSchema("JSON", json.dumps(schema), texts)})


@pytest.mark.parametrize(
    "schema",
    [
        document({"$ref": "#/definitions/At"}, definitions={"At": MILLIS}),
        document({"$ref": "#/$defs/a~1b%20c"}, **{"$defs": {"a/b c": MILLIS}}),
        document({"oneOf": [{"type": "null"}, {"$ref": "#/$defs/At"}]}, **{"$defs": {"At": MILLIS}}),
        document({"anyOf": [{"$ref": "#/$defs/At"}, {"type": "null"}]}, **{"$defs": {"At": MILLIS}}),
        document({"allOf": [{"$ref": "#/$defs/At"}], "default": None}, **{"$defs": {"At": MILLIS}}),
        document({"$ref": "#At"}, **{"$defs": {"X": {**MILLIS, "$anchor": "At"}}}),
        document({"$ref": "#/$defs/One"}, **{"$defs": {"One": {"$ref": "#/$defs/Two"}, "Two": MILLIS}}),
        document({"$ref": "#/$defs/Int", **MILLIS}, **{"$defs": {"Int": {"type": "integer"}}}),
        document(
            {"$ref": "https://x.example/a.json#/$defs/At"},
            **{"$id": "https://x.example/a.json", "$defs": {"At": MILLIS}},
        ),
        {"$ref": "#/definitions/Row", "definitions": {"Row": document(MILLIS)}},
    ],
)
def test_a_reference_into_its_document_is_read(schema: Any) -> None:
    assert read(schema)["at"] == INSTANT


@pytest.mark.parametrize(
    ("schema", "references"),
    [
        (document({"$ref": "at.json"}), {"at.json": MILLIS}),
        (document({"$ref": "types.json#/definitions/At"}), {"types.json": {"definitions": {"At": MILLIS}}}),
        (document({"$ref": "https://x.example/at.json"}), {"subject": {**MILLIS, "$id": "https://x.example/at.json"}}),
        (document({"$ref": "at.json"}, **{"$id": "https://x.example/row.json"}), {"https://x.example/at.json": MILLIS}),
        ({"$ref": "row.json"}, {"row.json": document({"$ref": "#/definitions/At"}, definitions={"At": MILLIS})}),
        ({"$ref": "row.json"}, {"row.json": document({"$ref": "at.json"}), "at.json": MILLIS}),
    ],
)
def test_a_reference_to_a_document_of_the_registry_is_read(schema: Any, references: Any) -> None:
    assert read(schema, references)["at"] == INSTANT


def test_the_rows_of_an_envelope_may_be_references() -> None:
    side = {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/Row"}]}
    properties = {"before": side, "after": {"$ref": "#/definitions/Row"}, "op": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "definitions": {"Row": document(MILLIS)}}
    value = {"before": None, "after": {"id": 1, "at": 1795214317758, "name": "Ann"}, "op": "c"}
    assert read(schema, value=value)["at"] == INSTANT
    del schema["definitions"]
    assert "the schema of the row is $ref '#/definitions/Row'" in refused(schema, value=value)


@pytest.mark.parametrize(
    "ref", ["#/definitions/Gone", "gone.json", "https://x.example/gone.json#/$defs/At", "#nowhere"]
)
def test_a_reference_that_leads_nowhere_is_named_for_the_columns_that_need_it(ref: str) -> None:
    why = refused(document({"$ref": ref}))
    assert why.startswith("column 'at': expected timestamp")
    assert f"its schema says $ref '{ref}', which is unknown here: declare json" in why
    loose = entity("t", "id", "id int, at json, name string")
    assert row(loose, None, _body(None), _schemas(document({"$ref": ref}), None))["at"] == 1795214317758
    assert f"the schema of the row is $ref '{ref}'" in refused({"$ref": ref})


def test_a_schema_that_contains_itself_ends() -> None:
    tree = document({"type": "array", "items": {"$ref": "#"}})
    assert connect_schema(tree)["fields"][1]["items"]["type"] == "struct"
    assert connect_schema({"$ref": "#"}) == {}
    assert (
        connect_schema({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}) == {}
    )
    sides = {f"D{n}": {"properties": {side: {"$ref": f"#/$defs/D{n + 1}"} for side in "lr"}} for n in range(60)}
    assert connect_schema({"$ref": "#/$defs/D0", "$defs": {**sides, "D60": MILLIS}})["type"] == "struct"
