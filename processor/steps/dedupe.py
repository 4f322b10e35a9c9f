"""A batch's changes of one key in one partition become one net change: the last by position, with unavailable values
filled from earlier ones.

Promises: order is delivery order, so a record that Spark reads twice or out of order counts at its offset. The step
does not read the table: for values that stay unavailable here, the write keeps the stored ones.
"""

from collections.abc import Iterable
from typing import NamedTuple

from processor.records.record import UNAVAILABLE, Change


class NetChange(NamedTuple):
    """The net change of a key, and the changes that it combines, oldest first."""

    change: Change
    parts: tuple[Change, ...]


def dedupe(changes: Iterable[Change]) -> list[NetChange]:
    """One net change per key and partition, in the order in which they first appear. Offsets of two partitions have no
    common order."""
    by_key: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        by_key.setdefault((change.record.partition, change.entity, *change.key), []).append(change)
    return [net_change(parts) for parts in by_key.values()]


def net_change(parts: list[Change]) -> NetChange:
    """The net change of changes of one key in one partition, in any order."""
    if len(parts) > 1:
        parts = sorted(parts, key=lambda change: (change.record.epoch, change.record.offset))
    last = parts[-1]
    if len(parts) > 1 and last.row is not None and UNAVAILABLE in last.row.values():
        last = last._replace(row=_filled(parts), since=_since(parts))
    return NetChange(last, tuple(parts))


def _filled(parts: list[Change]) -> dict[str, object]:
    row: dict[str, object] = {}
    for part in parts:
        if part.row is None:
            row = {}
        else:
            row = {name: row.get(name, value) if value is UNAVAILABLE else value for name, value in part.row.items()}
    return row


def _since(parts: list[Change]) -> dict[str, tuple[int, int]]:
    """The positions of the changes that brought the filled columns: those that the last change did not send."""
    brought: dict[str, tuple[int, int]] = {}
    for part in parts:
        known, brought = brought, {}
        for name, value in (part.row or {}).items():
            if value is not UNAVAILABLE:
                brought[name] = part.record.epoch, part.record.offset
            elif name in known:
                brought[name] = known[name]
    last = parts[-1].row or {}
    return {name: at for name, at in brought.items() if last[name] is UNAVAILABLE}
