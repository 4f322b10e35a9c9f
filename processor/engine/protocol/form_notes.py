"""The settled forms of decimals, as the table remembers them: one item for each column whose form a record settled.

    FORMS, <entity>#<column>    entity, column, form; topic, partition, epoch, offset: of the record that settled it

A task writes the item before it writes a row that it read by this form. The store refuses a second item, so the first one wins
among all tasks, runs and replays. The item has no value of the record.

The item never expires. The driver deletes it when the definitions say the form, or have no such column any more.
"""

from processor.values.decimal_forms import FormNote, LearnedForm
from statestore import keys
from statestore.keys import Key
from statestore.store import Absent, Delete, Item, Write
from statestore.writes import write_note

PARTITION = keys.progress_partition("FORMS")


def write_form(note: FormNote) -> Write:
    """Settles the form of a column, unless it has one."""
    facts = {"entity": note.entity, "column": note.column, **note.settled._asdict()}
    return write_note(_key(note.entity, note.column), facts, when=Absent())


def read_form(item: Item) -> FormNote:
    """The note in an item of `PARTITION`."""
    partition, epoch, offset = (int(item[name]) for name in ("partition", "epoch", "offset"))
    return FormNote(item["entity"], item["column"], LearnedForm(item["form"], item["topic"], partition, epoch, offset))


def forget_form(note: FormNote) -> Delete:
    """Forgets the form of a column: the next record with one meaning settles it again."""
    return Delete(key=_key(note.entity, note.column))


def _key(entity: str, column: str) -> Key:
    sk = keys.encode((entity, column))
    assert sk is not None
    return Key(PARTITION, sk)
