"""Decodes the records of a task, and settles the form of a decimal column by the first record that shows one.

A task settles a form in the table before it writes a row by it. Where another task was first, the table answers with the form
that the column has. The task reads the record by that form, so the record may be a dead letter. No column has rows of both
forms.

`shown_keys` says which rows a record shows, also a record that cannot be decoded: by its key columns alone. A dead letter has
one broken column, or a Kafka key without all parts of the key, or bytes that end too early. Its key columns may still be
readable: in the Kafka key, in each image of the value, or half in the one and half in the other.

`split_erased` tells the records of erased rows apart: those from before the erasure must not bring the row back, nor become
dead letters.

The table remembers the settled forms: one item for each column whose form a record settled.

    FORMS, <entity>#<column>    entity, column, form; topic, partition, epoch, offset: of the record that settled it

The store refuses a second item, so the first one wins among all tasks, runs and replays. The item has no value of the record, and
never expires. The driver deletes it when the definitions say the form, or have no such column any more.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from processor.engine.plan.row_image import version_of
from processor.engine.protocol.decode import Decoder, TopicEntities, decode
from processor.engine.protocol.epochs import UNKNOWN, Incarnations
from processor.engine.protocol.erasures import Erased, erasure_key, name_of, read_erasure
from processor.values.canonical_json import read_beginning
from processor.values.decimal_forms import NO_FORMS, ColumnForms, FormNote, Forms, LearnedForm, learned_at, with_notes
from processor.values.entity import Entity
from processor.values.envelopes.foreign import foreign_format, rows_at
from processor.values.envelopes.kind import RowImage, row_images
from processor.values.envelopes.kinds import FORMATS, kind_of, read_image, unwrap
from processor.values.framing import NO_SCHEMAS, FramedReader, SchemedValue, bare_body
from processor.values.record import UNAVAILABLE, Change, Decoded, Record, Rejected, Value
from statestore import keys
from statestore.keys import Key
from statestore.store import Absent, Delete, Item, Refused, Store, Write
from statestore.writes import write_note

FORMS = keys.progress_partition("FORMS")


def write_form(note: FormNote) -> Write:
    """Settles the form of a column, unless it has one."""
    facts = {"entity": note.entity, "column": note.column, **note.settled._asdict()}
    return write_note(_key(note.entity, note.column), facts, when=Absent())


def read_form(item: Item) -> FormNote:
    """The note in an item of `FORMS`."""
    partition, epoch, offset = (int(item[name]) for name in ("partition", "epoch", "offset"))
    return FormNote(item["entity"], item["column"], LearnedForm(item["form"], item["topic"], partition, epoch, offset))


def settled_forms(store: Store) -> Forms:
    """The forms of decimals that the table has settled, by entity."""
    return with_notes({}, map(read_form, store.partition(FORMS)))


def forget_form(note: FormNote) -> Delete:
    """Forgets the form of a column: the next record with one meaning settles it again."""
    return Delete(key=_key(note.entity, note.column))


def _key(entity: str, column: str) -> Key:
    sk = keys.encode((entity, column))
    assert sk is not None
    return Key(FORMS, sk)


RowKey = tuple[Value, ...]


def shown_keys(
    record: Record, entity: Entity, schemas: FramedReader = NO_SCHEMAS, forms: ColumnForms = NO_FORMS
) -> frozenset[RowKey]:
    """Every primary key of the entity that the record shows; none where none is readable. `schemas`: reads framed keys and
    values, whose schemas were fetched. `forms`: of the decimals whose form is settled."""
    return frozenset(_KeyReader(entity, forms).keys(record, schemas))


class _KeyReader(Decoder):
    """Reads the key columns of one entity's records."""

    __slots__ = ()

    def keys(self, record: Record, schemas: FramedReader) -> Iterator[RowKey]:
        """The keys that the Kafka key shows, that an image shows, and that both show together."""
        value = _value(record, schemas)
        for image in _images(value, self.entity):
            if type(value) is SchemedValue and self._adjusted:
                image = self._with_columns(image)
            kafka, row = self._kafka_parts(record, image, schemas), self._parts(image)
            for parts in (kafka, row, {**row, **kafka}, {**kafka, **row}):
                if len(parts) == len(self.entity.key):
                    yield tuple(parts[name] for name in self.entity.key)

    def _kafka_parts(self, record: Record, image: RowImage, schemas: FramedReader) -> Mapping[str, Value]:
        with suppress(ValueError):
            found = self._key_parts(self._key_value(record, schemas), image._replace(keys="array"))
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


