"""Settles one open change: reads the row as it stands, and asks every slot of it whether the index shows it.

The evidence is a raw index answer that holds the row at its version or newer, in every slot of it: absence is no evidence, which
is why a row without a key in a slot is found there under its own `no_key`. A row that is gone altogether counts as shown.
What the change touches is found and published again by whoever runs this, with the way up asked anew.
"""

from dataclasses import dataclass

from processor.model.open_changes import Entry, Settled
from processor.model.step import Raw, Step
from processor.model.touch import Touch
from statestore import keys
from statestore.items import Row, read_row, slot_name
from statestore.store import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """An entry's outcome, and the touch to repeat."""

    settled: Settled
    touch: Touch


def settle(entry: Entry) -> Step[Probed]:
    """Looks whether the indexes show the row of `entry`; the touch names every key that it has or had."""
    (item,) = yield (entry.key,)
    if item is None:
        row = Row(key=entry.key, version=entry.version, columns=None, more={}, slots={}, pending=())
        shown = True
    else:
        row = read_row(item)
        probes = tuple(Raw(Query(slot=slot_name(k), value=key, pk=entry.key.pk)) for k, key in row.slots.items())
        answers = yield probes
        shown = all(any(i["SK"] == row.key.sk and i["_v"] >= row.version for i in found) for found in answers)
    had = (entry.former | set(entry.slots)) - {*row.slots.items(), *row.edges}
    left = frozenset((slot, key) for slot, key in had if not keys.is_no_key(key))
    touch = Touch(entity=entry.entity, row=row, left=left, changed=None, how="replayed")
    slots = tuple(sorted(row.slots.items())) or entry.slots
    return Probed(settled=Settled(entry=entry, version=row.version, slots=slots, shown=shown), touch=touch)
