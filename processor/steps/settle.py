"""Settles one open change: asks the slots that no answer to live work has shown, and finds out which roots to repeat.

The evidence is an index answer without overlay that holds the row at its version or newer, in every slot of the row.
Absence is no evidence, so a row without a key in a slot has its own `no_key` there. A row that is gone counts as shown.

With evidence the step ends, unless the change must find its roots again (`OpenChange.again`). Without it the step reads
the row by key. The settle stage then finds the touched roots again, and publishes them.
"""

from dataclasses import dataclass

from processor.plan.step import Lookup, Step
from processor.plan.touch import Touch
from processor.progress.segment import OpenChange, SettleOutcome
from statestore import keys
from statestore.item_attributes import shows
from statestore.items import Row, read_row, slot_name
from statestore.store import Item, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledChange:
    """The outcome for an open change, and the touch to repeat: None where the overlay has covered the change."""

    outcome: SettleOutcome
    touch: Touch | None


def settle(change: OpenChange) -> Step[SettledChange]:
    """Looks whether the indexes show the row of `change`. The touch names every key that the row has or had."""
    unseen = [(slot, key) for slot, key in change.slots if slot not in change.seen]
    probes = [Query(slot=slot_name(slot), value=key, row=change.key) for slot, key in unseen]
    pages = (yield tuple(Lookup(probe, overlay=False) for probe in probes)) if probes else ()
    shown = all(shows(probe, page, change.version) for probe, page in zip(probes, pages, strict=True))
    if shown and not change.again:
        return SettledChange(outcome=SettleOutcome(change, change.version, change.slots, True), touch=None)
    (item,) = yield (change.key,)
    row, slots = _row_now(change, item)
    earlier = (change.former | set(change.slots)) - {*row.slots.items(), *row.edges}
    former_keys = frozenset((slot, key) for slot, key in earlier if not keys.is_no_key(key))
    touch = Touch(entity=change.entity, row=row, former_keys=former_keys, changed=None, outcome="replayed")
    outcome = SettleOutcome(change=change, version=row.version_in_indexes(), slots=slots, shown=shown or item is None)
    return SettledChange(outcome=outcome, touch=touch)


def _row_now(change: OpenChange, item: Item | None) -> tuple[Row, tuple[tuple[int, str], ...]]:
    """The row of a change as the table has it, and its slots. A row that is gone keeps version and slots of the change."""
    if item is None:
        gone = Row(key=change.key, version=change.version, columns=None, more={}, slots={}, pending=())
        return gone, change.slots
    row = read_row(item)
    return row, tuple(sorted(row.slots.items()))
