"""Switches for totals: the numbers of all rows of a key, which each write of a row changes (docs/correctness.md, "Totals")."""

from typing import Any

import processor.engine.plan.row_image as row_image
import processor.engine.protocol.walks as walks
import statestore.writes as writes
from statestore.store import Done, Refused, Write
from tests.simulator.actor import TableClient
from tests.simulator.without.switch import always, replacing


def _apart(write: Any) -> Any:
    def changed(self: TableClient, request: Write) -> Any:
        outcome = write(self, request._replace(also=()))
        for one in request.also if isinstance(outcome, Done) else ():
            write(self, one)
        return outcome

    return changed


apart = replacing((TableClient, "write", _apart))
"""The totals change after the row."""


def _twice(write: Any) -> Any:
    def changed(self: TableClient, request: Write) -> Any:
        outcome = write(self, request)
        for one in request.also if isinstance(outcome, Refused) else ():
            write(self, one)
        return outcome

    return changed


refused_adds = replacing((TableClient, "write", _twice))
new_only = replacing((writes, "count_again", lambda again: lambda row, count, before, now: again(row, count, {}, now)))


def _under_new_key(again: Any) -> Any:
    def changed(row: Any, count: int, before: Any, now: Any) -> Any:
        moved = {fields: (now.get(fields, (key,))[0], numbers) for fields, (key, numbers) in before.items()}
        return again(row, count, moved, now)

    return changed


under_new_key = replacing((writes, "count_again", _under_new_key))
fill_leaves_rows = replacing((row_image, "is_counted", always(True)))


def _any_version(is_counted: Any) -> Any:
    return lambda plan, seen: bool(seen.totals and seen.totals.number == plan.count) or is_counted(plan, seen)


any_version = replacing((row_image, "is_counted", _any_version))
one_count = replacing(
    (walks, "_fill_goal", lambda goal: lambda *args: goal(*args)._replace(number=1 if args[0].measures else 0)),
)
"""The former count continues, also over rows that changed without it."""
