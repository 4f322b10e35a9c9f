"""Decodes the records of a task, and settles the form of a decimal column by the first record that shows one.

A task settles a form in the table before it writes a row by it. Where another task was first, the table answers with the form
that the column has. The task reads the record by that form, so the record may be a dead letter. No column has rows of both forms.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from processor.engine.protocol.decode import decode
from processor.engine.protocol.form_notes import read_form, write_form
from processor.values.decimal_forms import NO_FORMS, FormNote, Forms, learned_at, with_notes
from processor.values.entity import Entity
from processor.values.framing import FramedReader, schema_ids
from processor.values.record import Change, Decoded, Record, Rejected
from statestore.store import Refused, Store


@dataclass(slots=True, kw_only=True)
class SettledDecode:
    """The decoding of one task. `schemas`: fetches and reads framed records. `forms`: as they are settled so far. `settled`: the
    notes that the task wrote, or found."""

    store: Store
    schemas: FramedReader
    forms: Forms
    settled: list[FormNote] = field(default_factory=list)

    def decode_all(self, records: Iterable[Record], entities: Mapping[str, Entity]) -> list[Decoded]:
        """What each record says. `entities`: by topic. A form that a record settles counts for all of them, those before it
        too."""
        decoded = [self.decode(record, entities.get(record.topic)) for record in records]
        settled = 0
        while len(self.settled) > settled:
            settled = len(self.settled)
            for n, one in enumerate(decoded):
                if isinstance(one, Rejected):
                    decoded[n] = self.decode(one.record, entities.get(one.record.topic))
        return decoded

    def decode(self, record: Record, entity: Entity | None) -> Decoded:
        """What the record says, by the forms that are settled, and by those that it settles."""
        if entity is not None:
            self.schemas.fetch(schema_ids(record))
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
