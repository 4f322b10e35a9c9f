"""Settles one open change: asks the slots that no answer to live work has shown, and finds out which roots to repeat.

The evidence is an index answer without overlay that holds the row at its version or newer, in every slot of the row. A slot that
its entity has given up counts no more: products read it no more, and writes leave there what it showed.
Absence is no evidence, so a row without a key in a slot has its own `no_key` there. Only of a deleted row that every index had
shown, absence is evidence: an index drops it after all that it showed of it. A row that is gone from the table counts as shown.

A row may have left the indexes without an index that showed this change: the step puts its marker back there.

With evidence the step ends, unless the change must find its roots again (`OpenChange.again`). Without it the step reads the row
by key. If the row has another key now in each slot without evidence, these slots are asked again under it: an index drops the
old key and shows the new one together, and the newer change of the row is open by itself. Without evidence there either, the
settle stage finds the touched roots again, and publishes them.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from processor.engine.plan.step import Lookup, Step, Touch
from processor.engine.protocol.segments import OpenChange, SettleOutcome, SlotKey, unproven_slots
from statestore import keys
from statestore.items import Row, read_row, shows, slot_name
from statestore.store import Item, Query
from statestore.writes import put_back


@dataclass(frozen=True, slots=True, kw_only=True)
class SettledChange:
    """The outcome for an open change, and the touch to repeat: None where the overlay has covered the change."""

    outcome: SettleOutcome
    touch: Touch | None


def settle(
    change: OpenChange, entity_slots: Collection[int], orders: Collection[int] = frozenset()
) -> Step[SettledChange]:
    """Looks whether the indexes show the row of `change`. The touch names every key that the row has or had. `entity_slots`: the
    slots that its entity has now; `orders`: those with an order, where only the row itself says its place."""
    unseen = [place for place in change.places if place[0] in entity_slots and place not in change.seen]
    in_order = {slot: key for slot, key in unseen if slot in orders}
    lacking = yield from _lacking(change, [place for place in unseen if place[0] not in in_order])
    if not (lacking or in_order or change.again):
        return _shown(change)
    (item,) = yield (change.key,)
    row, row_slots = _row_now(change, item)
    if in_order and item is not None:
        there = {slot: key for slot, key in row_slots if slot in in_order}
        missing = yield from _lacking(change, there.items(), row.names)
        in_order = {
            slot: there.get(slot, key) for slot, key in in_order.items() if slot in missing or slot not in there
        }
    lacking |= in_order
    if not lacking and not change.again:
        return _shown(change)
    slots = tuple(place for place in row_slots if place[0] in entity_slots)
    if lacking and item is not None and change.slots and not slots:
        held = [slot for slot, _ in change.slots if slot in entity_slots]
        yield (put_back(row, held),)  # refused: the next time finds the row as it is then
        slots = unproven_slots(change, slots)
    moved = [(slot, key) for slot, key in slots if lacking.get(slot, key) != key]
    if len(moved) == len(lacking) and not change.again and not (yield from _lacking(change, moved)):
        return _shown(change)
    earlier = (change.former | set(change.slots)) - {*row.slots.items(), *row.edges}
    former_keys = frozenset((slot, key) for slot, key in earlier if not keys.is_no_key(key))
    touch = Touch(entity=change.entity, row=row, former_keys=former_keys, changed=None, outcome="replayed")
    shown = not lacking or item is None
    return SettledChange(outcome=SettleOutcome(change, row.version_in_indexes(), slots, shown), touch=touch)


def _lacking(
    change: OpenChange, places: Iterable[SlotKey], names: Mapping[int, str] = MappingProxyType({})
) -> Step[dict[int, str]]:
    """Asks each of these slots for the row under this key; returns those that do not show it at the change's version or newer. A
    slot that it has left may also show nothing. `names`: of the row, in slots with an order."""
    probes = {
        place: Query(slot_name(place[0]), place[1], row=change.key, name=names.get(place[0], "")) for place in places
    }
    pages = (yield tuple(Lookup(probe, overlay=False) for probe in probes.values())) if probes else ()
    asked = zip(probes.items(), pages, strict=True)
    return dict(
        place
        for (place, probe), page in asked
        if not (shows(probe, page, change.version) or (place in change.gone and not page.items))
    )


def _shown(change: OpenChange) -> SettledChange:
    """The outcome of a change that every slot shows, and that needs nothing else."""
    return SettledChange(outcome=SettleOutcome(change, change.version, change.slots, True), touch=None)


def _row_now(change: OpenChange, item: Item | None) -> tuple[Row, tuple[tuple[int, str], ...]]:
    """The row of a change as it is in the table, and its slots. A row that is gone keeps version and slots of the change."""
    if item is None:
        gone = Row(key=change.key, version=change.version, columns=None, more={}, slots={}, pending=())
        return gone, change.slots
    row = read_row(item)
    return row, tuple(sorted(row.slots.items()))
