"""Replays one change that was a dead letter, at any time after the changes around it.

    1. Read the row by key, and the keys that earlier attempts noted. Nothing to do where one of them has ended.
    2. Note every key that the row has, had, and will have, and open its change, both durable before the row is written.
    3. Write under the version seen, dropping no pending key: what stands there may be of a batch that never committed. What is
       older than the change becomes its image; what is newer only gets the columns that later changes left out.
       Refused: again from 2, over what stands there now.

Finds no roots and publishes nothing: the change that it opens is settled like every other.
"""

from dataclasses import dataclass
from typing import Literal

from processor.model.change import Change
from processor.model.images import filled_image, image_of, version_of
from processor.model.open_changes import Entry, durable, entry_of
from processor.model.plan import EntityPlan
from processor.model.replays import has_ended, noted_keys
from processor.model.step import Step
from statestore import keys
from statestore.items import Image, Row, merge_image, read_row, written_row
from statestore.keys import Key
from statestore.store import Refused, TooLarge


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a replay ended, and the change that it opened, if any; `row`: as it stands, where it was not found ended before."""

    outcome: Literal["applied", "superseded", "oversized"]
    opened: Entry | None
    row: Row | None = None


def replay(change: Change, plan: EntityPlan, *, note: Key, opens: Key, forget: int) -> Step[Ended]:
    """Replays `change`. `note`: the item that remembers the replay; `opens`: the durable item for the change that it opens.
    `forget`: when a delete marker may be forgotten, in seconds since 1970."""
    sk = keys.spell(change.key)
    if sk is None:
        raise ValueError(f"a {change.entity} without a key reached the table")
    key, version = plan.key(sk), version_of(change)
    stands, before = yield (key, note)
    if has_ended(before):
        return Ended(outcome="superseded", opened=None)
    former = noted_keys(before)
    opened = None
    while True:
        seen = read_row(stands) if stands is not None else None
        image: Image | None
        if seen is None or seen.version < version:
            image = image_of(change, plan, key, seen, forget)
            row = written_row(image, seen)
        else:
            image = filled_image(change, plan, seen)
            row = seen if image is None else written_row(image, seen)
        if image is None and not former:
            return Ended(outcome="superseded", opened=opened)
        if seen is not None:
            former |= seen.keys() | {(p.slot, p.key) for p in seen.pending}
        opened = entry_of(change.entity, row, former - row.keys())
        yield (durable(note, [opened]), durable(opens, [opened]))
        if image is None:
            return Ended(outcome="superseded", opened=opened, row=row)
        (outcome,) = yield (merge_image(image, seen, keep_from=""),)
        match outcome:
            case TooLarge():
                return Ended(outcome="oversized", opened=opened)
            case Refused(current):
                stands, former = current, former | row.keys()
            case _:
                return Ended(outcome="applied" if image.version == version else "superseded", opened=opened, row=row)
