"""The open changes of one row, as a reader sees them: what an index may not show yet."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from processor.inspect.stored_row import FormerTopics, origin_at
from processor.plan.plan import EntityPlan
from processor.progress.overlay import SegmentGroup
from processor.progress.segment import OpenChange
from statestore.items import JoinKey, Row, slot_name


def open_changes_of(row: Row, groups: Sequence[SegmentGroup]) -> list[OpenChange]:
    """The open changes, the newest first: looked up under each key that the row has or had. A row without any key in a slot has
    none, since no join finds it."""
    waiting: set[JoinKey] = {*row.slots.items(), *((one.slot, one.key) for one in row.pending)}
    seen, found = set[JoinKey](), set[OpenChange]()
    while waiting:
        slot, key = at = waiting.pop()
        seen.add(at)
        if isinstance(slot, int):
            mine = {one for group in groups for one in group.changes((slot_name(slot), key)) if one.key == row.key}
            found |= mine
            waiting |= {former for one in mine for former in (*one.slots, *one.former)} - seen
    return sorted(found, key=lambda one: one.version, reverse=True)


def open_change_object(change: OpenChange, entity: EntityPlan, topics: FormerTopics) -> dict[str, Any]:
    """An open change as JSON values, with the record that made it."""
    return {
        "origin": asdict(origin_at(change.version, entity, topics)),
        "slots": {slot_name(slot): key for slot, key in change.slots},
        "former": sorted((slot_name(slot), key) for slot, key in change.former if isinstance(slot, int)),
    }
