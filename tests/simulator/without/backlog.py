"""Switches for the backlog: the roots of products that failed, or were not ready (rule 7)."""

from processor.engine.protocol.pending import Backlog
from tests.simulator.without.switch import always, replacing

not_durable = replacing((Backlog, "add", always([])))
"""A run writes no roots of stopped products."""


def _take_as_own(backlog: Backlog, obsolete: object) -> object:
    backlog.own.update(root for roots in backlog.waiting.values() for root in roots)
    return obsolete


taken_as_own = replacing(
    (Backlog, "reload", lambda reload: lambda self, items: _take_as_own(self, reload(self, items)))
)
"""A run takes the backlog of earlier runs as its own."""
