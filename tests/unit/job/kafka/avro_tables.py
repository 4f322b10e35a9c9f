"""The same table in Avro and in JSON with a schema of Kafka Connect: schemas, records, and the comparison of both."""

from collections.abc import Sequence
from typing import Any

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.values.record import Change  # noqa: E402
from tests.unit.engine.protocol.decoding import decoded as decoded_json  # noqa: E402
from tests.unit.engine.protocol.decoding import entity  # noqa: E402
from tests.unit.job.kafka.framed import avro, avro_schema, decoded  # noqa: E402
from tests.unit.job.kafka.same_values import Column  # noqa: E402

ID = Column("id", "int", {"type": "int32"}, "int", [7])


def record_schema(columns: Sequence[Column], name: str = "Value") -> dict[str, Any]:
    fields = [{"name": c.name, "type": c.avro if c.name == "id" else ["null", c.avro]} for c in columns]
    return {
        "type": "record",
        "name": name,
        "namespace": "app.public.t",
        "fields": fields,
        "connect.name": f"app.{name}",
    }


def envelope_schema(columns: Sequence[Column]) -> dict[str, Any]:
    source = {
        "type": "record",
        "name": "Source",
        "namespace": "io.debezium.connector",
        "fields": [{"name": "table", "type": "string"}],
    }
    fields = [
        {"name": "before", "type": ["null", record_schema(columns)], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "source", "type": source},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ]
    return {"type": "record", "name": "Envelope", "namespace": "app.public.t", "fields": fields}


def table(columns: Sequence[Column]) -> Any:
    return entity("t", "id", ", ".join(f"{c.name} {c.declared}" for c in columns))


def connect_fields(columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [{**c.connect, "field": c.name} for c in columns]


def json_record(columns: Sequence[Column], values: dict[str, Any], form: str) -> Any:
    payload: Any = {c.name: None if values[c.name] is None else c.json(values[c.name]) for c in columns}
    fields = connect_fields(columns)
    if form == "envelope":
        payload = {"before": None, "after": payload, "source": {"table": "t"}, "op": "c", "ts_ms": 1}
        fields = [{"type": "struct", "fields": fields, "field": side} for side in ("before", "after")]
    elif form == "flattened":
        payload |= {"__deleted": "false", "__op": "c"}
    return {"schema": {"type": "struct", "fields": fields}, "payload": payload}


def avro_record(columns: Sequence[Column], values: dict[str, Any], form: str) -> tuple[Any, Any]:
    """The schema and the value in Avro."""
    if form == "envelope":
        return envelope_schema(columns), {
            "before": None,
            "after": values,
            "source": {"table": "t"},
            "op": "c",
            "ts_ms": 1,
        }
    schema = record_schema(columns)
    if form == "flattened":
        schema["fields"] += [{"name": name, "type": ["null", "string"]} for name in ("__deleted", "__op")]
        values = values | {"__deleted": "false", "__op": "c"}
    return schema, values


def assert_same(columns: Sequence[Column], values: dict[str, Any], form: str) -> None:
    expected = decoded_json(table(columns), {"id": values["id"]}, json_record(columns, values, form))
    assert isinstance(expected, Change), expected
    schema, value = avro_record(columns, values, form)
    key_schema = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}
    key, data = avro(1, key_schema, {"id": values["id"]}), avro(2, schema, value)
    schemas = {1: avro_schema(key_schema), 2: avro_schema(schema)}
    found = decoded(table(columns), key, data, schemas)
    assert isinstance(found, Change), found
    assert (found.key, found.row) == (expected.key, expected.row)
    assert [type(value) for value in (found.row or {}).values()] == [
        type(value) for value in (expected.row or {}).values()
    ]
