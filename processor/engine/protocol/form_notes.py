"""The settled forms of decimals, as the table remembers them: one item for each column whose form a record settled.

    FORMS, <entity>#<column>    entity, column, form; topic, partition, epoch, offset: of the record that settled it

A task writes the item before it writes a row that it read by this form. The store refuses a second item, so the first one wins
among all tasks, runs and replays. The item has no value of the record.

The item never expires. The driver deletes it when the definitions say the form, or have no such column any more.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from processor.values.entity import Entity
from processor.values.settled_form import SettledForm
from statestore import keys
from statestore.keys import Key
from statestore.store import Absent, Delete, Item, Write
from statestore.writes import write_note

PARTITION = keys.progress_partition("FORMS")
Forms = Mapping[str, Mapping[str, SettledForm]]
"""Entity -> column -> the form of its text."""


class FormNote(NamedTuple):
    """The form of a column, as an item holds it."""

    entity: str
    column: str
    settled: SettledForm


def write_form(note: FormNote) -> Write:
    """Settles the form of a column, unless it has one."""
    facts = {"entity": note.entity, "column": note.column, **note.settled._asdict()}
    return write_note(_key(note.entity, note.column), facts, when=Absent())


def read_form(item: Item) -> FormNote:
    """The note in an item of `PARTITION`."""
    partition, epoch, offset = (int(item[name]) for name in ("partition", "epoch", "offset"))
    return FormNote(item["entity"], item["column"], SettledForm(item["form"], item["topic"], partition, epoch, offset))


def forget_form(note: FormNote) -> Delete:
    """Forgets the form of a column: the next record with one meaning settles it again."""
    return Delete(key=_key(note.entity, note.column))


def with_notes(forms: Forms, notes: Iterable[FormNote]) -> Forms:
    """The forms, and those of the notes."""
    result = dict(forms)
    for entity, column, settled in notes:
        result[entity] = {**result.get(entity, {}), column: settled}
    return result


def obsolete_notes(forms: Forms, entities: Mapping[str, Entity]) -> Iterator[FormNote]:
    """The notes of columns whose form no record settles: the entity says it, or the column is gone or has another type."""
    for entity, columns in forms.items():
        for column, settled in columns.items():
            if entity not in entities or not entities[entity].settles(column):
                yield FormNote(entity, column, settled)


def without_notes(forms: Forms, notes: Iterable[FormNote]) -> Forms:
    """The forms without those of the notes."""
    gone = {(note.entity, note.column) for note in notes}
    return {
        entity: {column: settled for column, settled in columns.items() if (entity, column) not in gone}
        for entity, columns in forms.items()
    }


def _key(entity: str, column: str) -> Key:
    sk = keys.encode((entity, column))
    assert sk is not None
    return Key(PARTITION, sk)
