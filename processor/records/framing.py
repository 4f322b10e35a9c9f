"""The framing of records whose schema a Confluent-compatible schema registry keeps, and who reads them.

    byte 0      the magic byte 0; no JSON text begins with it
    bytes 1-4   the id of the schema, big-endian
    the rest    the body: Avro, JSON, or Protobuf after the indexes of its message

This module fetches nothing and knows no format. `processor.schema_registry` has the reader that asks a registry.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, Protocol

from processor.records import canonical_json
from processor.records.mismatch import Mismatch
from processor.records.record import Record, Value

HEAD: Final = 5
"""Bytes of the magic byte and the id."""


class SchemedValue(NamedTuple):
    """A value as Kafka Connect's JsonConverter writes it, with its schema in the form that the same converter gives it. None: a
    schema that says nothing about how to read the value. `avro`: whether the names of the columns are names that Avro allows."""

    payload: Value
    schema: Any
    avro: bool = False


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


def framed(number: int, body: bytes) -> bytes:
    """The body, framed with the id of its schema."""
    return b"\0" + number.to_bytes(HEAD - 1, "big") + body


def schema_ids(record: Record) -> set[int]:
    """The ids of the schemas that a record needs: of its key, and of its value."""
    needed = [data for data in (record.key, record.value) if data is not None and is_framed(data)]
    return {number for number in map(framed_id, needed) if number is not None} if needed else set()


def bare_value(record: Record, schemas: FramedReader) -> Any:
    """The value of a record without its schema; None where nobody can read it. Raises SchemaRegistryAway."""
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
