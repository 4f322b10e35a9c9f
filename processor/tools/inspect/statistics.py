"""Takes statistics of the state: rows of each entity, their bytes, and how many rows each join finds, both ways.

All rows are counted, by their keys alone; delete markers do not count. Bytes and joins are measured on a uniform sample of rows.
A value that many rows hold is probably in a sample of those rows. Each join is therefore asked for the values of both sides: its
mean is over the values of the side that asks, its most over all values. Promises: each distinct value is asked for once. Does
not: read at one moment; the reads are eventually consistent, and a job may write meanwhile. Changes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from random import Random
from typing import NamedTuple

from processor.engine.plan.declared_columns import declared_columns, held_undeclared
from processor.engine.plan.plan import EntityPlan, Plan
from processor.engine.plan.product_plan import JoinPlan
from processor.engine.plan.step import Lookup
from processor.values.record import Value
from registry.model import Direction, EntityStatistics, JoinSpec, JoinStatistics, PlannedPath, SlotPath, Statistics
from statestore import keys
from statestore.items import DELETED, entry_size
from statestore.keys import Key
from statestore.store import Item, Query, Store
from statestore.values import item_size, pack_values

MapCounts = Callable[[Callable[[Query | str], int], Iterable[Query | str]], Iterable[int]]
"""The function `map`, or the method `map` of a pool of threads."""


class _KeyRequest(NamedTuple):
    """A join key, and the request for the rows that hold it."""

    key: str
    request: Key | Lookup


class _Side(NamedTuple):
    """One direction of a join. `asking`: the requests of each sampled row of the side that asks; `answering`: requests for the
    join keys of the sampled rows of the side that answers."""

    join: JoinSpec
    direction: Direction
    asking: list[list[_KeyRequest]]
    answering: list[_KeyRequest]

    def requests(self) -> list[_KeyRequest]:
        return [request for row in self.asking for request in row]


def take_statistics(
    plan: Plan, store: Store, *, sample: int, random: Random, at: datetime, map_counts: MapCounts = map
) -> Statistics:
    """Takes the statistics of a plan's entities and joins. `sample`: the largest number of rows of each entity to measure."""
    entities: list[EntityStatistics] = []
    rows: dict[str, list[Mapping[str, Value]]] = {}
    for name, entity in plan.entities.items():
        count, items = _sampled(entity, store, sample, random)
        sizes = [item_size(item) for item in items]
        entries = [size for item in items if (size := entry_size(item)) is not None]
        entities.append(
            EntityStatistics(
                entity=name,
                rows=count,
                mean_bytes=_mean(sizes),
                most_bytes=max(sizes, default=0),
                entry_bytes=_mean(entries) if entries else None,
                undeclared_bytes=_mean([_undeclared_size(item, entity) for item in items]),
            )
        )
        rows[name] = [columns for item in items if (columns := declared_columns(item, entity)) is not None]
    nodes = {node.spec: node for product in plan.products.values() for node in product.nodes}
    sides = [side for join, node in nodes.items() for side in _sides(plan, join, node, rows) if side.asking]
    found = _counts(
        store, (asked.request for side in sides for asked in (*side.requests(), *side.answering)), map_counts
    )
    return Statistics(taken_at=at, entities=tuple(entities), joins=tuple(_of_join(side, found) for side in sides))


def _mean(sizes: Sequence[int]) -> float:
    return sum(sizes) / len(sizes) if sizes else 0.0


def _undeclared_size(item: Item, entity: EntityPlan) -> int:
    """The bytes of the undeclared columns that an item holds."""
    undeclared = held_undeclared(item, entity)
    return len(pack_values(undeclared)) if undeclared else 0


def _sampled(entity: EntityPlan, store: Store, size: int, random: Random) -> tuple[int, list[Item]]:
    """How many rows there are, and a uniform sample of them (reservoir sampling)."""
    count, sample = 0, list[Key]()
    for partition in keys.partitions(entity.name, entity.entity.shards):
        for key in store.walk(partition, DELETED):
            count += 1
            if len(sample) < size:
                sample.append(key)
            elif (place := random.randrange(count)) < size:
                sample[place] = key
    return count, list(store.get(sample).values())


def _sides(
    plan: Plan, join: JoinSpec, node: JoinPlan, rows: Mapping[str, list[Mapping[str, Value]]]
) -> Iterator[_Side]:
    sides = list(node.sides())
    directions: tuple[Direction, ...] = ("down", "up")
    keys_of = (node.child_keys, node.parent_keys)
    for direction, (asked, access, _), (asker, *_), of, by in zip(
        directions, sides, reversed(sides), keys_of, reversed(keys_of), strict=True
    ):
        alone = replace(access, pinned=True) if isinstance(access, SlotPath) else access
        answering = [_key_requests(plan, asked, alone, of(row)) for row in rows[asked]]
        asking = [_key_requests(plan, asked, alone, by(row)) for row in rows[asker]]
        yield _Side(join, direction, asking, list(chain.from_iterable(answering)))


def _key_requests(plan: Plan, asked: str, access: PlannedPath, found: Iterable[str | None]) -> list[_KeyRequest]:
    return [_KeyRequest(key, plan.request(asked, access, key)) for key in dict.fromkeys(found) if key is not None]


def _counts(store: Store, requests: Iterable[Key | Lookup], map_counts: MapCounts) -> dict[Key | Lookup, int]:
    """How many rows each request finds."""
    distinct = dict.fromkeys(requests)
    read = store.get([request for request in distinct if isinstance(request, Key)])
    counts: dict[Key | Lookup, int] = {
        r: int(r in read and DELETED not in read[r]) for r in distinct if isinstance(r, Key)
    }
    walks = {r: r.source for r in distinct if isinstance(r, Lookup)}
    walked = map_counts(lambda target: sum(1 for _ in store.walk(target, DELETED)), walks.values())
    counts.update(zip(walks, walked, strict=True))
    return counts


def _of_join(side: _Side, found: Mapping[Key | Lookup, int]) -> JoinStatistics:
    requests = side.requests()
    most = min([*requests, *side.answering], key=lambda asked: (-found[asked.request], asked.key), default=None)
    return JoinStatistics(
        join=side.join,
        direction=side.direction,
        mean=sum(found[asked.request] for asked in requests) / len(side.asking),
        most=0 if most is None else found[most.request],
        value=None if most is None else most.key,
    )
