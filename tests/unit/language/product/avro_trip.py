"""Writes documents as framed Avro, and reads them back: by the job's own way, and as a consumer with fastavro does."""

import io
from collections.abc import Mapping
from typing import Any

import fastavro

from processor.job.kafka.framed_records import RegistrySchemas
from processor.job.kafka.registry_client import WriterSchema
from processor.job.kafka.schemas import open_avro_writer
from processor.language.product.avro import avro_datum, avro_schema_text
from processor.language.product.product import Product
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.framing import HEAD, framed
from tests.unit.job.kafka.framed import head, record_of

NUMBER = 7


class AvroTrip:
    """A product's documents on their way to a consumer."""

    def __init__(self, product: Product, entities: Mapping[str, Entity]) -> None:
        self.schema = avro_schema_text(product, entities)
        self._datum = avro_datum(product, entities)
        self._write = open_avro_writer(self.schema)
        self._schemas = RegistrySchemas(lambda _: WriterSchema("AVRO", self.schema, {}))
        self._schemas.fetch(record_of(head(NUMBER)))

    def write(self, document: Any) -> bytes:
        return framed(NUMBER, self._write(self._datum.write(document)))

    def read(self, value: bytes) -> Any:
        return self._datum.read(self._schemas.read(record_of(value), "value").payload)

    def consume(self, value: bytes, reader: str | None = None) -> Any:
        """The value as a consumer has it, by its own schema or by the writer's."""
        written, own = (
            fastavro.parse_schema(canonical_json.loads(text)) for text in (self.schema, reader or self.schema)
        )
        return fastavro.schemaless_reader(io.BytesIO(value[HEAD:]), written, own)

    def check(self, document: Any) -> None:
        """Checks that the document comes back byte by byte."""
        assert canonical_json.encode(self.read(self.write(document))) == canonical_json.encode(document)
