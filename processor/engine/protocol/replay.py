"""Replays one change that was a dead letter, at any time after the changes around it.

    1. Read the row by key, and the keys that earlier attempts noted. Stop if an earlier attempt has ended.
    2. Note every key that the row has, had, and will have, and open the change. Both are durable before the step writes
       the row.
    3. Write under the version seen, and drop no pending key: a batch that never committed may have written the row. An
       older row becomes the image of the change. A newer row only gets the columns that later changes did not send.
       Refused: again from 2, with the row that the refusal returned.

The step finds no roots and publishes nothing: the driver settles the change that it opens like every other.
"""

from dataclasses import dataclass
from typing import Literal

from processor.engine.plan.declared_columns import declared_row
from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import filled_image, image_of, refuse_stray, version_of
from processor.engine.plan.step import Step
from processor.engine.plan.touch import OVERSIZED
from processor.engine.protocol.replays import has_ended, note_keys, noted_keys
from processor.engine.protocol.segment import OpenChange, open_change, write_changes
from processor.values.record import Change
from statestore import keys
from statestore.items import Image, Row, written_row
from statestore.keys import Key
from statestore.store import Refused, TooLarge
from statestore.writes import leaves_room, merge_image


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedChange:
    """How a replay ended, and the change that it opened, if any. `row`: the row as the table has it now, None where an
    earlier attempt had ended the replay. `reason`: why the step refused the change."""

    outcome: Literal["applied", "superseded", "refused"]
    opened: OpenChange | None
    row: Row | None = None
    reason: str = ""


def replay(change: Change, plan: EntityPlan, *, note: Key, opens: Key, expires_at: int) -> Step[ReplayedChange]:
    """Replays `change`. `note`: the key of the item that remembers the replay; `opens`: the key of the durable item for
    the change that it opens. `expires_at`: when DynamoDB may drop a delete marker, and the note, in seconds since 1970."""
    sk = keys.encode(change.key)
    if sk is None:
        raise ValueError(f"a {change.entity} without a key reached the table")
    key, version = plan.key(sk), version_of(change)
    stored, noted = yield (key, note)
    if has_ended(noted):
        return ReplayedChange(outcome="superseded", opened=None)
    former = noted_keys(noted)
    opened = None
    while True:
        seen = declared_row(stored, plan) if stored is not None else None
        if refused := refuse_stray(change, seen):
            return ReplayedChange(outcome="refused", opened=opened, reason=refused.reason)
        image: Image | None
        if seen is None or seen.version < version:
            image = image_of(change, plan, key, seen, expires_at)._replace(replayed=True)
            row = written_row(image, seen)
        elif (fills := filled_image(change, plan, seen)) is None:
            image, row = None, seen
        else:
            image = fills._replace(replayed=True)
            row = written_row(image, seen)
        is_own = seen is not None and seen.version == version  # an earlier attempt wrote it, and the answer was lost
        if image is None and not (former or is_own):
            return ReplayedChange(outcome="superseded", opened=opened)
        if seen is not None:
            former |= seen.keys() | {(p.slot, p.key) for p in seen.pending}
        opened = open_change(change.entity, row, former - row.keys())
        yield (note_keys(note, opened, expires_at), write_changes(opens, [opened]))
        if image is None:
            return ReplayedChange(outcome="superseded", opened=opened, row=row)
        write = merge_image(image, seen)
        if not leaves_room(image, write):
            return ReplayedChange(outcome="refused", opened=opened, reason=OVERSIZED)
        (outcome,) = yield (write,)
        match outcome:
            case TooLarge():
                return ReplayedChange(outcome="refused", opened=opened, reason=OVERSIZED)
            case Refused(current):
                stored, former = current, former | row.keys()
            case _:
                return ReplayedChange(
                    outcome="applied" if image.version == version else "superseded", opened=opened, row=row
                )
