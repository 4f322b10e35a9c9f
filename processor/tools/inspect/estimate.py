"""Takes statistics of the state, and estimates by them the cost of events if joins find more than one row.

Statistics are the rows of each entity, their bytes, and how many rows each join finds, both ways. All rows are counted, by their
keys alone; delete markers do not count. Bytes and joins are measured on a uniform sample of rows. A value that many rows hold is
probably in a sample of those rows. Each join is therefore asked for the values of both sides: its mean is over the values of the
side that asks, its most over all values. Promises: each distinct value is asked for once. Does not: read at one moment; the reads
are eventually consistent, and a job may write meanwhile. Changes nothing.

An estimate begins with the one-row price in a batch of `BATCH` events, because a busy job has large batches.

    documents     the distinct roots above the row: the mean rows on the way up by each join that reads a changed column, twice
                  if the row moves to another join key. Embeds that go up by the same joins lead to the same roots
    write units   the one-row price, plus the further kilobytes of the row and, if the event changes what the indexes show, of its
                  entry in each slot, plus one for each further root and ledger group of products whose documents it rebuilds
    read units    the one-row price for each root whose documents it rebuilds, plus the units of its further rows: of entries in
                  an index, and of whole rows by key

Estimates assume: joins are independent, so their means are multiplied, up to the number of all roots. Several rows on one way up
may lead to the same root, and the estimate counts it for each of them. Every document is published, except on a replay. The
events of a batch change different documents. A join or an entity without statistics counts as in the one-row price. A job reads
less than estimated where it reads keys by ranges, or where the way up shows a root of more than 4 KB.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from math import ceil, inf
from random import Random
from typing import NamedTuple

from processor.engine.plan.plan import EntityPlan, JoinPlan, Plan, ProductPlan, RootTree
from processor.engine.plan.row_image import declared_columns, held_undeclared
from processor.engine.plan.step import Lookup
from processor.engine.protocol.ledger import group_partition
from processor.tools.inspect.price import WORLD, Cost, Event, World
from processor.values.record import Value
from registry.fields import columns_of
from registry.model import (
    Direction,
    EdgePath,
    EntityStatistics,
    JoinSpec,
    JoinStatistics,
    KeyPath,
    PlannedPath,
    SlotPath,
    Statistics,
)
from statestore import keys
from statestore.items import DELETED, entry_size
from statestore.keys import Key
from statestore.memory import READ_BYTES, WRITE_BYTES
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
    keys_of = (node.child_keys, node.stored_keys)
    for direction, (asked, access, _), (asker, *_), of, by in zip(
        directions, sides, reversed(sides), keys_of, reversed(keys_of), strict=True
    ):
        if direction == "up" and node.above_columns and isinstance(access, KeyPath):
            continue  # a row is in one group
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The estimate of one kind of event: the documents that it rebuilds, and all its units."""

    entity: str
    event: str
    documents: float
    write_units: float
    read_units: float


@dataclass(frozen=True, slots=True)
class StatisticsIndex:
    """Statistics by entity, and by join and direction."""

    entities: Mapping[str, EntityStatistics]
    joins: Mapping[tuple[JoinSpec, Direction], JoinStatistics]

    def bytes(self, entity: str) -> float:
        """The mean bytes of a row of an entity; 0 without statistics."""
        return self.entities[entity].mean_bytes if entity in self.entities else 0.0

    def entry_bytes(self, entity: str) -> float:
        """The mean bytes of what an index shows of a row; those of the row where it is unknown."""
        known = self.entities[entity].entry_bytes if entity in self.entities else None
        return self.bytes(entity) if known is None else known

    def rows(self, entity: str) -> float:
        """The rows of an entity; infinite without statistics, or without rows."""
        return (self.entities[entity].rows if entity in self.entities else 0) or inf

    def roots(self, entity: str, rows: JoinPlan | None) -> float:
        """The roots of an entity: its rows, or its groups, whose rows the join `rows` finds."""
        return self.rows(entity) / (1.0 if rows is None else max(1.0, self.mean(rows, "down")))

    def mean(self, node: JoinPlan, direction: Direction) -> float:
        """The mean rows that a join finds; 1 without statistics."""
        join = self.joins.get((node.spec, direction))
        return 1.0 if join is None else join.mean


