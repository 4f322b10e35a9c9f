"""Statistics of the state as plain values: the number of rows, their bytes, and the number of rows that a join finds."""

from dataclasses import dataclass
from datetime import datetime

from registry.model import Direction, JoinSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityStatistics:
    """The number of an entity's rows, and the bytes of a sample of them, attribute names included. `entry_bytes`: the mean of
    what an index shows of a row, None for an entity without slots; `undeclared_bytes`: of the undeclared columns. Both are None
    where an older release took the statistics."""

    entity: str
    rows: int
    mean_bytes: float
    most_bytes: int
    entry_bytes: float | None = None
    undeclared_bytes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStatistics:
    """The rows that a join finds in one direction. `mean`: rows per row of the other side, over a sample. `most`: the most rows
    of one value, of all values in the sample. `value`: the encoded key of that value, None where no row has one, or where an
    erasure took it."""

    join: JoinSpec
    direction: Direction
    mean: float
    most: int
    value: str | None

    @property
    def shown_value(self) -> str:
        """The value for people."""
        return "an erased value" if self.value is None and self.most else repr(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The statistics at `taken_at`, of the joins whose sides have rows."""

    taken_at: datetime
    entities: tuple[EntityStatistics, ...]
    joins: tuple[JoinStatistics, ...]
