"""Takes statistics of the state: rows of each entity, their bytes, and how many rows each join finds, both ways.

Rows are counted all, by their keys alone; delete markers do not count. Bytes, and what a join finds, are those of a uniform
sample of rows. A value that many rows hold is likely among a sample of those rows, so both sides' values are asked for: the
mean is that of the side that asks, the most that of all. Promises: each distinct value is asked for once. Reads the table
while a job may write to it, eventually consistent: no one moment. Changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import chain
from random import Random
from typing import NamedTuple

from processor.model.access import Access, Columns, SlotRead
from processor.model.change import Value
from processor.model.elements import join_keys
from processor.model.plan import EntityPlan, Node, Plan
from processor.model.step import Edges, Request
from processor.planning import join_of
from registry.model import Direction, JoinSpec
from registry.statistics import EntityStatistics, JoinStatistics, Statistics
from statestore import keys
from statestore.items import DELETED, read_columns
from statestore.keys import Key
from statestore.store import Item, Query, Store
from statestore.values import item_size

Row = Mapping[str, Value]
Each = Callable[[Callable[[Query | str], int], Iterable[Query | str]], Iterable[int]]
"""`map`, or that of a pool of threads."""


class _Ask(NamedTuple):
    """The rows that hold `key`, and the request for them."""

    key: str
    request: Request


class _Side(NamedTuple):
    """One direction of a join: what each sampled row of the side that asks would ask, and the same of the other side's values."""

    join: JoinSpec
    direction: Direction
    asking: list[list[_Ask]]
    held: list[_Ask]

    def asks(self) -> list[_Ask]:
        return [ask for row in self.asking for ask in row]


def take(plan: Plan, store: Store, *, sample: int, random: Random, at: datetime, each: Each = map) -> Statistics:
    """The statistics of a plan's entities and joins. `sample`: rows of each entity, at most."""
    entities: list[EntityStatistics] = []
    rows: dict[str, list[Row]] = {}
    for name, entity in plan.entities.items():
        count, items = _sampled(entity, store, sample, random)
        sizes = [item_size(item) for item in items]
        mean = sum(sizes) / len(sizes) if sizes else 0.0
        entities.append(EntityStatistics(entity=name, rows=count, mean_bytes=mean, most_bytes=max(sizes, default=0)))
        rows[name] = [columns for item in items if (columns := read_columns(item)) is not None]
    nodes = {join_of(node): node for product in plan.products.values() for node in product.nodes}
    sides = [side for join, node in nodes.items() for side in _sides(plan, join, node, rows) if side.asking]
    found = _counts(store, (ask.request for side in sides for ask in (*side.asks(), *side.held)), each)
    return Statistics(taken_at=at, entities=tuple(entities), joins=tuple(_of_join(side, found) for side in sides))


def _sampled(entity: EntityPlan, store: Store, size: int, random: Random) -> tuple[int, list[Item]]:
    """How many rows there are, and a uniform sample of them (reservoir sampling)."""
    count, kept = 0, list[Key]()
    for partition in keys.partitions(entity.name, entity.entity.shards):
        for key in store.walk(partition, DELETED):
            count += 1
            if len(kept) < size:
                kept.append(key)
            elif (place := random.randrange(count)) < size:
                kept[place] = key
    return count, list(store.get(kept).values())


def _sides(plan: Plan, join: JoinSpec, node: Node, rows: Mapping[str, list[Row]]) -> Iterator[_Side]:
    sides = list(node.sides())
    directions: tuple[Direction, ...] = ("down", "up")
    for direction, (asked, access, fields), (asker, _, by) in zip(directions, sides, reversed(sides), strict=True):
        alone = replace(access, pinned=True) if isinstance(access, SlotRead) else access
        held = [_asks(plan, asked, alone, fields, row) for row in rows[asked]]
        asking = [_asks(plan, asked, alone, by, row) for row in rows[asker]]
        yield _Side(join, direction, asking, list(chain.from_iterable(held)))


def _asks(plan: Plan, asked: str, access: Access, fields: Columns, row: Row) -> list[_Ask]:
    found = dict.fromkeys(join_keys(fields, row))
    return [_Ask(key, plan.ask(asked, access, key)) for key in found if key is not None]


def _counts(store: Store, requests: Iterable[Request], each: Each) -> dict[Request, int]:
    """How many rows each request finds."""
    distinct = dict.fromkeys(requests)
    read = store.get([request for request in distinct if isinstance(request, Key)])
    counts: dict[Request, int] = {r: int(r in read and DELETED not in read[r]) for r in distinct if isinstance(r, Key)}
    walks = {r: r.partition if isinstance(r, Edges) else r for r in distinct if isinstance(r, Query | Edges)}
    walked = each(lambda of: sum(1 for _ in store.walk(of, DELETED)), walks.values())
    counts.update(zip(walks, walked, strict=True))
    return counts


def _of_join(side: _Side, found: Mapping[Request, int]) -> JoinStatistics:
    asks = side.asks()
    most = min([*asks, *side.held], key=lambda ask: (-found[ask.request], ask.key), default=None)
    return JoinStatistics(
        join=side.join,
        direction=side.direction,
        mean=sum(found[ask.request] for ask in asks) / len(side.asking),
        most=0 if most is None else found[most.request],
        value=None if most is None else most.key,
    )
