"""Which rows a record shows, also a record that cannot be decoded: by its key columns alone. Pure; never raises.

A dead letter has one broken column, or a Kafka key without all parts of the key, or bytes that end too early. Its key columns may
still be readable: in the Kafka key, in each image of the value, or half in the one and half in the other.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace

from processor.engine.protocol.decode import Decoder
from processor.values.canonical_json import read_beginning
from processor.values.decimal_forms import NO_FORMS, ColumnForms
from processor.values.entity import Entity
from processor.values.envelopes.foreign import foreign_format, foreign_rows
from processor.values.envelopes.kind import RowImage, row_images
from processor.values.envelopes.kinds import ENVELOPES, read_image, unwrap
from processor.values.framing import HEAD, NO_SCHEMAS, FramedReader, SchemedValue, is_framed
from processor.values.record import UNAVAILABLE, Record, Value

RowKey = tuple[Value, ...]


def shown_keys(
    record: Record, entity: Entity, schemas: FramedReader = NO_SCHEMAS, forms: ColumnForms = NO_FORMS
) -> frozenset[RowKey]:
    """Every primary key of the entity that the record shows; none where nobody can read one. `schemas`: reads framed keys and
    values, whose schemas were fetched. `forms`: of the decimals whose form is settled."""
    return frozenset(_KeyReader(entity, forms).keys(record, schemas))


class _KeyReader(Decoder):
    """Reads the key columns of one entity's records."""

    __slots__ = ()

    def keys(self, record: Record, schemas: FramedReader) -> Iterator[RowKey]:
        """The keys that the Kafka key shows, that an image shows, and that both show together."""
        value = _value(record.value, schemas)
        for image in _images(value, self.entity):
            if type(value) is SchemedValue and self._adjusted:
                image = self._with_columns(image)
            kafka, row = self._kafka_parts(record, image, schemas), self._parts(image)
            for parts in (kafka, row, {**row, **kafka}, {**kafka, **row}):
                if len(parts) == len(self.entity.key):
                    yield tuple(parts[name] for name in self.entity.key)

    def _kafka_parts(self, record: Record, image: RowImage, schemas: FramedReader) -> Mapping[str, Value]:
        with suppress(ValueError):
            found = self._key_parts(self._key_value(record, schemas), image)
            return {name: part for name, part in found.items() if part is not None}
        return {}

    def _parts(self, image: RowImage) -> Mapping[str, Value]:
        """The parts of the key that an image has, each read alone."""
        parts = {}
        for name in self.entity.key:
            with suppress(ValueError):
                part = self._row(image._replace(row={name: image.row.get(name)}, deleted=True))[name]
                if part is not None and part is not UNAVAILABLE:
                    parts[name] = part
        return parts


def _value(data: bytes | None, schemas: FramedReader) -> Value:
    """The value, as far as somebody can read it; None where nobody can."""
    if data is None or not is_framed(data):
        return None if data is None else read_beginning(data)
    with suppress(ValueError):
        return schemas.read(data)
    return read_beginning(data[HEAD:])  # a body of JSON Schema is JSON


def _images(value: Value, entity: Entity) -> Iterator[RowImage]:
    """The images in a value: the new one and the old one of an envelope, also of an envelope that breaks its contract, and that
    of a record in another format than the entity pins. First of all the image of no value."""
    unpinned = replace(entity, format=None)
    forms: list[Value] = [None, value]
    payload, schema = unwrap(value, entity)
    if type(payload) is dict and (foreign := foreign_format(payload, entity.columns)) is not None:
        yield from (RowImage(row) for row in foreign_rows(payload, foreign.rows))
    if type(payload) is dict:
        for kind in ENVELOPES:
            if kind.rows and not kind.members.isdisjoint(payload):
                yield from (RowImage(row, reading=kind.reading) for row in foreign_rows(payload, kind.rows))
    if type(payload) is dict and not payload.keys().isdisjoint(("before", "after")):
        forms += [SchemedValue({**payload, "op": op}, schema) for op in ("c", "d")]
    for form in forms:
        for reader in (entity, unpinned):
            with suppress(ValueError):
                yield from row_images(read_image(form, reader))