def index_statistics(statistics: Statistics, plan: Plan) -> StatisticsIndex:
    """The statistics, indexed. The rows of an entity have no undeclared columns, if the plan stores none."""
    bare = {name for name, entity in plan.entities.items() if not entity.entity.keeps_undeclared}
    return StatisticsIndex(
        entities={one.entity: _without_undeclared(one) if one.entity in bare else one for one in statistics.entities},
        joins={(join.join, join.direction): join for join in statistics.joins},
    )


def _without_undeclared(entity: EntityStatistics) -> EntityStatistics:
    return replace(entity, mean_bytes=entity.mean_bytes - (entity.undeclared_bytes or 0.0), undeclared_bytes=0.0)


def estimate_events(plan: Plan, costs: Sequence[Cost], index: StatisticsIndex) -> tuple[Estimate, ...]:
    """The estimate of each event that was priced. `costs`: of `price_events` for the same plan."""
    world = World(plan)
    fans = {root: _fan(tree, index) for root, tree in plan.trees.items()}
    events = [(event, _changed(world, event), cost) for event, cost in zip(world.events(), costs, strict=True)]
    return tuple(
        _estimate(
            cost,
            fans=fans,
            touched=list(_touched(plan, fans, event, changed, index)),
            published=not event.replay,
            larger=_further_units(plan, event, changed, index),
        )
        for event, changed, cost in events
    )


def _further_units(plan: Plan, event: Event, changed: frozenset[str] | None, index: StatisticsIndex) -> int:
    """The write units of the further kilobytes of a row, and of its entries in the indexes that the event writes."""
    entity = plan.entities[event.entity]
    entries = 0 if event.replay or not entity.concerns_indexes(changed) else len(entity.slots)
    row, entry = (max(0, ceil(n / WRITE_BYTES) - 1) for n in (index.bytes(entity.name), index.entry_bytes(entity.name)))
    return row + entries * entry


class _Reads(NamedTuple):
    """The reads of a join for a document: `asked` requests of `units` read units each. All documents together send at most `most`
    requests; `once`: the units in the one-row world."""

    asked: float
    units: float
    most: float
    once: float


@dataclass(frozen=True, slots=True)
class _Fan:
    """The fan-out of a tree. `above`: the roots above a row of each node; `reads`: of the joins for a root, each with the
    products that need it."""

    above: list[float]
    reads: list[tuple[Collection[str], _Reads]]

    def further(self, roots: float, products: Collection[str]) -> float:
        """The read units of roots beyond those of the one-row world, for the documents of some products. A row of several roots
        is read once."""
        needed = [reads for users, reads in self.reads if any(name in users for name in products)]
        return sum(min(roots * asked, most) * units - roots * once for asked, units, most, once in needed)


def _fan(tree: RootTree, index: StatisticsIndex) -> _Fan:
    above: list[float] = []
    below: list[float] = []
    roots = index.roots(tree.root, tree.nodes[0].join if tree.group else None)
    reads: list[tuple[Collection[str], _Reads]] = []
    for place in tree.nodes:
        node = place.join
        asked, up = (1.0, 1.0) if node.parent is None else (below[node.parent], above[node.parent])
        mean = 1.0 if tree.group and node.parent is None and isinstance(node.up, KeyPath) else index.mean(node, "up")
        above.append(mean if node.parent is None else min(roots, mean * up))
        read = [one.rows + 1 for one in place.ordered]
        most = 1 if place.counted else max(read, default=inf)
        below.append(asked * min(index.mean(node, "down"), most))
        name = node.join.entity
        row = index.bytes(name) / READ_BYTES
        if place.counted:
            reads.append((place.users, _Reads(asked, 1, inf, 1)))
        elif isinstance(node.down, SlotPath):
            entry = index.entry_bytes(name) / READ_BYTES
            reads.append((place.users, _Reads(max(asked, below[-1] * entry), 0.5, inf, 0.5)))
        else:
            reads.append((place.users, _Reads(max(asked, below[-1]), max(1.0, row), index.rows(name), 1)))
        if isinstance(node.down, EdgePath):
            reads.append((place.users, _Reads(asked, 1, inf, 1)))
    return _Fan(above, reads)


