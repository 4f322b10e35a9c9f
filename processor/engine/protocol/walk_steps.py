"""The steps of walks. `fill` fills one stored row: gives it the slots and edges of the entity's layout, shows in the indexes
all that products read there, and asks the indexes whether they show it.

    1. A row that follows an older layout, or shows too few columns in the indexes, is written under the version seen,
       with a count behind its version. Refused: the same with the row that the refusal returned. Live changes are
       newer than any fill, so the fill never overtakes them.
    2. To probe: a query in each slot, pinned to the row. The row is seen if every index shows it at the version in indexes
       that the fill found, or at a newer one.

A fill opens no change and publishes nothing. No product reads a slot before the fill of its entity is done.

`truncate_row` deletes one stored row that is older than a truncate of its table.

    1. A row that is older becomes a delete marker with the truncate's version, under the version seen. The write keeps the
       previous keys, as a delete does. Refused: the same with the row that the refusal returned.
    2. The step touches again a marker that a truncate since `goal.since` has left: a crash may have swallowed its documents.
    3. A newer row stays, and so does a marker from before: its documents are published.

An older change of the row then finds the marker, and does not bring the row back.
"""

from typing import NamedTuple

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import declared_row, deleted_image, layout_image
from processor.engine.plan.step import OVERSIZED, Lookup, RowKeys, Step, Touch
from processor.engine.protocol.walks import TruncateGoal
from statestore.errors import Terminal
from statestore.items import JoinKey, Row, shows, slot_name, written_row
from statestore.keys import Key
from statestore.store import Done, Equals, Item, Query, Refused, TooLarge
from statestore.writes import leaves_room, merge_image, write_image


class FilledRow(NamedTuple):
    """A row after its fill, None where it is gone. `former_keys`: join keys that it had before; `written`: whether the fill
    wrote it. `unseen`: the version that an index has yet to show, else empty. `refused`: why the row cannot be filled."""

    row: Row | None
    former_keys: frozenset[JoinKey] = frozenset()
    written: bool = False
    unseen: str = ""
    refused: str = ""

    @property
    def row_keys(self) -> RowKeys | None:
        """The row and its former keys, where the fill wrote it."""
        return (self.row, self.former_keys) if self.row is not None and self.written else None


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


def truncate_row(item: Item, plan: EntityPlan, goal: TruncateGoal, *, expires_at: int) -> Step[Touch | None]:
    """Deletes the row that `item` holds; returns None for a row that stays as it is. `expires_at`: when DynamoDB may drop the
    marker, in seconds since 1970."""
    row: Row | None = declared_row(item, plan)
    while row is not None and row.version <= goal.version:
        if row.columns is None:
            pending = frozenset((p.slot, p.key) for p in row.pending)
            touched = Touch(plan.name, row, pending, None, "replayed")
            return touched if row.version >= goal.since else None
        image = deleted_image(plan, row.key, goal.version, expires_at)
        write = write_image(image, below=goal.version)._replace(when=Equals("_v", row.version))
        (answer,) = yield (write,)
        match answer:
            case Done():
                return Touch(plan.name, written_row(image, row), row.keys(), None, "applied")
            case Refused(current):
                row = declared_row(current, plan) if current is not None else None
            case TooLarge():
                raise Terminal(
                    f"{row.key.pk}: the delete marker of a row is larger than an item may be: please report this"
                )
    return None
