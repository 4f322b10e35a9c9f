"""The backfills that an apply leads to: the rows that the job writes again before products over them go live, and their size."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from math import ceil

from processor.plan.plan import Plan
from processor.pricing.estimate import StatisticsIndex
from processor.pricing.price_list import Prices
from registry.model import Snapshot
from registry.text import column_of
from statestore.items import slot_name
from statestore.metered import WRITE_BYTES

BACKFILL_UNITS = 1_000
"""Write units a second of one partition, thus of one shard. This limits how fast a backfill rewrites rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """Rows of an entity that the job writes again. `holds`: the new slots, edges and columns in indexes; `edges`: the
    fields of the edges alone. `rows`, `write_units`, `seconds`: None if unknown. Left out: the reads of the rows, and
    documents that the job publishes afterwards."""

    entity: str
    holds: str
    edges: tuple[str, ...]
    rows: int | None
    write_units: int | None
    seconds: int | None


def backfill_text(backfill: Backfill, prices: Prices) -> str:
    """The rows of a backfill, with its write units, dollars and time where they are known."""
    rows = f"rows of {backfill.entity} to fill"
    if backfill.rows is None or backfill.write_units is None or backfill.seconds is None:
        return f"{rows}: `statestore statistics` counts them"
    dollars = prices.dollars(backfill.write_units, Decimal(0)) / 1_000_000
    time = f"about {timedelta(seconds=backfill.seconds)} at {BACKFILL_UNITS:,} write units a second and shard"
    return f"{backfill.rows:,} {rows}: {backfill.write_units:,} write units, ${dollars:,.2f}, {time}"


def needed_backfills(
    stored: Snapshot,
    after: Snapshot,
    has_run: frozenset[str],
    index: StatisticsIndex | None,
    plans: tuple[Plan, Plan] | None,
) -> Iterator[Backfill]:
    """The backfills that an edit leads to, by entity. `has_run`: the entities that a job has run with; `index`: None without
    statistics. `plans`: before and after the edit, where the registry has a plan before."""
    edges = [edge for edge in after.edge_paths() if edge not in stored.edge_paths()]
    places = {(one.entity, one.slot) for one in stored.assignments}
    for entity in (one for one in after.entities if one.name in has_run):
        slots = [one for one in after.assignments_of(entity.name) if (one.entity, one.slot) not in places]
        fields = tuple("#".join(edge.fields) for edge in edges if edge.entity == entity.name)
        holds = [f"{slot_name(one.slot)} holds {'#'.join(one.columns)}" for one in slots]
        holds += [f"edges by {one}" for one in fields]
        held = frozenset(column_of(field) for one in slots for field in one.columns)
        holds += _shown_columns(entity.name, *plans, held) if plans else ()
        counted = index.entities.get(entity.name) if index else None
        rows, write_units, seconds = None, None, None
        if counted:
            rows = counted.rows
            row = rows * max(1, ceil(counted.mean_bytes / WRITE_BYTES))
            entry = max(1, ceil((counted.entry_bytes or 0) / WRITE_BYTES))
            write_units = row + rows * (len(after.assignments_of(entity.name)) * entry + len(fields))
            seconds = ceil(row / BACKFILL_UNITS / entity.shards)
        if holds:
            yield Backfill(
                entity=entity.name,
                holds=", ".join(holds),
                edges=fields,
                rows=rows,
                write_units=write_units,
                seconds=seconds,
            )


def _shown_columns(name: str, before: Plan, after: Plan, held: frozenset[str]) -> Iterator[str]:
    """The columns that indexes begin to show of an entity that they show already, without those that new slots hold."""
    old, new = (plan.entities[name].indexed if name in plan.entities else frozenset() for plan in (before, after))
    if old is None or not old:
        return
    if new is None:
        yield "the indexes show whole rows"
    elif columns := new - old - held:
        yield f"the indexes show {', '.join(sorted(columns))}"
