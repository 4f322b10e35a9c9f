"""Statistics of the state as plain values: how many rows there are, how large they are, and how many of them a join finds."""

from dataclasses import dataclass
from datetime import datetime

from registry.model import Direction, JoinSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityStatistics:
    """Of an entity's rows: their number, and the bytes of those of a sample, attribute names included."""

    entity: str
    rows: int
    mean_bytes: float
    most_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStatistics:
    """What a join finds in one direction. `mean`: rows for a row of the other side, over a sample; `most`: rows for one value,
    the most of all that were asked for; `value`: that value, as keys are spelt, None where no row has one."""

    join: JoinSpec
    direction: Direction
    mean: float
    most: int
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """What was found by `taken_at`, of the joins that had rows to ask for."""

    taken_at: datetime
    entities: tuple[EntityStatistics, ...]
    joins: tuple[JoinStatistics, ...]
