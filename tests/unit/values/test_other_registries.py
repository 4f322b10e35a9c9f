"""Records that another registry frames are dead letters that name it, whatever registry the job has."""

import zlib
from typing import Any

import pytest

from processor.engine.protocol.decode import decode
from processor.job.kafka.framed_records import RegistrySchemas
from processor.job.kafka.registry_client import WriterSchema
from processor.values import framing
from processor.values.framing import NO_SCHEMAS, Framed, FramedReader
from processor.values.record import Change, Record, Rejected
from tests.unit.engine.protocol.decoding import entity
from tests.unit.job.kafka.framed import avro, avro_schema, reader

ROW = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]}
BODY = avro(1, ROW, {"id": 7, "name": "Ann"})[5:]
UUID = bytes(range(16))
VERSION = "00010203-0405-0607-0809-0a0b0c0d0e0f"
NUMBERS, TEXTS = entity("e", "id", "id int, name string"), entity("e", "id", "id string, name string")
CONFLUENT = reader({1: avro_schema(ROW), 256: avro_schema(ROW)})
LONG = (13).to_bytes(8, "big")


def rejected(key: bytes | None, value: bytes | None, headers: Any = (), table: Any = NUMBERS) -> list[Rejected]:
    record = Record(topic="e", partition=0, offset=0, key=key, value=value, headers=tuple(headers))
    readers: list[FramedReader] = [NO_SCHEMAS, CONFLUENT]
    found = []
    for schemas in readers:
        schemas.fetch(record)
        result = decode(record, table, schemas)
        assert isinstance(result, Rejected), result
        assert result.code == "other-registry"
        found.append(result)
    return found


@pytest.mark.parametrize(
    ("value", "how"),
    [(b"\x03\x00" + UUID + BODY, "; "), (b"\x03\x05" + UUID + zlib.compress(BODY), ", compressed by zlib; ")],
)
def test_a_value_of_aws_glue_names_its_schema_version(value: bytes, how: str) -> None:
    for one in rejected(b'{"id":7}', value):
        assert f"framed for the AWS Glue Schema Registry: schema {VERSION}{how}" in one.reason
        assert 'write kind = "glue" in [schema_registry]' in one.reason


@pytest.mark.parametrize("table", [NUMBERS, TEXTS])
def test_a_key_of_aws_glue_is_no_text(table: Any) -> None:
    for value in (b'{"id":7,"name":"x"}', None):
        for one in rejected(b"\x03\x00" + UUID + b"\x0e", value, table=table):
            assert "AWS Glue" in one.reason


def test_an_id_of_8_bytes_is_apicurios() -> None:
    for part in ((None, b"\0" + LONG + BODY), (b"\0" + LONG + BODY, None)):
        for one in rejected(*part):
            assert "framed for the Apicurio Registry: schema 13; " in one.reason


@pytest.mark.parametrize("name", ["apicurio.value.globalId", "apicurio.value.contentId", "__value_schema_id"])
@pytest.mark.parametrize("body", [BODY, b"\0\0\0\1\0" + BODY, b"\x0e\x06Ann", b"\xff\xfe"])
def test_an_id_in_a_header_is_named_and_the_bare_body_is_never_read_as_framed(name: str, body: bytes) -> None:
    for one in rejected(b'{"id":7}', body, [("x", None), (name, LONG)]):
        assert f"the id of its schema is in the header {name}" in one.reason


def test_a_key_whose_id_is_in_a_header_is_named() -> None:
    for one in rejected(b"\x0e", b'{"id":7,"name":"x"}', [("apicurio.key.globalId", LONG)], TEXTS):
        assert "apicurio.key.globalId" in one.reason


def test_the_registry_of_azure_is_named() -> None:
    for one in rejected(None, b"\x0e\x06Ann", [("content-type", b"avro/binary+0a1b2c3d")]):
        assert "Azure Event Hubs" in one.reason


def test_json_with_headers_of_a_registry_is_read() -> None:
    record = Record(topic="e", partition=0, offset=0, key=None, value=b'{"id":7,"name":"x"}',
                    headers=(("apicurio.value.globalId", LONG),))  # fmt: skip
    assert isinstance(decode(record, NUMBERS), Change)


def test_framing_of_confluent_is_read_with_an_id_of_any_bytes() -> None:
    for number in (1, 256):
        record = Record(topic="e", partition=0, offset=0, key=None, value=avro(number, ROW, {"id": 7, "name": "Ann"}))
        CONFLUENT.fetch(record)
        assert isinstance(decode(record, NUMBERS, CONFLUENT), Change)


def test_a_compressed_body_that_is_too_large_or_has_more_behind_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MOST_BYTES", 100)
    zipped = Framed("x", 0, zipped=True)
    assert framing.body_of(zlib.compress(bytes(100)), zipped) == bytes(100)
    for data in (zlib.compress(bytes(101)), zlib.compress(bytes(100)) + b"x", zlib.compress(bytes(100))[:-1]):
        with pytest.raises(ValueError, match="ends early, has bytes after its end, or is larger"):
            framing.body_of(data, zipped)


def test_an_id_that_no_registry_gives_is_not_asked_for() -> None:
    def refuse(number: object) -> WriterSchema:
        raise AssertionError(number)

    RegistrySchemas(refuse).fetch(Record(topic="e", partition=0, offset=0, key=None, value=b"\0" + LONG + BODY))
