"""Tells the records of erased rows apart: those from before the erasure must not bring the row back, nor become dead letters."""

from collections.abc import Iterable

from processor.engine.plan.row_image import version_of
from processor.engine.protocol.epochs import UNKNOWN, Incarnations
from processor.engine.protocol.erasures import Erased, erasure_key, name_of, read_erasure
from processor.engine.rounds.shown_keys import shown_keys
from processor.values.decimal_forms import NO_FORMS, Forms
from processor.values.entity import Entity
from processor.values.framing import FramedReader
from processor.values.record import Change, Record
from statestore import keys
from statestore.store import Store


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


def is_erased_letter(
    record: Record,
    entity: Entity | None,
    erased: Erased,
    incarnations: Incarnations,
    store: Store,
    schemas: FramedReader,
    forms: Forms,
) -> bool:
    """Whether a record that cannot be decoded came before the erasure of a row whose key it shows. `schemas`: reads framed
    records. `forms`: of decimals, as they are settled."""
    if not erased or entity is None:
        return False
    shown = shown_keys(record, entity, schemas, forms.get(entity.name, NO_FORMS))
    changes = (Change(entity.name, key, None, record) for key in shown)
    return bool(split_erased(changes, erased, incarnations, store)[1])
