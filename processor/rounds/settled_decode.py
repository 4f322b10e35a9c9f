"""Decodes the records of a part, and settles the form of a decimal column by the first record that shows one.

A task settles a form in the table before it writes a row by it. Where another task was first, the table answers with the form
that the column has. The task reads the record by that form, so the record may be a dead letter. No column has rows of both forms.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from processor.progress.epochs import Partition
from processor.progress.form_notes import FormNote, Forms, read_form, with_notes, write_form
from processor.records.entity import Entity
from processor.records.framing import FramedReader
from processor.records.record import Change, Decoded, Record
from processor.records.settled_form import NO_FORMS, ColumnForms, settled_at
from processor.steps.decode import decode
from statestore.store import Refused, Store


@dataclass(slots=True, kw_only=True)
class SettledDecode:
    """The decoding of one part. `forms`: as they are settled so far. `in_order`: text that may be digits and bytes has no form
    before the record that settled one; a replay reads it by the form. `settled`: the notes that the part wrote, or found."""

    store: Store
    forms: Forms
    in_order: bool = True
    settled: list[FormNote] = field(default_factory=list)
    _firsts: dict[str, Mapping[Partition, tuple[int, int]]] = field(default_factory=dict)
    _early: dict[tuple[str, frozenset[str]], ColumnForms] = field(default_factory=dict)

    def decode(self, record: Record, entity: Entity | None, schemas: FramedReader) -> Decoded:
        """What the record says, by the forms that are settled, and by those that it settles."""
        decoded = decode(record, entity, schemas, self._forms(record, entity))
        if isinstance(decoded, Change) and decoded.shows:
            for column, form in decoded.shows.items():
                self._settle(FormNote(decoded.entity, column, settled_at(record, form)))
            decoded = decode(record, entity, schemas, self._forms(record, entity))
        return decoded

    def _settle(self, note: FormNote) -> None:
        outcome = self.store.write(write_form(note))
        found = read_form(outcome.current) if isinstance(outcome, Refused) and outcome.current is not None else note
        self.settled.append(found)
        self.forms = with_notes(self.forms, [found])
        self._firsts.clear()
        self._early.clear()

    def _forms(self, record: Record, entity: Entity | None) -> ColumnForms:
        """The forms of the entity's columns for a record."""
        forms = self.forms.get(entity.name, NO_FORMS) if entity is not None else NO_FORMS
        if not forms or entity is None or not self.in_order:
            return forms
        first = self._first_records(entity.name, forms).get((record.topic, record.partition))
        if first is None or (record.epoch, record.offset) >= first:
            return forms
        early = frozenset(column for column, settled in forms.items() if settled.is_after(record))
        name = (entity.name, early)
        if name not in self._early:
            self._early[name] = {c: one._replace(early=c in early) for c, one in forms.items()}
        return self._early[name]

    def _first_records(self, entity: str, forms: ColumnForms) -> Mapping[Partition, tuple[int, int]]:
        """The position in each partition from which on all forms count that were settled there."""
        if entity not in self._firsts:
            firsts: dict[Partition, tuple[int, int]] = {}
            for settled in forms.values():
                partition, position = (settled.topic, settled.partition), (settled.epoch, settled.offset)
                firsts[partition] = max(firsts.get(partition, position), position)
            self._firsts[entity] = firsts
        return self._firsts[entity]
