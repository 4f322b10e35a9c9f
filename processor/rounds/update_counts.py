"""How many writes of an entity change nothing that an index shows: the reason to read its rows before the job writes them."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from processor.plan.plan import Plan
from processor.plan.touch import Touch


class UpdateCounts(NamedTuple):
    """The writes of rows of an entity, and those of them that changed nothing that an index shows."""

    writes: float = 0.0
    unread: float = 0.0

    def plus(self, other: "UpdateCounts") -> "UpdateCounts":
        """Both together."""
        return UpdateCounts(self.writes + other.writes, self.unread + other.unread)


def count_updates(touches: Iterable[Touch], plan: Plan) -> Mapping[str, UpdateCounts]:
    """The writes by entity; none of an entity without slots."""
    writes: Counter[str] = Counter()
    unread: Counter[str] = Counter()
    for touch in touches:
        entity = plan.entities[touch.entity]
        if entity.slots and touch.outcome == "applied":
            writes[entity.name] += 1
            unread[entity.name] += not entity.concerns_indexes(touch.changed)
    return {name: UpdateCounts(count, unread[name]) for name, count in writes.items()}
