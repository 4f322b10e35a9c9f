"""Writes one net change to the table, and returns the row that it touched.

    1. One conditional write. It succeeds where there is no row, or a row older than the batch's first offset in that
       partition (a batch that committed has published that row). The write itself keeps the previous keys.
    2. Refused, and the row in the table has this version or a newer one: the step writes nothing, unless newer changes
       did not send columns that this change knows (only the replay of a dead letter causes that). The row's current and
       pending keys are touched, because a crash may have swallowed their documents. All used columns count as changed.
    3. Refused, and the row in the table is older: an attempt that never committed wrote it. A second write, under the
       version seen, merges: former keys from the batch's start on stay pending. Refused again: back to 2 or 3.

The first write is also refused over a row of the same epoch from another partition. Then the step writes nothing, and
the change becomes a dead letter.

A value that the source did not send (unavailable) keeps its stored value and the version of that value: the step reads
the row first, and 3 writes it. Unless the change deletes the row, the step also reads it first where many updates of the
entity change nothing that the indexes show. Over a row that a committed batch has published, 3 then leaves alone what the
indexes show, so such an update costs no write of an index. A write that has not read the row always counts as a change
there: the same content as before is no proof, because the row may have had another one in between.

This read is weak. If its answer is old, the store refuses the write, and returns the row. Where the answer leads to no write,
the step reads the row again, strongly consistent.

A delete of a row that every index has shown, and that has no open change, takes the row out of the indexes: each drops the entry,
and shows no other in its place. A merge never does this, because nobody may know what the indexes have shown of its row.
"""

from collections.abc import Callable
from typing import NamedTuple

from processor.plan.declared_columns import declared_row
from processor.plan.plan import EntityPlan
from processor.plan.row_image import filled_image, image_of, refuse_stray, version_of
from processor.plan.step import Step, WeakKey
from processor.plan.touch import UNDECLARED, RefusedChange, Touch, TouchOutcome, oversized
from processor.records.record import UNAVAILABLE, Change
from statestore import keys
from statestore.items import Image, JoinKey, Row, written_row
from statestore.keys import Key
from statestore.row_writes import keep_indexed, leaves_room, merge_image, write_image
from statestore.store import Done, Item, Refused, TooLarge, Write

IsShown = Callable[[Key], bool]


def unknown(_: Key) -> bool:
    """Nobody knows what the indexes have shown of a row."""
    return False


def write_state(
    change: Change, plan: EntityPlan, *, start: str, expires_at: int, reads: bool = False, is_shown: IsShown = unknown
) -> Step[Touch | RefusedChange]:
    """Writes `change`. `start`: the version of the batch's first offset in the change's partition. `expires_at`: when
    DynamoDB may drop a delete marker, in seconds since 1970. `reads`: the step reads the row first. `is_shown`: whether
    every index has shown the row that the table has."""
    sk = keys.encode(change.key)
    if sk is None:
        raise ValueError(f"a {change.entity} without a key reached the table")
    key = plan.key(sk)
    if change.row is not None and (reads or UNAVAILABLE in change.row.values()):
        (item,) = yield (WeakKey(key),)
        return (yield from _merge(change, plan, key, _row(item, plan), start, expires_at, sure=False))
    image = image_of(change, plan, key, None, expires_at)
    if change.row is None and is_shown(key):
        image = image._replace(slots={}, emptied=tuple(plan.slots))
    write = write_image(image, below=start)
    if not leaves_room(image, write):
        return oversized(change)
    (answer,) = yield (write,)
    if isinstance(answer, Done):
        return _applied(change, plan, image, _row(answer.old, plan))
    if isinstance(answer, TooLarge):
        return oversized(change)
    return (yield from _merge(change, plan, key, _row(answer.current, plan), start, expires_at, sure=True))


class _Merge(NamedTuple):
    """A write over the row that the step saw, the image that it makes, and how the write ends."""

    write: Write
    image: Image
    outcome: TouchOutcome


def _merge(
    change: Change, plan: EntityPlan, key: Key, seen: Row | None, start: str, expires_at: int, *, sure: bool
) -> Step[Touch | RefusedChange]:
    """Merges over the row `seen`. `sure`: whether the table has, or just had, this row."""
    while True:
        planned = _plan_merge(change, plan, key, seen, start, expires_at)
        if isinstance(planned, _Merge):
            (answer,) = yield (planned.write,)
            if isinstance(answer, Done):
                return _merged(change, plan, planned, seen, start)
            if isinstance(answer, Refused):
                seen, sure = _row(answer.current, plan), True
                continue
            planned = oversized(change)
        if sure:
            return planned
        (item,) = yield (key,)
        seen, sure = _row(item, plan), True


def _plan_merge(
    change: Change, plan: EntityPlan, key: Key, seen: Row | None, start: str, expires_at: int
) -> _Merge | Touch | RefusedChange:
    """The write over the row `seen`, or the end of the step without a write."""
    if refused := refuse_stray(change, seen):
        return refused
    outcome: TouchOutcome = "applied"
    if seen is None or seen.version < version_of(change):
        image = image_of(change, plan, key, seen, expires_at)
        if seen is not None and seen.version < start:
            image = keep_indexed(image, seen)
    else:
        outcome = "replayed" if seen.version == version_of(change) else "superseded"
        fills = filled_image(change, plan, seen)
        if fills is None:
            former_keys = _pending(seen, start) - seen.keys()
            return Touch(change.entity, seen, former_keys, None, outcome)
        image = fills
    write = merge_image(image, seen, keep_from=start)
    return _Merge(write, image, outcome) if leaves_room(image, write) else oversized(change)


def _merged(change: Change, plan: EntityPlan, done: _Merge, seen: Row | None, start: str) -> Touch:
    """The touch of a merge that the store did."""
    if seen is None or seen.version < start:  # as if the first write had succeeded
        return _applied(change, plan, done.image, seen)
    row = written_row(done.image, seen)
    former_keys = (seen.keys() | _pending(seen, start)) - row.keys()
    return Touch(change.entity, row, former_keys, None, done.outcome)


def _row(item: Item | None, plan: EntityPlan) -> Row | None:
    return None if item is None else declared_row(item, plan)


def _pending(row: Row, start: str) -> frozenset[JoinKey]:
    return frozenset((p.slot, p.key) for p in row.pending if p.version >= start)


def _applied(change: Change, plan: EntityPlan, image: Image, old: Row | None) -> Touch:
    row = written_row(image, old)
    former_keys = old.keys() - row.keys() if old is not None else frozenset()
    return Touch(change.entity, row, former_keys, _changed(plan, old, row), "applied")


def _changed(plan: EntityPlan, old: Row | None, row: Row) -> frozenset[str] | None:
    """The used columns that differ; None when the row came or went."""
    before, after = old.columns if old is not None else None, row.columns
    if before is None or after is None:
        return frozenset() if before is after else None
    used = plan.declared if plan.used is None else plan.used
    changed = {column for column in used if before.get(column) != after.get(column)}
    if plan.used is None and old is not None and old.more != row.more:
        changed.add(UNDECLARED)
    return frozenset(changed)
