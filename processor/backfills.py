"""What definitions would ask of rows that are stored already: the backfills that the registry refuses, and their size."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from processor.estimate import Known
from registry.edit import edit, edited
from registry.errors import NeedsBackfill
from registry.model import Plan, Snapshot
from statestore.metered import WRITE_BYTES

BACKFILL_UNITS = 1_000
"""Write units a second of one partition, so of one shard: as fast as rows are rewritten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Rows of an entity that would be written again. `holds`: what they would get; `rows`, `seconds`: None without statistics."""

    entity: str
    holds: str
    rows: int | None
    seconds: int | None

    def __str__(self) -> str:
        if self.rows is None or self.seconds is None:
            return f"backfill of {self.entity}: {self.holds}; `statestore statistics` counts its rows"
        took = f"about {timedelta(seconds=self.seconds)} at {BACKFILL_UNITS:,} write units a second and shard"
        return f"backfill of {self.entity}: {self.holds}, in {self.rows:,} rows: {took}"


class NeedsBackfills(NeedsBackfill):
    """The registry's refusal, with all the backfills that the definitions need."""

    def __init__(self, refusal: NeedsBackfill, needed: tuple[Backfill, ...]) -> None:
        super().__init__("\n".join([str(refusal), *map(str, needed)]))
        self.needed = needed


def backfills(stored: Snapshot, wanted: Plan, has_run: frozenset[str], found: Known | None) -> Iterator[Backfill]:
    """What the rows of entities that a job has run with would have to get."""
    change = edit(stored, wanted, frozenset())
    after = edited(stored, change)
    new = [(one.entity, f"GSI_{one.slot} holds {'#'.join(one.columns)}") for one in change.assignments]
    edges = [one for one in after.edges() if one not in stored.edges()]
    new += [(one.entity, f"edges by {'#'.join(one.fields)}") for one in edges]
    shards = {entity.name: entity.shards for entity in after.entities}
    for entity, holds in (one for one in new if one[0] in has_run):
        of = found.entities.get(entity) if found else None
        units = of.rows * max(1, ceil(of.mean_bytes / WRITE_BYTES)) if of else 0
        seconds = ceil(units / BACKFILL_UNITS / shards[entity])
        yield Backfill(entity=entity, holds=holds, rows=of.rows if of else None, seconds=seconds if of else None)
