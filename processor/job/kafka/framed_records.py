"""Reads framed records by the schemas of a registry of any kind: Avro and Protobuf by confluent-kafka's deserialisers, and JSON.
Writes bodies of Avro by fastavro.

Promises: asks the registry once for each schema, and again for a schema that was missing, after a while. Gives the values that
Kafka Connect's JsonConverter would write. confluent-kafka's own reader of JSON is no choice: it rounds numbers.
"""

import io
from collections.abc import Callable, Mapping
from functools import lru_cache
from io import BytesIO
from time import monotonic
from typing import Any, Final

from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.avro import AvroDeserializer
from fastavro import parse_schema, schemaless_writer

from processor.environment.settings.schema_registry import registry_kind
from processor.job.kafka.protobuf import protobuf_reader
from processor.job.kafka.registry_client import RegistryClient, SchemaMissing, SchemaSource, WriterSchema
from processor.values import canonical_json
from processor.values.avro_schema import read_avro_schema
from processor.values.connect_schema import connect_schema, with_branches
from processor.values.framing import (
    CONFLUENT,
    FRAMINGS,
    NO_SCHEMAS,
    Framed,
    FramedReader,
    Framing,
    Part,
    SchemaId,
    SchemedValue,
    body_of,
    part_bytes,
    refuse_headers,
)
from processor.values.reasons import Mismatch
from processor.values.record import Record


@lru_cache(maxsize=1000)
def avro_writer(schema: str) -> Callable[[Any], bytes]:
    """The function that writes a body by the JSON text of a schema. It raises ValueError or TypeError for a value that does not
    fit."""
    parsed = parse_schema(canonical_json.loads(schema))

    def write(datum: Any) -> bytes:
        body = BytesIO()
        schemaless_writer(body, parsed, datum)
        return body.getvalue()

    return write


ReadFramed = Callable[[bytes], SchemedValue]
"""Reads a body of one schema. Raises any error for data that does not fit."""
MISSING_SECONDS: Final = 30.0
"""A missing schema counts as missing for this time. Then the next record asks again."""
MOST_MISSING: Final = 10_000


class RegistrySchemas:
    """The schemas that a registry gave. `ask`: the schema of an id, as SchemaSource.schema; `framing`: of its records."""

    def __init__(
        self,
        ask: Callable[[SchemaId], WriterSchema],
        clock: Callable[[], float] = monotonic,
        framing: Framing = CONFLUENT,
    ) -> None:
        self.framing = framing
        self._ask = ask
        self._clock = clock
        self._readers: dict[SchemaId, ReadFramed] = {}
        self._missing: dict[SchemaId, tuple[float, str]] = {}

    def fetch(self, record: Record) -> None:
        parts: tuple[tuple[Part, bytes | None], ...] = (("key", record.key), ("value", record.value))
        for part, data in parts:
            framed = None if data is None else self.framing.find(data, record.headers, part)
            if framed is None or framed.id is None or framed.id in self._readers:
                continue
            if framed.id not in self._missing or self._missing[framed.id][0] < self._clock():
                self._fetch(framed.id)

    def read(self, record: Record, part: Part) -> SchemedValue:
        refuse_headers(record, part, self.framing)
        data = part_bytes(record, part)
        framed = self.framing.find(data, record.headers, part)
        if framed is None or framed.id is None:
            raise Mismatch(_without_id(data, framed), "schema-missing")
        if framed.json:
            raise Mismatch(_JSON_ENCODING, "schema-differs")
        number = framed.id
        if (reader := self._readers.get(number)) is None:
            raise Mismatch(self._missing.get(number, (0, f"schema {number} was not asked for"))[1], "schema-missing")
        try:
            return reader(body_of(data, framed))
        except Exception as error:  # of the reader of a format: bytes of any kind may raise any error there
            plain = f"the body does not fit schema {number}"
            raise Mismatch(f"{plain}: {_one_line(error)}", "schema-differs", plain) from None

    def _fetch(self, number: SchemaId) -> None:
        try:
            schema = self._ask(number)
            self._readers[number] = _reader(number, schema, self.framing)
            self._missing.pop(number, None)
        except SchemaMissing as error:
            if len(self._missing) >= MOST_MISSING:
                self._missing.clear()
            self._missing[number] = (self._clock() + MISSING_SECONDS, str(error))


