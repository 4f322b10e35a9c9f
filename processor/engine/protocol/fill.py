"""Fills one stored row: gives it the slots and edges of the entity's layout, shows in the indexes all that products read there,
and asks the indexes whether they show it.

    1. A row that follows an older layout, or shows too few columns in the indexes, is written under the version seen,
       with a count behind its version. Refused: the same with the row that the refusal returned. Live changes are
       newer than any fill, so the fill never overtakes them.
    2. To probe: a query in each slot, pinned to the row. The row is seen if every index shows it at the version in indexes
       that the fill found, or at a newer one.

A fill opens no change and publishes nothing. No product reads a slot before the fill of its entity is done.
"""

from typing import NamedTuple

from processor.engine.plan.declared_columns import declared_row
from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import layout_image
from processor.engine.plan.step import Lookup, Step
from processor.engine.plan.touch import OVERSIZED
from statestore.items import JoinKey, Row, shows, slot_name, written_row
from statestore.keys import Key
from statestore.store import Item, Query, Refused, TooLarge
from statestore.writes import leaves_room, merge_image


class FilledRow(NamedTuple):
    """A row after its fill, None where it is gone. `former_keys`: join keys that it had before; `written`: whether the fill
    wrote it. `unseen`: the version that an index has yet to show, else empty. `refused`: why the row cannot be filled."""

    row: Row | None
    former_keys: frozenset[JoinKey] = frozenset()
    written: bool = False
    unseen: str = ""
    refused: str = ""


def fill(item: Item | None, plan: EntityPlan, *, probe: bool, version: str = "") -> Step[FilledRow]:
    """Fills the row that `item` holds. `version`: which the indexes must show, empty for that of the row."""
    before = row = declared_row(item, plan) if item is not None else None
    written = False
    while row is not None and (image := layout_image(plan, row)):
        write = merge_image(image, row)
        outcome = (yield (write,))[0] if leaves_room(image, write) else TooLarge()
        match outcome:
            case TooLarge():
                return FilledRow(row, refused=OVERSIZED)
            case Refused(current):
                row = declared_row(current, plan) if current is not None else None
            case _:
                row, written = written_row(image, row), True
    former_keys = before.keys() - row.keys() if before is not None and row is not None else frozenset()
    if not probe or row is None:
        return FilledRow(row, former_keys, written)
    version = version or row.version_in_indexes()
    queries = [
        Query(slot=slot_name(slot), value=key, row=row.key) for slot, key in row.slots.items() if slot in plan.slots
    ]
    pages = yield tuple(Lookup(query, overlay=False) for query in queries)
    seen = all(shows(query, page, version) for query, page in zip(queries, pages, strict=True))
    return FilledRow(row, former_keys, written, "" if seen else version)


def fill_again(key: Key, plan: EntityPlan, *, version: str) -> Step[FilledRow]:
    """Fills a row that the indexes did not show yet at this version."""
    (item,) = yield (key,)
    return (yield from fill(item, plan, probe=True, version=version))
