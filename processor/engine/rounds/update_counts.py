"""What a task counts of the rows of an entity: the writes that change nothing that an index shows, which is the reason to read
its rows before the job writes them, and the rows that lack declared columns."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from processor.engine.plan.plan import Plan
from processor.engine.plan.touch import Touch
from processor.values.record import AbsentColumns, Change


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


class AbsentCounts(NamedTuple):
    """The rows of an entity that a task read, and how many of them lacked which columns."""

    rows: int
    lacking: Mapping[AbsentColumns, int]


def count_absent(changes: Iterable[Change]) -> Mapping[str, AbsentCounts]:
    """The counts by entity."""
    rows: Counter[str] = Counter()
    lacking: dict[str, Counter[AbsentColumns]] = {}
    for change in changes:
        if change.row is not None:
            rows[change.entity] += 1
            if change.absent is not None:
                lacking.setdefault(change.entity, Counter())[change.absent] += 1
    return {name: AbsentCounts(count, lacking.get(name, {})) for name, count in rows.items()}
