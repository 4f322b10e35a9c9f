"""Writes one net change to the table, and says what it may have touched.

    1. One conditional write: done where nothing stands, or something older than the batch's first offset in that partition
       (what stands there was published by a batch that committed). The write itself keeps the previous keys.
    2. Refused, and what stands there is this version or newer: nothing to write; its current and pending keys are touched, for
       a crash may have swallowed their documents. All used columns count as changed.
    3. Refused, and what stands there is older: an attempt that never committed left it. A second write, under the version
       seen, merges: former keys from the batch's start on stay pending. Refused again: back to 2 or 3.

A value that the source left out (unavailable) stays as it stands. Where the row's keys cannot be spelt without it, or it is an
undeclared column, the row is read first and step 3 writes it.
"""

from collections.abc import Mapping
from typing import Any, Literal

from processor.model.change import UNAVAILABLE, Change
from processor.model.plan import EntityPlan
from processor.model.step import Step
from processor.model.touch import MORE, Oversized, Touch
from statestore import keys
from statestore.items import Image, Row, merge_image, read_row, spell_version, write_image, written_row
from statestore.keys import Key
from statestore.store import Done, Refused, TooLarge


def write_state(change: Change, plan: EntityPlan, *, start: str, forget: int) -> Step[Touch | Oversized]:
    """Writes `change`. `start`: the version of the batch's first offset in the change's partition. `forget`: when a delete
    marker may be forgotten, in seconds since 1970."""
    sk = keys.spell(change.key)
    if sk is None:
        raise ValueError(f"a {change.entity} without a key reached the table")
    key = plan.key(sk)
    if _needs_reading(change, plan):
        (item,) = yield (key,)
        seen = read_row(item) if item is not None else None
    else:
        image = _image(change, plan, key, None, forget)
        (outcome,) = yield (write_image(image, below=start),)
        match outcome:
            case TooLarge():
                return Oversized(change=change)
            case Done(old):
                return _applied(change, plan, image, read_row(old) if old is not None else None)
            case Refused(current):
                seen = read_row(current) if current is not None else None
    return (yield from _merge(change, plan, key, seen, start, forget))


def _merge(
    change: Change, plan: EntityPlan, key: Key, seen: Row | None, start: str, forget: int
) -> Step[Touch | Oversized]:
    while True:
        version = spell_version(change.record.epoch, change.record.offset)
        if seen is not None and seen.version >= version:
            how: Literal["replayed", "superseded"] = "replayed" if seen.version == version else "superseded"
            left = _pending(seen, start) - seen.keys()
            return Touch(entity=change.entity, row=seen, left=left, changed=None, how=how)
        image = _image(change, plan, key, seen, forget)
        (outcome,) = yield (merge_image(image, seen, keep_from=start),)
        match outcome:
            case TooLarge():
                return Oversized(change=change)
            case Done():
                row = written_row(image, seen)
                left = ((seen.keys() | _pending(seen, start)) if seen is not None else frozenset()) - row.keys()
                return Touch(entity=change.entity, row=row, left=left, changed=None, how="applied")
            case Refused(current):
                seen = read_row(current) if current is not None else None


def _pending(row: Row, start: str) -> frozenset[tuple[int, str]]:
    return frozenset((p.slot, p.key) for p in row.pending if p.version >= start)


def _applied(change: Change, plan: EntityPlan, image: Image, old: Row | None) -> Touch:
    row = written_row(image, old)
    left = old.keys() - row.keys() if old is not None else frozenset()
    return Touch(entity=change.entity, row=row, left=left, changed=_changed(plan, old, row), how="applied")


def _changed(plan: EntityPlan, old: Row | None, row: Row) -> frozenset[str] | None:
    """The used columns that differ; None when the row came or went."""
    before, after = old.columns if old is not None else None, row.columns
    if before is None or after is None:
        return frozenset() if before is after else None
    used = plan.declared if plan.used is None else plan.used
    changed = {column for column in used if before.get(column) != after.get(column)}
    if plan.used is None and old is not None and old.more != row.more:
        changed.add(MORE)
    return frozenset(changed)


def _needs_reading(change: Change, plan: EntityPlan) -> bool:
    if change.row is None or UNAVAILABLE not in change.row.values():
        return False
    out = {name for name, value in change.row.items() if value is UNAVAILABLE}
    return not out <= set(plan.declared) or any(out.intersection(columns) for columns in plan.slots.values())


def _image(change: Change, plan: EntityPlan, key: Key, seen: Row | None, forget: int) -> Image:
    version = spell_version(change.record.epoch, change.record.offset)
    row = change.row
    if row is None:
        slots: dict[int, str | None] = dict.fromkeys(plan.slots)
        return Image(
            key=key, version=version, columns=None, more={}, declared=plan.declared, slots=slots, forget=forget
        )
    columns: dict[str, Any] = {name: row.get(name) for name in plan.declared}
    if UNAVAILABLE in row.values():
        stood: Mapping[str, Any] = seen.columns if seen is not None and seen.columns is not None else {}
        columns = {
            n: stood[n] if v is UNAVAILABLE else v for n, v in columns.items() if v is not UNAVAILABLE or n in stood
        }
    more: dict[str, Any] = {}
    if not row.keys() <= plan.entity.columns.keys():
        rest = {name: value for name, value in row.items() if name not in plan.entity.columns}
        before = seen.more if seen is not None else {}
        more = {name: before.get(name) if value is UNAVAILABLE else value for name, value in rest.items()}
    spelt = {k: keys.spell([columns.get(c) for c in held]) for k, held in plan.slots.items()}
    return Image(key=key, version=version, columns=columns, more=more, declared=plan.declared, slots=spelt)
