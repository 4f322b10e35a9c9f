"""Erases one row: in place of it remains a delete marker without any value but the key.

    1. Read the row and its erasure. Note from which versions on its records count as new: from then on no batch applies an older
       one.
    2. Note every join key that the row has or had, and open the change. Both are durable before the step writes the row.
    3. Write the marker under the version seen. It keeps no former keys, because the open change has them. Refused: again from 2,
       with the row that the refusal returned.

The marker is above every record before the erasure, so a task of an earlier run that still sleeps cannot write the row again.
Like a replay, the step finds no roots and publishes nothing: the driver settles the change that it opens.
"""

from dataclasses import dataclass

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.row_image import deleted_image
from processor.engine.plan.step import RowKeys, Step
from processor.engine.protocol.erasures import Erasure, erasure_key, read_erasure, write_erasure
from processor.engine.protocol.segments import OpenChange, open_change, write_changes
from statestore.items import Image, JoinKey, Row, encode_version, read_row, written_row
from statestore.keys import Key
from statestore.store import Refused
from statestore.writes import write_bare_marker

_NO_VERSION = encode_version(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRow:
    """An erased row. `before`: as it was, None where the table had none. `opened`: the change that the step opened, and that
    settling closes. `row`: as the table has it now."""

    before: Row | None
    row: Row
    opened: OpenChange

    @property
    def row_keys(self) -> RowKeys:
        """The row and its former keys."""
        return self.row, self.opened.former


def erase(
    key: Key, plan: EntityPlan, erasure: Erasure, *, former: frozenset[JoinKey], opens: Key, expires_at: int
) -> Step[ErasedRow]:
    """Erases the row with this key. `erasure`: which records it covers. `former`: the join keys of an open change of the row.
    `opens`: the key of the durable item for the change that the step opens. `expires_at`: when DynamoDB may drop the marker,
    in seconds since 1970."""
    note = erasure_key(plan.name, key.sk)
    stored, noted = yield (key, note)
    erasure = erasure.after(read_erasure(noted))
    yield (write_erasure(note, erasure),)
    before = read_row(stored) if stored is not None else None
    while True:
        if stored is None:
            row = Row(key=key, version=_NO_VERSION, columns=None, more={}, slots={}, pending=())
        else:
            seen = read_row(stored)
            former |= seen.keys() | {(p.slot, p.key) for p in seen.pending}
            marker = _marker(seen, plan, erasure, expires_at)
            row = written_row(marker, None)
        opened = open_change(plan.name, row, former - row.keys())
        yield (write_changes(opens, [opened]),)
        if stored is None:
            return ErasedRow(before=before, row=row, opened=opened)
        (outcome,) = yield (write_bare_marker(marker, stored),)
        if not isinstance(outcome, Refused):
            return ErasedRow(before=before, row=row, opened=opened)
        stored = outcome.current


def _marker(seen: Row, plan: EntityPlan, erasure: Erasure, expires_at: int) -> Image:
    marker = deleted_image(plan, seen.key, erasure.marker_version(seen.version), expires_at)
    return marker._replace(layout=max(plan.layout, seen.layout))
