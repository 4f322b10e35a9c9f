"""Writes one net change to the table, and says what it may have touched.

    1. One conditional write: done where nothing stands, or something older than the batch's first offset in that partition
       (what stands there was published by a batch that committed). The write itself keeps the previous keys.
    2. Refused, and what stands there is this version or newer: nothing to write, unless newer changes left out columns that
       this one knows (only a dead letter's replay can be ahead of it like that); its current and pending keys are touched, for
       a crash may have swallowed their documents. All used columns count as changed.
    3. Refused, and what stands there is older: an attempt that never committed left it. A second write, under the version
       seen, merges: former keys from the batch's start on stay pending. Refused again: back to 2 or 3.

A value that the source left out (unavailable) stays as it stands, and dates from there: the row is read first, and step 3
writes it.
"""

from processor.model.change import UNAVAILABLE, Change
from processor.model.images import filled_image, image_of, version_of
from processor.model.plan import EntityPlan
from processor.model.step import Step
from processor.model.touch import MORE, How, Oversized, Touch
from statestore import keys
from statestore.items import Held, Image, Row, merge_image, read_row, write_image, written_row
from statestore.keys import Key
from statestore.store import Done, Refused, TooLarge


def write_state(change: Change, plan: EntityPlan, *, start: str, forget: int) -> Step[Touch | Oversized]:
    """Writes `change`. `start`: the version of the batch's first offset in the change's partition. `forget`: when a delete
    marker may be forgotten, in seconds since 1970."""
    sk = keys.spell(change.key)
    if sk is None:
        raise ValueError(f"a {change.entity} without a key reached the table")
    key = plan.key(sk)
    if change.row is not None and UNAVAILABLE in change.row.values():
        (item,) = yield (key,)
        seen = read_row(item) if item is not None else None
    else:
        image = image_of(change, plan, key, None, forget)
        (outcome,) = yield (write_image(image, below=start),)
        if isinstance(outcome, Done):
            return _applied(change, plan, image, read_row(outcome.old) if outcome.old is not None else None)
        if isinstance(outcome, TooLarge):
            return Oversized(change=change)
        seen = read_row(outcome.current) if outcome.current is not None else None
    return (yield from _merge(change, plan, key, seen, start, forget))


def _merge(
    change: Change, plan: EntityPlan, key: Key, seen: Row | None, start: str, forget: int
) -> Step[Touch | Oversized]:
    while True:
        how: How = "applied"
        if seen is None or seen.version < version_of(change):
            image = image_of(change, plan, key, seen, forget)
        else:
            how = "replayed" if seen.version == version_of(change) else "superseded"
            fills = filled_image(change, plan, seen)
            if fills is None:
                left = _pending(seen, start) - seen.keys()
                return Touch(entity=change.entity, row=seen, left=left, changed=None, how=how)
            image = fills
        (outcome,) = yield (merge_image(image, seen, keep_from=start),)
        match outcome:
            case TooLarge():
                return Oversized(change=change)
            case Done():
                if seen is None or seen.version < start:  # as one write would have found it
                    return _applied(change, plan, image, seen)
                row = written_row(image, seen)
                left = (seen.keys() | _pending(seen, start)) - row.keys()
                return Touch(entity=change.entity, row=row, left=left, changed=None, how=how)
            case Refused(current):
                seen = read_row(current) if current is not None else None


def _pending(row: Row, start: str) -> frozenset[Held]:
    return frozenset((p.slot, p.key) for p in row.pending if p.version >= start)


def _applied(change: Change, plan: EntityPlan, image: Image, old: Row | None) -> Touch:
    row = written_row(image, old)
    left = old.keys() - row.keys() if old is not None else frozenset()
    return Touch(change.entity, row, left, _changed(plan, old, row), "applied")


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
