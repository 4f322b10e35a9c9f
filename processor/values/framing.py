"""The framing of records whose schema a Confluent-compatible schema registry keeps, and who reads them.

    byte 0      the magic byte 0; no JSON text begins with it
    bytes 1-4   the id of the schema, big-endian
    the rest    the body: Avro, JSON, or Protobuf after the indexes of its message

Other registries frame their records otherwise, and statestore reads none of these:

    AWS Glue        byte 3, a byte for the compression (0, or 5 for zlib), and the 16 bytes of the schema version's UUID
    Apicurio        byte 0 and an id of 8 bytes, whose first 4 are 0: no id of Confluent is 0
    in headers      of Apicurio (`apicurio.value.globalId`), Confluent (`__value_schema_id`), Azure (`content-type`)

This module fetches nothing and knows no format. `processor.job.kafka` has the reader that asks a registry.
"""

from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple, Protocol
from uuid import UUID

from processor.values import canonical_json
from processor.values.reasons import Mismatch
from processor.values.record import Record, Value

HEAD: Final = 5
"""Bytes of the magic byte and the id."""


class SchemedValue(NamedTuple):
    """A value as Kafka Connect's JsonConverter writes it, with its schema in the form that the same converter gives it. None: a
    schema that says nothing about how to read the value. `avro`: whether the names of the columns are names that Avro allows."""

    payload: Value
    schema: Any
    avro: bool = False


Part = Literal["key", "value"]
"""A part of a record."""
_GLUE: Final = b"\x03"
_GLUE_HEAD: Final = 18
_LONG_HEAD: Final = 9
"""Bytes of the magic byte and an id of 8 bytes."""
_COMPRESSIONS: Final = {0: "not compressed", 5: "compressed by zlib"}
_ID_HEADERS: Final = (
    ("apicurio.{}.globalId", "the Apicurio Registry"),
    ("apicurio.{}.contentId", "the Apicurio Registry"),
    ("apicurio.{}.contentHash", "the Apicurio Registry"),
    ("apicurio.{}.artifactId", "the Apicurio Registry"),
    ("__{}_schema_id", "Confluent's registry, with ids in headers"),
)
"""Headers with the id of a schema, and the registries that keep it. Each has the part of the record in its name."""


class FramedReader(Protocol):
    """Reads framed data by schemas that it holds."""

    def fetch(self, ids: Iterable[int]) -> None:
        """Asks the registry for the schemas that the reader does not hold yet. Raises SchemaRegistryAway when the registry
        does not answer, and SettingError when it refuses the settings."""

    def read(self, data: bytes) -> SchemedValue:
        """The value of framed data whose schema was fetched. Asks nobody. Raises ValueError with the reason why there is
        none."""


class NoSchemas:
    """The reader of a job without a schema registry: it refuses framed data."""

    def fetch(self, ids: Iterable[int]) -> None:
        """Nothing to ask."""

    def read(self, data: bytes) -> SchemedValue:
        refuse_long_id(data)
        number = framed_id(data)
        schema = "without a whole schema id" if number is None else f"with schema {number}"
        raise Mismatch(
            f"framed for a schema registry, {schema}, and the settings name no registry: give [schema_registry] in the "
            "settings file",
            "schema-missing",
        )


NO_SCHEMAS: Final = NoSchemas()


def is_framed(data: bytes | None) -> bool:
    """Whether data begins with the magic byte."""
    return data is not None and data[:1] == b"\0"


def framed_id(data: bytes) -> int | None:
    """The schema id of framed data. None where the data ends before."""
    return int.from_bytes(data[1:HEAD], "big") if len(data) >= HEAD else None


def refuse_long_id(data: bytes) -> None:
    """Raises Mismatch for framed data whose id has 8 bytes."""
    if framed_id(data) == 0:
        number = int.from_bytes(data[1:_LONG_HEAD], "big") if len(data) >= _LONG_HEAD else 0
        shown = f"its id {number} has 8 bytes" if number else "its id is 0"
        raise _other_registry(
            "the Apicurio Registry", shown, "let the producer use Apicurio's `Legacy4ByteIdHandler`, or write JSON"
        )


def refuse_other_registry(record: Record, part: Part) -> None:
    """Raises Mismatch for a part of a record that another registry frames. For parts that are framed, or no JSON."""
    data, names = (record.key if part == "key" else record.value) or b"", dict(record.headers)
    for pattern, registry in _ID_HEADERS:
        if (name := pattern.format(part)) in names:
            raise _other_registry(registry, f"the id of its schema is in the header {name}")
    if part == "value" and b"+" in (kind := names.get("content-type") or b"") and kind.startswith(b"avro/binary"):
        raise _other_registry("the registry of Azure Event Hubs", "the header content-type names its schema")
    if data[:1] == _GLUE and len(data) >= _GLUE_HEAD and data[1] in _COMPRESSIONS:
        version = UUID(bytes=data[2:_GLUE_HEAD])
        raise _other_registry("the AWS Glue Schema Registry", f"schema version {version}, {_COMPRESSIONS[data[1]]}")


def _other_registry(registry: str, what: str, cure: str = "") -> Mismatch:
    """The error of a record that this process does not read."""
    cure = cure or "let the producer write JSON, or Confluent's framing"
    return Mismatch(
        f"framed for {registry}: {what}; statestore reads Confluent's framing, with ids of 4 bytes: {cure}",
        "other-registry",
        f"framed for {registry}; statestore reads Confluent's framing, with ids of 4 bytes: {cure}",
    )


def framed(number: int, body: bytes) -> bytes:
    """The body, framed with the id of its schema."""
    return b"\0" + number.to_bytes(HEAD - 1, "big") + body


def schema_ids(record: Record) -> set[int]:
    """The ids of the schemas that a record needs: of its key, and of its value."""
    needed = [data for data in (record.key, record.value) if data is not None and is_framed(data)]
    return {number for number in map(framed_id, needed) if number} if needed else set()


def bare_value(record: Record, schemas: FramedReader) -> Any:
    """The value of a record without its schema; None where it is unreadable. Raises SchemaRegistryAway."""
    try:
        if is_framed(record.value):
            schemas.fetch(schema_ids(record))
            value: Any = schemas.read(record.value or b"")
        else:
            value = None if record.value is None else canonical_json.loads(record.value)
    except ValueError:
        return None
    if type(value) is SchemedValue:
        return value.payload
    return value["payload"] if type(value) is dict and value.keys() == {"schema", "payload"} else value
