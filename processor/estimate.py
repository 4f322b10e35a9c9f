"""What events cost where joins find more than one row: the one-row price, and statistics of the state.

    documents     of each place that reads a changed column, the mean rows on the way up, multiplied; twice where the row moves
    write units   the one-row price, the row's further kilobytes in the table and in each slot, one for each further document
    read units    the one-row price for each document, and what its further rows take, twice: it is settled too

Estimates: means are multiplied as if joins knew nothing of each other, every document counts as published but on a replay, and
a join or an entity without statistics counts as in the one-row price.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

from processor.events import WORLD, Event, World
from processor.model.access import EdgeRead, SlotRead
from processor.model.elements import column_of
from processor.model.plan import Plan, ProductPlan
from processor.planning import join_of
from processor.price import Cost
from registry.model import Direction, JoinSpec
from registry.statistics import EntityStatistics, JoinStatistics, Statistics
from statestore.metered import READ_BYTES, WRITE_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Of one kind of event: the documents that it rebuilds, and the units in all."""

    entity: str
    event: str
    documents: float
    write_units: float
    read_units: float


@dataclass(frozen=True, slots=True)
class Known:
    """Statistics by name."""

    entities: Mapping[str, EntityStatistics]
    joins: Mapping[tuple[JoinSpec, Direction], JoinStatistics]

    def bytes(self, entity: str) -> float:
        """The mean bytes of a row."""
        return self.entities[entity].mean_bytes if entity in self.entities else 0.0

    def means(self, product: ProductPlan, direction: Direction) -> list[float]:
        """The mean rows that each join of a product finds."""
        found = [self.joins.get((join_of(node), direction)) for node in product.nodes]
        return [1.0 if one is None else one.mean for one in found]


def known(statistics: Statistics) -> Known:
    """The statistics, to be looked up."""
    return Known(
        entities={one.entity: one for one in statistics.entities},
        joins={(one.join, one.direction): one for one in statistics.joins},
    )


def estimates(plan: Plan, costs: Sequence[Cost], known: Known) -> tuple[Estimate, ...]:
    """The estimate of each event that was priced."""
    world = World(plan)
    fans = {name: _fan(product, known) for name, product in plan.products.items()}
    events = [(event, _changed(world, event), cost) for event, cost in zip(world.events(), costs, strict=True)]
    rows = {event.entity: cost.write_units for event, changed, cost in events if changed == frozenset()}
    return tuple(
        _estimate(
            cost,
            touched=_touched(plan, fans, event, changed),
            published=not event.replay,
            larger=rows[event.entity] * max(0, ceil(known.bytes(event.entity) / WRITE_BYTES) - 1),
        )
        for event, changed, cost in events
    )


class _Reads(NamedTuple):
    """What a join reads for a document: `units` so many times as it is `asked`, which all documents are at most `most` times;
    `once`: the units in the one-row world."""

    asked: float
    units: float
    most: float
    once: float


@dataclass(frozen=True, slots=True)
class _Fan:
    """Of a product: the documents above a row of each node, and what the joins of a document read."""

    above: list[float]
    reads: list[_Reads]

    def further(self, documents: float) -> float:
        """The read units of so many documents beyond those of the one-row world. What several name is read once."""
        return sum(min(documents * asked, most) * units - documents * once for asked, units, most, once in self.reads)


def _fan(product: ProductPlan, known: Known) -> _Fan:
    above: list[float] = []
    below: list[float] = []
    reads: list[_Reads] = []
    for node, up, down in zip(product.nodes, known.means(product, "up"), known.means(product, "down"), strict=True):
        asked = 1.0 if node.parent is None else below[node.parent]
        above.append(up if node.parent is None else up * above[node.parent])
        below.append(asked * down)
        name = node.join.entity
        row = known.bytes(name) / READ_BYTES
        if isinstance(node.down, SlotRead):
            reads.append(_Reads(max(asked, below[-1] * row), 0.5, inf, 0.5))
        else:
            rows = known.entities[name].rows if name in known.entities else 0
            reads.append(_Reads(max(asked, below[-1]), max(1.0, row), rows or inf, 1))
        if isinstance(node.down, EdgeRead):
            reads.append(_Reads(asked, 1, inf, 1))
    return _Fan(above, reads)


@dataclass(frozen=True, slots=True)
class _Touched:
    """Of a product: the documents that an event rebuilds, here and in the one-row world; their further read units."""

    documents: float
    once: int
    further: float


def _changed(world: World, event: Event) -> frozenset[str] | None:
    """The columns that an event changes; None where the row comes, goes, or comes again."""
    before, after = world.row(event.entity, WORLD), event.row
    if after is None or event.replay or event.new:
        return None
    return frozenset(column for column in before if after[column] != before[column])


def _touched(plan: Plan, fans: Mapping[str, _Fan], event: Event, changed: frozenset[str] | None) -> Iterator[_Touched]:
    found: dict[str, list[tuple[float, int]]] = {}
    for name, index in plan.places[event.entity]:
        product = plan.products[name]
        node = None if index is None else product.nodes[index]
        if event.new and node is not None and node.own_slot is None:
            continue  # nothing names a new key yet
        used = product.used if node is None else node.used
        if changed is None or (changed if used is None else changed & used):
            moves = node is not None and changed is not None and changed & set(map(column_of, node.child_columns))
            found.setdefault(name, []).append((1.0 if index is None else fans[name].above[index], 2 if moves else 1))
    for name, places in found.items():
        bare = (event.new or event.row is None) and plan.products[name].product.root == event.entity
        documents = sum(above * times for above, times in places)
        yield _Touched(
            documents=documents,
            once=max(times for _, times in places),
            further=0.0 if bare else fans[name].further(documents),
        )


def _estimate(cost: Cost, *, touched: Iterable[_Touched], published: bool, larger: float) -> Estimate:
    """`larger`: the write units of a row's further kilobytes."""
    products = list(touched)
    documents = sum(one.documents for one in products)
    once = sum(one.once for one in products)
    reads = float(cost.read_units) * (documents / once if once else 1)
    return Estimate(
        entity=cost.entity,
        event=cost.event,
        documents=documents,
        write_units=cost.write_units + larger + (documents - cost.documents if published else 0),
        read_units=reads + 2 * sum(one.further for one in products),
    )
