"""Decides which rows a task reads before it writes them: those of an entity with many updates that change nothing that an index
shows.

A task that has read a row writes such an update without the indexes, and saves a write unit in each. The read is weak, and
costs a tenth of a write unit. Other ways to know the row cost more: a write under a condition on what the indexes show takes
the write units of the row again where DynamoDB refuses it. So that way is cheaper only where more than nine of ten updates are
such ones. The choice needs no memory: each run measures the share again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from processor.engine.plan.plan import Plan
from processor.engine.rounds.update_counts import UpdateCounts

READ_COST: Final = 0.125
"""Of a weak read, in write units, with a margin: half a read unit costs a tenth of a write unit."""
SURE: Final = 20
"""So many writes count as changes of the indexes before the first one comes, so few writes decide nothing."""
REMEMBERED: Final = 10_000
"""After so many writes of an entity the older ones count half."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReads:
    """The writes of each entity so far."""

    counts: Mapping[str, UpdateCounts] = field(default_factory=dict)

    def after(self, tasks: Iterable[Mapping[str, UpdateCounts]]) -> "RowReads":
        """With the writes of some tasks."""
        counts = dict(self.counts)
        for task in tasks:
            for entity, more in task.items():
                total = counts.get(entity, UpdateCounts()).plus(more)
                share = 0.5 if total.writes > REMEMBERED else 1.0
                counts[entity] = UpdateCounts(total.writes * share, total.unread * share)
        return replace(self, counts=counts)

    def entities(self, plan: Plan) -> frozenset[str]:
        """The entities whose rows a task reads first."""
        return frozenset(
            name
            for name, (writes, unread) in self.counts.items()
            if name in plan.entities and unread * len(plan.entities[name].slots) > READ_COST * (writes + SURE)
        )
