"""A registry of each kind in a test, and records as its clients frame them: the scenes of the suite and of the poisoned forms."""

import io
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import boto3
import fastavro
from moto import mock_aws

from processor.job.kafka.framed_records import CLIENTS, RegistrySchemas
from processor.job.kafka.proto_text import compiled_text
from processor.job.kafka.registry_client import SchemaSource
from processor.values.framing import FRAMINGS, Part
from processor.values.record import Record
from tests.support.registry_stub import ApicurioStub, HttpStub, RegistryStub, listening

Headers = tuple[tuple[str, bytes | None], ...]


class Style(NamedTuple):
    """One way to frame a record. `frame`: the bytes and the headers of a part, from the id, the body and the part."""

    name: str
    kind: str
    frame: Callable[[Any, bytes, Part], tuple[bytes, Headers]]
    version: int = 3
    ids: str = "contentId"


def _four(number: int, body: bytes, _: Part) -> tuple[bytes, Headers]:
    return b"\0" + number.to_bytes(4, "big") + body, ()


def _content(number: int, body: bytes, _: Part) -> tuple[bytes, Headers]:
    return b"\0" + (number + 100).to_bytes(4, "big") + body, ()


def _eight(number: int, body: bytes, _: Part) -> tuple[bytes, Headers]:
    return b"\0" + number.to_bytes(8, "big") + body, ()


def _global_header(number: int, body: bytes, part: Part) -> tuple[bytes, Headers]:
    encoding = (f"apicurio.{part}.encoding", b"BINARY")
    return body, ((f"apicurio.{part}.globalId", number.to_bytes(8, "big")), encoding)


def _content_header(number: int, body: bytes, part: Part) -> tuple[bytes, Headers]:
    return body, ((f"apicurio.{part}.contentId", (number + 100).to_bytes(8, "big")),)


def _glue(version: str, body: bytes, _: Part) -> tuple[bytes, Headers]:
    return b"\3\0" + UUID(version).bytes + body, ()


def _zipped(version: str, body: bytes, _: Part) -> tuple[bytes, Headers]:
    return b"\3\5" + UUID(version).bytes + zlib.compress(body), ()


STYLES = (
    Style("confluent", "confluent", _four),
    Style("apicurio, 4 bytes", "apicurio", _content),
    Style("apicurio, 8 bytes", "apicurio", _eight, 2, "globalId"),
    Style("apicurio, global id in a header", "apicurio", _global_header),
    Style("apicurio, content id in a header", "apicurio", _content_header, 2),
    Style("glue", "glue", _glue),
    Style("glue, zlib", "glue", _zipped),
)


def avro_body(schema: Any, value: Any) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return body.getvalue()


PROTO = """
syntax = "proto3";
package app;
message Zebra { string other = 1; }
message Row {
  message Inner { string text = 1; }
  int32 id = 1;
  string name = 2;
  map<string, int32> by_name = 3;
}
"""
ROW_MESSAGE = b"\x08\x07\x12\x03Ann"
"""The message Row with id 7 and name Ann."""
ROW_BEGINNINGS = {"confluent": b"\x02\x02", "apicurio": b"\x05\x0a\x03Row", "glue": b"\x00"}
"""How the clients of each kind name Row before its bytes: in the file it is the second, among the sorted full names the first."""


@dataclass(kw_only=True)
class RegistryScene:
    """A registry of the kind of a style. `access`: its settings; `stub`: answers over HTTP, not for Glue; `asked`: requests."""

    style: Style
    access: dict[str, str]
    stub: HttpStub | None = None
    asked: list[str] = field(default_factory=list)

    def add(self, text: Any, kind: str = "AVRO", name: str = "row", references: Sequence[str] = ()) -> Any:
        """Registers a schema, and returns its id as `frame` takes it."""
        text = text if isinstance(text, str) else json.dumps(text)
        match self.stub:
            case RegistryStub():
                named = [{"name": one, "subject": one, "version": 1} for one in references]
                compiled = compiled_text(name, text) if kind == "PROTOBUF" else ""
                return self.stub.add(text, kind, named, compiled, subject=name)
            case ApicurioStub():
                return self.stub.add(text, kind, name, references)
        glue: Any = boto3.client("glue", region_name="eu-central-1")
        made = glue.create_schema(SchemaName=name, DataFormat=kind, Compatibility="NONE", SchemaDefinition=text)
        return made["SchemaVersionId"]

    def client(self, **access: str) -> SchemaSource:
        made = CLIENTS[self.style.kind](self.access | access)
        if self.stub is None:
            events = made._client.meta.events  # type: ignore[attr-defined]
            events.register("before-call.glue", lambda **_: self.asked.append("GetSchemaVersion"))
        else:
            self.asked = self.stub.requests
        return made

    def schemas(self, **access: str) -> RegistrySchemas:
        return RegistrySchemas(self.client(**access).schema, framing=FRAMINGS[self.style.kind])

    def record(self, number: Any, body: bytes, key: tuple[Any, bytes] | None = None) -> Record:
        value, headers = self.style.frame(number, body, "value")
        framed_key, more = self.style.frame(*key, "key") if key else (None, ())
        return Record(topic="t", partition=0, offset=0, key=framed_key, value=value, headers=(*headers, *more))


@contextmanager
def registry_scene(style: Style) -> Iterator[RegistryScene]:
    if style.kind == "glue":
        with mock_aws():
            yield RegistryScene(style=style, access={"kind": "glue", "region": "eu-central-1"})
        return
    stub = RegistryStub() if style.kind == "confluent" else ApicurioStub(style.version)
    with listening(stub):
        access: Mapping[str, str] = {"url": stub.url}
        if style.kind == "apicurio":
            url = f"{stub.url}/apis/registry/v{style.version}"
            access = {"kind": "apicurio", "url": url, "ids": style.ids}
        yield RegistryScene(style=style, access=dict(access), stub=stub)