@lru_cache(maxsize=1)
def registry_schemas(access: tuple[tuple[str, str], ...]) -> FramedReader:
    """This process's reader. `access`: the resolved settings of [schema_registry]; without any, the reader of no schema."""
    if not access:
        return NO_SCHEMAS
    kind = registry_kind(dict(access))
    return RegistrySchemas(CLIENTS[kind](dict(access)).schema, framing=FRAMINGS[kind])


def _apicurio(access: Mapping[str, str]) -> SchemaSource:
    from processor.job.kafka.apicurio import ApicurioClient

    return ApicurioClient(access)


def _glue(access: Mapping[str, str]) -> SchemaSource:
    from processor.job.kafka.glue import GlueClient

    return GlueClient(access)


CLIENTS: Final[Mapping[str, Callable[[Mapping[str, str]], SchemaSource]]] = {
    "confluent": RegistryClient,
    "apicurio": _apicurio,
    "glue": _glue,
}
"""Opens a client, by the kind of the registry. Each kind imports its client when it opens one."""


_JSON_ENCODING: Final = "Avro in its JSON encoding: set the producer's `apicurio.registry.avro.encoding` to BINARY"


def _without_id(data: bytes, framed: Framed | None) -> str:
    if framed is not None and framed.header:
        return f"the header {framed.header} has no id of 8 bytes"
    return f"begins with byte {data[:1].hex().lstrip('0') or 0}, and ends before a schema id: {len(data)} bytes"


def _reader(number: SchemaId, schema: WriterSchema, framing: Framing) -> ReadFramed:
    """The reader of a schema's records. Raises SchemaMissing where the schema cannot be read itself."""
    makers: Mapping[str, Callable[[WriterSchema], ReadFramed]] = {
        "AVRO": _AvroReader,
        "JSON": _json_reader,
        "PROTOBUF": lambda one: protobuf_reader(one.text, one.references, framing.message),
    }
    if schema.kind not in makers:
        raise SchemaMissing(f"schema {number} is {schema.kind}, and statestore reads {', '.join(makers)}")
    try:
        return makers[schema.kind](schema)
    except Exception as error:  # of the parser of a format
        raise SchemaMissing(f"schema {number} cannot be read: {_one_line(error)}") from None


class _WholeReads(io.BytesIO):
    """A body that refuses to give fewer bytes than asked for: the reader of Avro would take these as a shorter text."""

    def read(self, size: int | None = None, /) -> bytes:
        data = super().read(size)
        if size is not None and len(data) != size:
            raise EOFError("the body ends within a value")
        return data


class _OneSchema:
    """The registry of a deserialiser: it has one schema, whatever the id."""

    def __init__(self, text: str) -> None:
        self._schema = Schema(text, "AVRO", [])

    def get_schema(self, *_: object) -> Schema:
        return self._schema

    def config(self) -> dict[str, Any]:
        return {}


_ANY_FRAME: Final = bytes(6)
"""The deserialiser refuses a shorter one. `_take_body` gives it the body."""


class _AvroReader:
    """Reads the records of an Avro schema."""

    def __init__(self, schema: WriterSchema) -> None:
        references = {name: canonical_json.loads(text) for name, text in schema.references.items()}
        self._type = read_avro_schema(canonical_json.loads(schema.text), references)
        self._body = _WholeReads()
        self._deserialise = AvroDeserializer(
            _OneSchema(canonical_json.dumps(self._type.plain)),
            return_record_name=True,
            conf={"schema.id.deserializer": self._take_body},
        )

    def __call__(self, body: bytes) -> SchemedValue:
        self._body = _WholeReads(body)
        value = self._deserialise(_ANY_FRAME)
        if left := self._body.read():
            raise ValueError(f"{len(left)} bytes are left over")
        if value is not None and self._type.to_json is not None:
            value = self._type.to_json(value)
        schema = self._type.connect
        if self._type.chooses:
            value, schema = with_branches(value, schema)
        if self._type.deep:
            canonical_json.check_depth(value)
        return SchemedValue(value, schema, avro=True)

    def _take_body(self, _: bytes, __: object, schema_id: Any) -> io.BytesIO:
        schema_id.id = 1
        return self._body


def _json_reader(schema: WriterSchema) -> ReadFramed:
    references = {name: canonical_json.loads(text) for name, text in schema.references.items()}
    connect = connect_schema(canonical_json.loads(schema.text), references) or None
    return lambda data: SchemedValue(canonical_json.loads(data), connect)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
