"""The open changes of one row, as a reader sees them: what an index may not show yet."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from processor.inspect.rows import FormerTopics, origin_at
from processor.plan.plan import EntityPlan
from processor.progress.overlay import SegmentGroup
from processor.progress.segment import OpenChange
from statestore.items import slot_name
from statestore.keys import Key


def open_changes_of(row: Key, groups: Sequence[SegmentGroup]) -> list[OpenChange]:
    """The open changes of the row with this key, the newest first."""
    found = {one for group in groups for one in group.changes(row) if one.key == row}
    return sorted(found, key=lambda one: one.version, reverse=True)


def open_change_object(change: OpenChange, entity: EntityPlan, topics: FormerTopics) -> dict[str, Any]:
    """An open change as JSON values, with the record that made it."""
    return {
        "origin": asdict(origin_at(change.version, entity, topics)),
        "slots": {slot_name(slot): key for slot, key in change.slots},
        "former": sorted((slot_name(slot), key) for slot, key in change.former if isinstance(slot, int)),
    }
