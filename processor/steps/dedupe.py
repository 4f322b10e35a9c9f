"""A batch's changes of one key become one net change: the last by position, with unavailable values filled from earlier ones.

Promises: order is delivery order, so a record read twice or out of order counts where its offset stands. Does not look at the
table: what stays unavailable here is kept from the stored row by the write.
"""

from collections.abc import Iterable
from typing import NamedTuple

from processor.model.change import UNAVAILABLE, Change


class Net(NamedTuple):
    """The net change of a key, and the changes that it stands for, oldest first."""

    change: Change
    parts: tuple[Change, ...]


def dedupe(changes: Iterable[Change]) -> list[Net]:
    """One net change a key; keys in the order in which they were first seen."""
    by_key: dict[tuple[object, ...], list[Change]] = {}
    for change in changes:
        by_key.setdefault((change.entity, *change.key), []).append(change)
    return [net(parts) for parts in by_key.values()]


def net(parts: list[Change]) -> Net:
    """The net change of changes of one key, in whatever order they were read."""
    if len(parts) > 1:
        parts = sorted(parts, key=lambda change: (change.record.epoch, change.record.offset))
    last = parts[-1]
    if len(parts) > 1 and last.row is not None and UNAVAILABLE in last.row.values():
        last = last._replace(row=_filled(parts), since=_since(parts))
    return Net(last, tuple(parts))


def _filled(parts: list[Change]) -> dict[str, object]:
    row: dict[str, object] = {}
    for part in parts:
        if part.row is None:
            row = {}
        else:
            row = {name: row.get(name, value) if value is UNAVAILABLE else value for name, value in part.row.items()}
    return row


def _since(parts: list[Change]) -> dict[str, tuple[int, int]]:
    """Of the columns that the last change left out, the position of the one that brought what is filled in."""
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
