"""Estimates the cost of events if joins find more than one row, from the one-row price and the statistics of the state.

The one-row price is that in a batch of `BATCH` events, because a busy job has large batches.

    documents     the distinct roots above the row: the mean rows on the way up by each join that reads a changed column, twice
                  if the row moves to another join key. Embeds that go up by the same joins lead to the same roots
    write units   the one-row price, plus the row's further kilobytes in the table and in each slot, plus one for each further
                  document
    read units    the one-row price for each document, plus the units of its further rows

Estimates assume: joins are independent, so their means are multiplied, up to the number of all roots. Several rows on one way up
may lead to the same root, and the estimate counts it for each of them. Every document is published, except on a replay. The
events of a batch change different documents. A join or an entity without statistics counts as in the one-row price.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from processor.plan.access import EdgeRead, SlotRead
from processor.plan.plan import Plan
from processor.plan.planning import join_of
from processor.plan.product_plan import ProductPlan
from processor.pricing.event_kinds import WORLD, Event, World
from processor.pricing.price import Cost
from registry.model import Direction, JoinSpec, column_of
from registry.state_statistics import EntityStatistics, JoinStatistics, Statistics
from statestore.metered import READ_BYTES, WRITE_BYTES


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

    def rows(self, entity: str) -> float:
        """The rows of an entity; infinite without statistics, or without rows."""
        return (self.entities[entity].rows if entity in self.entities else 0) or inf

    def means(self, product: ProductPlan, direction: Direction) -> list[float]:
        """The mean rows that each join of a product finds; 1 without statistics."""
        found = [self.joins.get((join_of(node), direction)) for node in product.nodes]
        return [1.0 if join is None else join.mean for join in found]


def index_statistics(statistics: Statistics) -> StatisticsIndex:
    """The statistics, indexed."""
    return StatisticsIndex(
        entities={entity.entity: entity for entity in statistics.entities},
        joins={(join.join, join.direction): join for join in statistics.joins},
    )


def estimate_events(plan: Plan, costs: Sequence[Cost], index: StatisticsIndex) -> tuple[Estimate, ...]:
    """The estimate of each event that was priced. `costs`: of `price_events` for the same plan."""
    world = World(plan)
    fans = {name: _fan(product, index) for name, product in plan.products.items()}
    events = [(event, _changed(world, event), cost) for event, cost in zip(world.events(), costs, strict=True)]
    rows = {event.entity: float(cost.batch_write_units) for event, changed, cost in events if changed == frozenset()}
    return tuple(
        _estimate(
            cost,
            touched=_touched(plan, fans, event, changed, index),
            published=not event.replay,
            larger=rows[event.entity] * max(0, ceil(index.bytes(event.entity) / WRITE_BYTES) - 1),
        )
        for event, changed, cost in events
    )


class _Reads(NamedTuple):
    """The reads of a join for a document: `asked` requests of `units` read units each. All documents together send at most `most`
    requests; `once`: the units in the one-row world."""

    asked: float
    units: float
    most: float
    once: float


@dataclass(frozen=True, slots=True)
class _Fan:
    """The fan-out of a product. `above`: the documents above a row of each node; `reads`: of the joins of a document."""

    above: list[float]
    reads: list[_Reads]

    def further(self, documents: float) -> float:
        """The read units of so many documents beyond those of the one-row world. A row of several documents is read once."""
        return sum(min(documents * asked, most) * units - documents * once for asked, units, most, once in self.reads)


def _fan(product: ProductPlan, index: StatisticsIndex) -> _Fan:
    above: list[float] = []
    below: list[float] = []
    roots = index.rows(product.product.root)
    reads: list[_Reads] = []
    for node, up, down in zip(product.nodes, index.means(product, "up"), index.means(product, "down"), strict=True):
        asked = 1.0 if node.parent is None else below[node.parent]
        above.append(up if node.parent is None else min(roots, up * above[node.parent]))
        below.append(asked * down)
        name = node.join.entity
        row = index.bytes(name) / READ_BYTES
        if isinstance(node.down, SlotRead):
            reads.append(_Reads(max(asked, below[-1] * row), 0.5, inf, 0.5))
        else:
            reads.append(_Reads(max(asked, below[-1]), max(1.0, row), index.rows(name), 1))
        if isinstance(node.down, EdgeRead):
            reads.append(_Reads(asked, 1, inf, 1))
    return _Fan(above, reads)


@dataclass(frozen=True, slots=True)
class _Touched:
    """The documents of a product that an event rebuilds. `once`: their number in the one-row world; `further`: read units beyond
    those of the one-row world."""

    documents: float
    once: int
    further: float


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
    for name, index in plan.occurrences[event.entity]:
        product = plan.products[name]
        node = None if index is None else product.nodes[index]
        if event.new and node is not None and node.own_slot is None:
            continue  # no row has the new key as its join key yet
        used = product.used if node is None else node.used
        if changed is None or (changed if used is None else changed & used):
            moves = node is not None and changed is not None and changed & set(map(column_of, node.child_columns))
            routes, route = found.setdefault(name, {}), _route(product, index)
            times = max(2 if moves else 1, routes.get(route, (0, 0))[1])
            routes[route] = (1.0 if index is None else fans[name].above[index], times)
    for name, routes in found.items():
        bare = (event.new or event.row is None) and plan.products[name].product.root == event.entity
        roots = statistics.rows(plan.products[name].product.root)
        documents = min(roots, sum(above * times for above, times in routes.values()))
        yield _Touched(
            documents=documents,
            once=max(times for _, times in routes.values()),
            further=0.0 if bare else fans[name].further(documents),
        )


def _route(product: ProductPlan, index: int | None) -> tuple[JoinSpec, ...]:
    """The joins from a node up to the root."""
    joins: list[JoinSpec] = []
    while index is not None:
        joins.append(join_of(product.nodes[index]))
        index = product.nodes[index].parent
    return tuple(joins)


def _estimate(cost: Cost, *, touched: Iterable[_Touched], published: bool, larger: float) -> Estimate:
    """The estimate of one event. `larger`: the write units of the row's further kilobytes."""
    products = list(touched)
    documents = sum(product.documents for product in products)
    once = sum(product.once for product in products)
    reads = float(cost.batch_read_units) * (documents / once if once else 1)
    return Estimate(
        entity=cost.entity,
        event=cost.event,
        documents=documents,
        write_units=float(cost.batch_write_units) + larger + (documents - cost.documents if published else 0),
        read_units=reads + sum(product.further for product in products),
    )
