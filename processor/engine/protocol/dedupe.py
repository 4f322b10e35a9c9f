"""A batch's changes of one key in one partition become one net change: the last by position, with unavailable values
filled from earlier ones.

Promises: order is delivery order, so a record that Spark reads twice or out of order counts at its offset. The step
does not read the table: for values that stay unavailable here, the write keeps the stored ones.
"""

from collections.abc import Iterable
from typing import NamedTuple

from processor.values.record import UNAVAILABLE, Change


class NetChange(NamedTuple):
    """The net change of a key, and the changes that it combines, oldest first."""

    change: Change
    changes: tuple[Change, ...]


def dedupe(changes: Iterable[Change]) -> list[NetChange]:
    """One net change per key and partition, in the order in which they first appear. Offsets of two partitions have no
    common order."""
    by_key: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        by_key.setdefault((change.record.partition, change.entity, *change.key), []).append(change)
    return [net_change(of_key) for of_key in by_key.values()]


def net_change(changes: list[Change]) -> NetChange:
    """The net change of changes of one key in one partition, in any order."""
    if len(changes) > 1:
        changes = sorted(changes, key=lambda change: (change.record.epoch, change.record.offset))
    last = changes[-1]
    if len(changes) > 1 and last.row is not None and UNAVAILABLE in last.row.values():
        last = last._replace(row=_filled(changes), since=_since(changes))
    return NetChange(last, tuple(changes))


def _filled(changes: list[Change]) -> dict[str, object]:
    """The row of the last change with the values that earlier ones sent. After a delete no value is left, so null fills."""
    row: dict[str, object] = {}
    unknown: object = UNAVAILABLE
    for change in changes:
        if change.row is None:
            row, unknown = {}, None
        else:
            row = {
                name: row.get(name, unknown) if value is UNAVAILABLE else value for name, value in change.row.items()
            }
    return row


def _since(changes: list[Change]) -> dict[str, tuple[int, int]]:
    """The positions of the changes that brought the filled columns: those that the last change did not send."""
    brought: dict[str, tuple[int, int]] = {}
    for change in changes:
        known, brought = brought, {}
        for name, value in (change.row or {}).items():
            if value is not UNAVAILABLE:
                brought[name] = change.record.epoch, change.record.offset
            elif name in known:
                brought[name] = known[name]
    last = changes[-1].row or {}
    return {name: at for name, at in brought.items() if last[name] is UNAVAILABLE}
