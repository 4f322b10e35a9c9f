"""The framings of records whose schema a registry keeps, one for each kind of registry, and who reads them.

    kind        framing
    confluent   byte 0, an id of 4 bytes (big-endian), the body
    apicurio    the same, or an id of 8 bytes, whose first 4 are 0; or the id in the header `apicurio.value.globalId` or
                `apicurio.value.contentId` (8 bytes, `key` for the key), and the bare body
    glue        byte 3, a byte for the compression (0: none, 5: zlib), the 16 bytes of the schema version's UUID, the body

A body is Avro, JSON or Protobuf. No JSON text begins with byte 0 or 3. Before a message of Protobuf, Confluent writes the indexes
of its type in the file, AWS Glue the place of its full name among the sorted ones, and Apicurio a small message with its name.

Two framings have no kind, and no job reads them: Confluent's ids in headers (`__value_schema_id`), and Azure's (`content-type`).

Sources, read on 2026-11-27: github.com/Apicurio/apicurio-registry (serdes: DefaultHeadersHandler, OptimisticFallbackIdHandler,
ProtobufSerializer), github.com/awslabs/aws-glue-schema-registry (MessageIndexFinder, ProtobufWireFormatEncoder),
docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop.

This module fetches nothing and knows no format. `processor.job.kafka` has the reader that asks a registry.
"""

import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, Protocol
from uuid import UUID

from processor.values import canonical_json
from processor.values.reasons import Mismatch
from processor.values.record import Record, Value

HEAD: Final = 5
"""Bytes of Confluent's magic byte and id."""


class SchemedValue(NamedTuple):
    """A value as Kafka Connect's JsonConverter writes it, with its schema in the form that the same converter gives it. None: a
    schema that says nothing about how to read the value. `avro`: whether the names of the columns are names that Avro allows."""

    payload: Value
    schema: Any
    avro: bool = False


Part = Literal["key", "value"]
"""A part of a record."""
MessageForm = Literal["path", "place", "name"]
"""How the body of Protobuf names its message."""
SchemaId = int | str
"""Of a schema in its registry: a number, `globalId 13`, `contentId 13`, or a UUID."""
Headers = Sequence[tuple[str, bytes | None]]


class Framed(NamedTuple):
    """The framing of one part of a record. `id`: None where the data ends before it; `head`: bytes before the body; `zipped`:
    whether zlib compressed the body; `header`: the header that names the schema; `json`: whether a header says that the body is
    Avro in its JSON encoding."""

    id: SchemaId | None
    head: int
    zipped: bool = False
    header: str = ""
    json: bool = False

    @property
    def says(self) -> str:
        """How the framing shows the schema, for people."""
        if self.header:
            return f"the id of its schema is in the header {self.header}"
        zipped = ", compressed by zlib" if self.zipped else ""
        return "it ends before the id of its schema" if self.id is None else f"schema {self.id}{zipped}"


class Framing(NamedTuple):
    """How a registry's clients frame records. `kind`: the word of `kind` in [schema_registry] that reads them, empty where no job
    does."""

    kind: str
    registry: str
    in_bytes: Callable[[bytes], Framed | None]
    in_headers: Callable[[Headers, Part], Framed | None] | None = None
    message: MessageForm = "path"

    def find(self, data: bytes, headers: Headers, part: Part) -> Framed | None:
        """The framing of this part of a record; None where it has another one, or none."""
        if headers and self.in_headers is not None and (framed := self.in_headers(headers, part)) is not None:
            return framed
        return self.in_bytes(data)


