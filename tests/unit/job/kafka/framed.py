"""Framed records in tests: Avro that fastavro writes, and the decoding of framed keys and values."""

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

from processor.engine.protocol.decode import decode
from processor.job.kafka.framed_records import RegistrySchemas
from processor.job.kafka.registry_client import SchemaMissing, WriterSchema
from processor.values.entity import Entity
from processor.values.framing import SchemaId
from processor.values.record import Change, Decoded, Record, Rejected


def head(number: int) -> bytes:
    return b"\0" + number.to_bytes(4, "big")


def avro(number: int, schema: Any, value: Any) -> bytes:
    """A framed record. fastavro sees no logical types, so `value` has what the bytes say: integers and bytes."""
    body, plain = io.BytesIO(), json.loads(json.dumps(schema).replace("logicalType", "was"))
    fastavro.schemaless_writer(body, fastavro.parse_schema(plain), value)
    return head(number) + body.getvalue()


def record_of(value: bytes | None, key: bytes | None = None, headers: Any = ()) -> Record:
    return Record(topic="t", partition=0, offset=0, key=key, value=value, headers=tuple(headers))


def avro_schema(schema: Any, references: Mapping[str, str] | None = None) -> WriterSchema:
    return WriterSchema("AVRO", json.dumps(schema), references or {})


def reader(schemas: Mapping[int, WriterSchema]) -> RegistrySchemas:
    def ask(number: SchemaId) -> WriterSchema:
        if not isinstance(number, int) or number not in schemas:
            raise SchemaMissing(f"the schema registry has no schema {number}")
        return schemas[number]

    return RegistrySchemas(ask)


def decoded(
    entity: Entity, key: bytes | None, value: bytes | None, schemas: Mapping[int, WriterSchema] | RegistrySchemas
) -> Decoded:
    framed = schemas if isinstance(schemas, RegistrySchemas) else reader(schemas)
    record = record_of(value, key)
    framed.fetch(record)
    return decode(record, entity, framed)


def row(entity: Entity, key: bytes | None, value: bytes | None, schemas: Any) -> dict[str, Any]:
    result = decoded(entity, key, value, schemas)
    assert isinstance(result, Change), result
    assert result.row is not None
    return dict(result.row)


def reason(entity: Entity, key: bytes | None, value: bytes | None, schemas: Any) -> str:
    result = decoded(entity, key, value, schemas)
    assert isinstance(result, Rejected), result
    assert "\n" not in result.reason
    return result.reason