@dataclass(frozen=True, slots=True)
class _Touched:
    """The documents of a product that an event rebuilds. `once`: their number in the one-row world; `bare`: their root joins no
    row."""

    product: ProductPlan
    documents: float
    once: int
    bare: bool


def _changed(world: World, event: Event) -> frozenset[str] | None:
    """The columns that an event changes; None if the row is new, deleted or replayed."""
    before, after = world.row(event.entity, WORLD), event.row
    if after is None or event.replay or event.new:
        return None
    return frozenset(column for column in before if after[column] != before[column])


def _touched(
    plan: Plan, fans: Mapping[str, _Fan], event: Event, changed: frozenset[str] | None, statistics: StatisticsIndex
) -> Iterator[_Touched]:
    found: dict[str, dict[tuple[JoinSpec, ...], tuple[float, int]]] = {}
    for root, place in plan.places[event.entity]:
        tree = plan.trees[root]
        node = None if place is None else tree.nodes[place].join
        if event.new and node is not None and node.own_slot is None:
            continue  # no row has the new key as its join key yet
        moves = (
            node is not None
            and changed is not None
            and changed & set(chain.from_iterable(map(columns_of, node.child_columns)))
        )
        route = _route(tree, place)
        for name in tree.reading(place, changed):
            routes = found.setdefault(name, {})
            times = max(2 if moves else 1, routes.get(route, (0, 0))[1])
            routes[route] = (1.0 if place is None else fans[root].above[place], times)
    for name, routes in found.items():
        product = plan.products[name]
        roots = statistics.roots(product.product.root, product.nodes[0] if product.group else None)
        yield _Touched(
            product=product,
            documents=min(roots, sum(above * times for above, times in routes.values())),
            once=max(times for _, times in routes.values()),
            bare=(event.new or event.row is None) and product.product.root == event.entity and product.group is None,
        )


def _route(tree: RootTree, place: int | None) -> tuple[JoinSpec, ...]:
    """The joins from a node up to the root."""
    joins: list[JoinSpec] = []
    while place is not None:
        node = tree.nodes[place].join
        joins.append(node.spec)
        place = node.parent
    return tuple(joins)


def _estimate(
    cost: Cost, *, fans: Mapping[str, _Fan], touched: Sequence[_Touched], published: bool, larger: float
) -> Estimate:
    """The estimate of one event. `larger`: the write units of further kilobytes. Products of one root share its reads,
    and those of one group its ledger item."""
    items, roots = _most(touched, lambda p: group_partition(p.ledger)), _most(touched, lambda p: p.product.tree)
    once = sum(count for _, count in roots.values())
    reads = float(cost.batch_read_units) * (sum(many for many, _ in roots.values()) / once if once else 1)
    further = sum(many for many, _ in items.values()) - min(cost.documents, sum(count for _, count in items.values()))
    joined: dict[str, set[str]] = {root: set() for root in roots}
    for one in touched:
        joined[one.product.product.tree] |= set() if one.bare else {one.product.product.name}
    return Estimate(
        entity=cost.entity,
        event=cost.event,
        documents=sum(one.documents for one in touched),
        write_units=float(cost.batch_write_units) + larger + (further if published else 0),
        read_units=reads + sum(fans[root].further(many, joined[root]) for root, (many, _) in roots.items()),
    )


def _most(touched: Iterable[_Touched], part: Callable[[ProductPlan], str]) -> dict[str, tuple[float, int]]:
    """The most documents of one product in each part, and the most in the one-row world."""
    found: dict[str, tuple[float, int]] = {}
    for one in touched:
        many, once = found.get(part(one.product), (0.0, 0))
        found[part(one.product)] = max(many, one.documents), max(once, one.once)
    return found
