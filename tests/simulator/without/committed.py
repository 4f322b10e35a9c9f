"""Switches that turn the protections of records that no batch has committed off, and of rows that no index has shown."""

from collections.abc import Callable
from typing import Any

import processor.rounds.step_runner as step_runner
import tests.simulator.run as run
from processor.progress.committed import Published
from tests.simulator.without.switch import replacing

older_than_the_batch = replacing((Published, "__call__", lambda _: lambda self, version: version < self.below))
"""Every row with a lower version counts as published, also one of another epoch or partition."""

begin_forgotten = replacing(
    (run, "committed_by", lambda make: lambda epochs, _begins, positions: make(epochs, {}, positions))
)
"""What the topics had before the checkpoint began counts as published."""


def _by_row(sights_of: Callable[..., Any]) -> Callable[..., Any]:
    def changed(seen: Any, opened: Any, dropped: Any) -> Any:
        lacked: dict[tuple[Any, str], bool] = {}
        for (key, (index, _)), is_gone in dropped.items():
            lacked[key, index] = lacked.get((key, index), False) or is_gone
        places = ((key, at) for at, rows in opened.items() for key, row in rows if not row.has)
        return sights_of(seen, opened, {(key, at): lacked[key, at[0]] for key, at in places if (key, at[0]) in lacked})

    return changed


absent_under_another_key = replacing((step_runner, "sights_of", _by_row))
"""Absence under one key is evidence for every key that the row had."""
