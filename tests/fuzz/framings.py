"""Broken records of each framing of a schema registry: bytes and headers cut, changed, exchanged, and bodies of other schemas.

The rule is that of envelopes: such a record is a dead letter or changes a row, and no row of nulls comes of it.
"""

import json
import zlib
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

from tests.support.required import require_schema_packages

require_schema_packages()

from processor.engine.protocol.decode import decode  # noqa: E402
from processor.engine.rounds.decoding import shown_keys  # noqa: E402
from processor.job.kafka.framed_records import RegistrySchemas  # noqa: E402
from processor.job.kafka.proto_text import compiled_text  # noqa: E402
from processor.job.kafka.registry_client import SchemaMissing, WriterSchema  # noqa: E402
from processor.tools.operate.erase import mentions  # noqa: E402
from processor.values.entity import Entity, parse_type  # noqa: E402
from processor.values.framing import FRAMINGS, NO_SCHEMAS, SchemaId  # noqa: E402
from processor.values.record import Change, Record, Rejected  # noqa: E402
from tests.fuzz.finding import Finding, readable_errors  # noqa: E402
from tests.fuzz.mutations import mutate_bytes  # noqa: E402
from tests.unit.job.kafka.registry_scenes import (  # noqa: E402
    PROTO,
    ROW_BEGINNINGS,
    ROW_MESSAGE,
    STYLES,
    Style,
    avro_body,
)

COLUMNS = {"id": "int", "name": "string"}
ITEM = Entity(name="item", topic="t", key=("id",), columns={name: parse_type(text) for name, text in COLUMNS.items()})
AVRO = {"type": "record", "name": "Row", "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]}
JSON = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string"}}}
IDS = (1, 2, 3)
VERSIONS = {number: f"00000000-0000-4000-8000-{number:012d}" for number in range(10)}
"""The ids of Glue."""


@cache
def reader(kind: str) -> RegistrySchemas:
    """Reads by three schemas: 1 is Avro, 2 JSON Schema, 3 Protobuf. Apicurio's content ids are 100 more."""
    texts = {
        1: WriterSchema("AVRO", json.dumps(AVRO), {}),
        2: WriterSchema("JSON", json.dumps(JSON), {}),
        3: WriterSchema("PROTOBUF", compiled_text("row.proto", PROTO), {}),
    }

    known: dict[SchemaId, WriterSchema] = {}
    for n, schema in texts.items():
        ids: tuple[SchemaId, ...] = (n, n + 100, f"globalId {n}", f"contentId {n + 100}", VERSIONS[n])
        known |= dict.fromkeys(ids, schema)

    def ask(number: SchemaId) -> WriterSchema:
        if number not in known:
            raise SchemaMissing(f"the schema registry has no schema {number}")
        return known[number]

    return RegistrySchemas(ask, framing=FRAMINGS[kind])


def bodies(kind: str) -> dict[int, bytes]:
    row = {"id": 7, "name": "Ann"}
    return {1: avro_body(AVRO, row), 2: json.dumps(row).encode(), 3: ROW_BEGINNINGS[kind] + ROW_MESSAGE}


def framed(style: Style, number: int, body: bytes) -> Record:
    value, headers = style.frame(VERSIONS[number] if style.kind == "glue" else number, body, "value")
    return Record(topic="t", partition=0, offset=0, key=b'{"id":7}', value=value, headers=headers)


def poisoned(style: Style) -> Iterator[Record]:
    """A record of each format with one part broken."""
    for number, body in bodies(style.kind).items():
        whole = framed(style, number, body)
        yield from (_with(whole, value) for value in _broken_bytes(whole.value or b""))
        yield from (framed(style, other, body) for other in (*IDS, 4, 0) if other != number)
        yield framed(style, number, b"")
        yield framed(style, number, zlib.compress(body))
        yield framed(style, number, body + body)
        for other in STYLES:
            yield _with(framed(other, number, body), headers=whole.headers)
            yield _with(framed(other, number, body), whole.value)
        for headers in ((), *_broken_headers(whole)):
            yield _with(whole, headers=headers)


def check(style: Style, record: Record) -> None:
    """Decodes the record as value and as key, with its registry and without one. Raises Finding."""
    swapped = record.__class__(
        topic="t", partition=0, offset=0, key=record.value, value=record.key, headers=record.headers
    )
    for one in (record, swapped):
        for schemas in (reader(style.kind), NO_SCHEMAS):
            with readable_errors(one):
                schemas.fetch(one)
                shown_keys(one, ITEM, schemas)
                mentions(one, ("Ann Smith",))
                decoded = decode(one, ITEM, schemas)
            if isinstance(decoded, Rejected):
                if not decoded.reason or "\n" in decoded.reason or not decoded.reason.isprintable():
                    raise Finding(f"{decoded.reason!r} of {one}")
            elif not isinstance(decoded, Change):
                raise Finding(f"{decoded} of {one}")
            elif one is record and decoded.row is not None and decoded.row["name"] is None:
                raise Finding(f"a row of nulls from {one}")


def framed_records(random: Random) -> None:
    """Any change to the bytes and the headers of framed records."""
    style = random.choice(STYLES)
    number = random.choice(IDS)
    whole = framed(style, number, bodies(style.kind)[number])
    value = mutate_bytes(whole.value or b"", random)
    headers = tuple(
        (name, mutate_bytes(data or b"", random) if random.random() < 0.3 else data) for name, data in whole.headers
    )
    one = _with(whole, value, headers=headers)
    with readable_errors(one):
        schemas = reader(random.choice(sorted(FRAMINGS)))
        schemas.fetch(one)
        shown_keys(one, ITEM, schemas)
        if not isinstance(decode(one, ITEM, schemas), Change | Rejected):
            raise Finding(f"{one}")


def _with(record: Record, value: bytes | None = None, headers: Any = None) -> Record:
    return Record(
        topic="t",
        partition=0,
        offset=0,
        key=record.key,
        value=record.value if value is None else value,
        headers=record.headers if headers is None else headers,
    )


def _broken_bytes(value: bytes) -> Iterator[bytes]:
    for length in range(len(value)):
        yield value[:length]
    for at in range(min(len(value), 24)):
        for byte in (0x00, 0x01, 0x03, 0x05, 0x7F, 0xFF):
            yield value[:at] + bytes((byte,)) + value[at + 1 :]
        yield value[:at] + value[at + 1 :]
    yield value[:1] + b"\xff" * 40
    yield value + b"\0"
    yield value + zlib.compress(b"\0" * 1_000)


def _broken_headers(record: Record) -> Iterator[Any]:
    for name, data in record.headers:
        for value in (None, b"", b"\0", b"\xff" * 8, b"\0" * 8, b"13", (data or b"") + b"\0", (data or b"")[:-1]):
            yield ((name, value),)
        yield ((name.upper(), data),)
        yield ((name.replace("value", "key"), data),)
    yield (*record.headers, ("apicurio.value.encoding", b"JSON"))
    yield (*record.headers, ("__value_schema_id", b"\1" + bytes(16)))
    yield (*record.headers, ("content-type", b"avro/binary+1"))
    yield (*record.headers, ("apicurio.value.contentHash", b"x"))