def _value(record: Record, schemas: FramedReader) -> Value:
    """The value, as far as it is readable; else None."""
    if record.value is None:
        return None
    if schemas.framing.find(record.value, record.headers, "value") is not None:
        with suppress(ValueError):
            return schemas.read(record, "value")
    return read_beginning(bare_body(record, "value"))  # a body of JSON Schema is JSON


def _images(value: Value, entity: Entity) -> Iterator[RowImage]:
    """The images in a value: the new one and the old one of an envelope, also of an envelope that breaks its contract, and that
    of a record in another format than the entity pins. First of all the image of no value."""
    unpinned = replace(entity, format=None)
    forms: list[Value] = [None, value]
    payload, schema = unwrap(value, entity)
    if type(payload) is dict:
        pinned = FORMATS[entity.format or "plain"]
        kind = pinned if pinned.wraps else kind_of(payload, entity)[0]
        foreign = foreign_format(payload, entity.columns)
        rows = rows_at(payload, (*kind.rows, *(foreign.rows if foreign else ())))
        yield from (RowImage(row, reading=kind.reading) for row in rows)
    if type(payload) is dict and not payload.keys().isdisjoint(("before", "after")):
        forms += [SchemedValue({**payload, "op": op}, schema) for op in ("c", "d")]
    for form in forms:
        for reader in (entity, unpinned):
            with suppress(ValueError):
                yield from row_images(read_image(form, reader))


def split_erased(
    changes: Iterable[Change], erased: Erased, incarnations: Incarnations, store: Store
) -> tuple[list[Change], list[Change]]:
    """The changes that count, and those that came before the erasure of their row. Costs nothing where no row is erased, else a
    hash for each change, and a read for each change of an erased row."""
    changes = list(changes)
    if not erased:
        return changes, []
    notes = [erasure_key(change.entity, keys.encode(change.key) or "") for change in changes]
    found = store.get({note for note in notes if name_of(note) in erased})
    erasures = {note: read_erasure(item) for note, item in found.items()}
    counts: list[Change] = []
    covered: list[Change] = []
    for change, note in zip(changes, notes, strict=True):
        topic = incarnations.get((change.record.topic, change.record.epoch), UNKNOWN)
        old = note in erasures and erasures[note].covers(version_of(change), topic)
        (covered if old else counts).append(change)
    return counts, covered


@dataclass(slots=True, kw_only=True)
class SettledDecode:
    """The decoding of one task. `schemas`: fetches and reads framed records. `forms`: as they are settled so far. `settled`: the
    notes that the task wrote, or found."""

    store: Store
    schemas: FramedReader
    forms: Forms
    settled: list[FormNote] = field(default_factory=list)

    def decode_all(self, records: Iterable[Record], entities: TopicEntities) -> list[Decoded]:
        """What each record says. A form that a record settles counts for all of them, those before it too."""
        decoded = [self.decode(record, entities.of(record, self.schemas)) for record in records]
        settled = 0
        while len(self.settled) > settled:
            settled = len(self.settled)
            for n, one in enumerate(decoded):
                if isinstance(one, Rejected):
                    decoded[n] = self.decode(one.record, entities.of(one.record, self.schemas))
        return decoded

    def decode(self, record: Record, entity: Entity | None) -> Decoded:
        """What the record says, by the forms that are settled, and by those that it settles."""
        if entity is not None:
            self.schemas.fetch(record)
        decoded = self._decoded(record, entity)
        if isinstance(decoded, Change) and decoded.shows:
            for column, form in decoded.shows.items():
                self._settle(FormNote(decoded.entity, column, learned_at(record, form)))
            decoded = self._decoded(record, entity)
        return decoded

    def _decoded(self, record: Record, entity: Entity | None) -> Decoded:
        forms = NO_FORMS if entity is None else self.forms.get(entity.name, NO_FORMS)
        return decode(record, entity, self.schemas, forms)

    def _settle(self, note: FormNote) -> None:
        outcome = self.store.write(write_form(note))
        found = read_form(outcome.current) if isinstance(outcome, Refused) and outcome.current is not None else note
        self.settled.append(found)
        self.forms = with_notes(self.forms, [found])
