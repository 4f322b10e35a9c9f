"""The backfills that definitions would need for rows that are stored already, and their size. The registry refuses them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from processor.pricing.estimate import StatisticsIndex
from registry.edit import edit, edited
from registry.errors import NeedsBackfill
from registry.model import Requirements, Snapshot
from statestore.items import slot_name
from statestore.metered import WRITE_BYTES

BACKFILL_UNITS = 1_000
"""Write units a second of one partition, thus of one shard. This limits how fast a backfill rewrites rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Rows of an entity that would be written again. `holds`: the new slot or edges; `rows`, `seconds`: None if unknown."""

    entity: str
    holds: str
    rows: int | None
    seconds: int | None

    def __str__(self) -> str:
        if self.rows is None or self.seconds is None:
            return f"backfill of {self.entity}: {self.holds}; `statestore statistics` counts its rows"
        time = f"about {timedelta(seconds=self.seconds)} at {BACKFILL_UNITS:,} write units a second and shard"
        return f"backfill of {self.entity}: {self.holds}, in {self.rows:,} rows: {time}"


class NeedsBackfills(NeedsBackfill):
    """The registry's refusal, with all the backfills that the definitions need."""

    def __init__(self, refusal: NeedsBackfill, needed: tuple[Backfill, ...]) -> None:
        super().__init__("\n".join([str(refusal), *map(str, needed)]))
        self.needed = needed


def needed_backfills(
    stored: Snapshot, wanted: Requirements, has_run: frozenset[str], index: StatisticsIndex | None
) -> Iterator[Backfill]:
    """The backfills of entities that a job has run with. `has_run`: those entities; `index`: None without statistics."""
    change = edit(stored, wanted, frozenset())
    after = edited(stored, change)
    new = [(slot.entity, f"{slot_name(slot.slot)} holds {'#'.join(slot.columns)}") for slot in change.assignments]
    edges = [edge for edge in after.edge_paths() if edge not in stored.edge_paths()]
    new += [(edge.entity, f"edges by {'#'.join(edge.fields)}") for edge in edges]
    shards = {entity.name: entity.shards for entity in after.entities}
    for entity, holds in ((entity, holds) for entity, holds in new if entity in has_run):
        counted = index.entities.get(entity) if index else None
        if counted is None:
            yield Backfill(entity=entity, holds=holds, rows=None, seconds=None)
            continue
        units = counted.rows * max(1, ceil(counted.mean_bytes / WRITE_BYTES))
        yield Backfill(
            entity=entity, holds=holds, rows=counted.rows, seconds=ceil(units / BACKFILL_UNITS / shards[entity])
        )
