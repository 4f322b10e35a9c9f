"""A double of Spark's checkpoint."""

from dataclasses import dataclass, field

from tests.simulator.history import Partition


@dataclass(slots=True, kw_only=True)
class Checkpoint:
    """How far a query has read. `offsets`: the next one to read in each partition. `batch`: the number of the next batch.
    `planned_ends`: where that batch ends in each partition; None while no batch is planned. `begins`: where the query began."""

    offsets: dict[Partition, int]
    batch: int = 0
    planned_ends: dict[Partition, int] | None = None
    begins: dict[Partition, int] = field(init=False)

    def __post_init__(self) -> None:
        self.begins = dict(self.offsets)