_LONG_HEAD: Final = 9
"""Bytes of the magic byte and an id of 8 bytes."""
_GLUE_HEAD: Final = 18
_COMPRESSIONS: Final = {0: False, 5: True}
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of a body that was compressed."""


def _confluent(data: bytes) -> Framed | None:
    if data[:1] != b"\0":
        return None
    number = int.from_bytes(data[1:HEAD], "big")
    if len(data) < HEAD:
        return Framed(None, len(data))
    return Framed(number, HEAD) if number else None  # no id of Confluent is 0


def _apicurio(data: bytes) -> Framed | None:
    if data[:1] != b"\0":
        return None
    for head in (HEAD, _LONG_HEAD):  # ids are above 0, and fit in 4 bytes
        if len(data) >= head and (number := int.from_bytes(data[1:head], "big")):
            return Framed(number, head)
    return Framed(None, len(data))


def _apicurio_headers(headers: Headers, part: Part) -> Framed | None:
    for name, value in reversed(headers):
        if name.startswith("apicurio.") and name in _APICURIO_IDS[part]:
            number = int.from_bytes(value or b"", "big") if len(value or b"") == 8 else 0
            encoded = (f"apicurio.{part}.encoding", b"JSON") in headers
            return Framed(f"{name.rpartition('.')[2]} {number}" if number else None, 0, header=name, json=encoded)
    for name, _ in headers:
        if name in (f"apicurio.{part}.contentHash", f"apicurio.{part}.artifactId"):
            return Framed(None, 0, header=name)
    return None


_APICURIO_IDS: Final = {part: (f"apicurio.{part}.globalId", f"apicurio.{part}.contentId") for part in ("key", "value")}


def _glue(data: bytes) -> Framed | None:
    if data[:1] != b"\3" or (len(data) >= 2 and data[1] not in _COMPRESSIONS):
        return None
    if len(data) < _GLUE_HEAD:
        return Framed(None, len(data))
    return Framed(str(UUID(bytes=data[2:_GLUE_HEAD])), _GLUE_HEAD, _COMPRESSIONS[data[1]])


def _none(data: bytes) -> None:
    return None


def _confluent_headers(headers: Headers, part: Part) -> Framed | None:
    name = f"__{part}_schema_id"
    return Framed(None, 0, header=name) if any(name == found for found, _ in headers) else None


def _azure_headers(headers: Headers, part: Part) -> Framed | None:
    kind = dict(headers).get("content-type") or b""
    found = part == "value" and kind.startswith(b"avro/binary") and b"+" in kind
    return Framed(None, 0, header="content-type") if found else None


CONFLUENT: Final = Framing("confluent", "a registry with Confluent's API", _confluent)
FRAMINGS: Final = {
    framing.kind: framing
    for framing in (
        CONFLUENT,
        Framing("apicurio", "the Apicurio Registry", _apicurio, _apicurio_headers, message="name"),
        Framing("glue", "the AWS Glue Schema Registry", _glue, message="place"),
    )
}
"""The framings that a job reads, by the kind of their registry."""
_UNREAD: Final = (
    Framing("", "Confluent's registry, with ids in headers", _none, _confluent_headers),
    Framing("", "the registry of Azure Event Hubs", _none, _azure_headers),
)


class FramedReader(Protocol):
    """Reads the framed parts of records by schemas that it holds. `framing`: how the clients of its registry frame records."""

    @property
    def framing(self) -> Framing: ...

    def fetch(self, record: Record) -> None:
        """Asks the registry for the schemas of a record that the reader does not hold yet. Raises SchemaRegistryAway when the
        registry does not answer, and SettingError when it refuses the settings."""

    def read(self, record: Record, part: Part) -> SchemedValue:
        """The value of a framed part whose schema was fetched. Sends no request. Raises ValueError with the reason why there is
        no value."""


class NoSchemas:
    """The reader of a job without a schema registry, or of a command that does not ask it: refuses framed data. `framing`: of the
    registry that the settings name."""

    def __init__(self, framing: Framing = CONFLUENT) -> None:
        self.framing = framing

    def fetch(self, record: Record) -> None:
        """Nothing to ask."""

    def read(self, record: Record, part: Part) -> SchemedValue:
        refuse_headers(record, part, self.framing)
        framed = self.framing.find(part_bytes(record, part), record.headers, part)
        schema = "without a whole schema id" if framed is None or framed.id is None else f"with schema {framed.id}"
        raise Mismatch(
            f"framed for a schema registry, {schema}, and the settings name no registry: give [schema_registry] in the "
            "settings file",
            "schema-missing",
        )


NO_SCHEMAS: Final = NoSchemas()


def is_framed(data: bytes | None) -> bool:
    """Whether data begins with the magic byte of a registry."""
    return data is not None and data[:1] in (b"\0", b"\3")


def part_bytes(record: Record, part: Part) -> bytes:
    """The bytes of a part of a record; empty without it."""
    return (record.key if part == "key" else record.value) or b""


def body_of(data: bytes, framed: Framed) -> bytes:
    """The body behind a framing. Raises ValueError where it cannot be decompressed."""
    if not framed.zipped:
        return data[framed.head :]
    unzip = zlib.decompressobj()
    try:
        body = unzip.decompress(data[framed.head :], MOST_BYTES)
    except zlib.error as error:
        raise ValueError(f"the body is not compressed by zlib: {error}") from None
    if not unzip.eof or unzip.unused_data:
        raise ValueError("the compressed body ends early, has bytes after its end, or is larger than 64 MiB")
    return body


def any_framing(record: Record, part: Part) -> Framed | None:
    """The framing of a part of a record, of any kind of registry. None where the part has no framing."""
    found = (framing.find(part_bytes(record, part), record.headers, part) for framing in FRAMINGS.values())
    return next((framed for framed in found if framed is not None), None)


def bare_body(record: Record, part: Part) -> bytes:
    """The body of a part behind any framing; the whole part where it has none, or cannot be decompressed."""
    data, framed = part_bytes(record, part), any_framing(record, part)
    try:
        return data if framed is None else body_of(data, framed)
    except ValueError:
        return data


def refuse_headers(record: Record, part: Part, own: Framing) -> None:
    """Raises Mismatch for a part of a record whose headers name a schema of another registry than that of `own`."""
    for framing in (*FRAMINGS.values(), *_UNREAD) if record.headers else ():
        if framing.kind == own.kind or framing.in_headers is None:
            continue
        if (framed := framing.in_headers(record.headers, part)) is not None:
            raise _other_registry(framing, framed, own)


def refuse_other_registry(record: Record, part: Part, own: Framing) -> None:
    """Raises Mismatch for a part of a record that another registry frames than that of `own`. For parts that are no JSON."""
    refuse_headers(record, part, own)
    for framing in FRAMINGS.values():
        if framing.kind != own.kind and (framed := framing.in_bytes(part_bytes(record, part))) is not None:
            raise _other_registry(framing, framed, own)


def _other_registry(framing: Framing, framed: Framed, own: Framing) -> Mismatch:
    """The error of a record that another registry frames."""
    cure = "let the producer write JSON, or the framing of a kind that statestore reads"
    if framing.kind:
        cure = (
            f'write kind = "{framing.kind}" in [schema_registry] of the settings file, or let the producer write JSON'
        )
    found, end = f"framed for {framing.registry}", f"the job reads the framing of {own.registry}: {cure}"
    return Mismatch(f"{found}: {framed.says}; {end}", "other-registry", f"{found}, and {end}")


def framed(number: int, body: bytes) -> bytes:
    """The body, framed with the id of its schema."""
    return b"\0" + number.to_bytes(HEAD - 1, "big") + body


def bare_value(record: Record, schemas: FramedReader) -> Any:
    """The value of a record without its schema; None where it is unreadable. Raises SchemaRegistryAway."""
    data = record.value
    try:
        if data is not None and schemas.framing.find(data, record.headers, "value") is not None:
            schemas.fetch(record)
            value: Any = schemas.read(record, "value")
        else:
            value = None if data is None else canonical_json.loads(data)
    except ValueError:
        return None
    if type(value) is SchemedValue:
        return value.payload
    return value["payload"] if type(value) is dict and value.keys() == {"schema", "payload"} else value
