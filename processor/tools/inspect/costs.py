"""The prices of events by product, in dollars, and what events would cost without a product.

Prices are of the estimates where there are statistics, else with one row for every join. For a saving, `inspect.price`
tries each kind of event on the plan without the product.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from processor.engine.plan.planning import plan_of
from processor.environment.settings.settings import Settings
from processor.tools.inspect.estimate import Estimate, estimate_events, index_statistics
from processor.tools.inspect.event_kinds import UNREAD, columns_of
from processor.tools.inspect.preview import Preview
from processor.tools.inspect.price import Cost, price_events
from processor.tools.inspect.price_list import Prices
from registry.edits.edit import edited
from registry.edits.operations import completed, remove
from registry.model import Snapshot, Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPrice:
    """The cheapest and the dearest kind of event of the entities that a product reads, in dollars a million events."""

    product: str
    low: Decimal
    high: Decimal


def product_prices(found: Preview, prices: Prices) -> list[ProductPrice]:
    """The prices by product: of the estimates where there are statistics, else with one row for every join; in a batch."""
    by_entity = event_prices(found.costs, found.estimates, prices)
    priced = {
        p: [one for name in reads for one in by_entity.get(name, {}).values()] for p, reads in found.reads.items()
    }
    return [ProductPrice(product=name, low=min(all), high=max(all)) for name, all in priced.items() if all]


def event_prices(
    costs: Iterable[Cost], estimates: Collection[Estimate], prices: Prices
) -> dict[str, dict[str, Decimal]]:
    """Dollars a million events, by entity and kind of event: of the estimates, where there are some; in a batch."""
    by_entity: dict[str, dict[str, Decimal]] = {}
    for cost in costs if not estimates else ():
        dollars = prices.dollars(cost.batch_write_units, cost.batch_read_units)
        by_entity.setdefault(cost.entity, {})[cost.event] = dollars
    for estimate in estimates:
        by_entity.setdefault(estimate.entity, {})[estimate.event] = estimated_dollars(estimate, prices)
    return by_entity


def estimated_dollars(estimate: Estimate, prices: Prices) -> Decimal:
    """Dollars a million events of an estimate."""
    return prices.dollars(Decimal(estimate.write_units), Decimal(estimate.read_units))


class EntitySaving(NamedTuple):
    """The dollars of a million events of an entity, now and without the product: the mean of its kinds of event, as if each came
    as often as the others."""

    entity: str
    now: Decimal
    without: Decimal


def savings_without(
    name: str, found: Preview, stored: Snapshot, settings: Settings, statistics: Statistics | None, prices: Prices
) -> list[EntitySaving]:
    """The savings of the entities that the product reads. `found`: the prices of now."""
    plan = plan_of(completed(edited(stored, remove(stored, name, tombstones=False))))
    costs = price_events(plan, settings)
    index = index_statistics(statistics, plan) if statistics else None
    before = event_prices(found.costs, found.estimates, prices)
    after = event_prices(costs, estimate_events(plan, costs, index) if index and costs else (), prices)
    return [_saving(entity, before[entity], after.get(entity, {}), prices) for entity in found.reads[name]]


def _saving(entity: str, before: Mapping[str, Decimal], after: Mapping[str, Decimal], prices: Prices) -> EntitySaving:
    without = sum((_without(kind, after, prices) for kind in before), Decimal(0))
    return EntitySaving(entity, sum(before.values(), Decimal(0)) / len(before), without / len(before))


def _without(kind: str, after: Mapping[str, Decimal], prices: Prices) -> Decimal:
    """The price of a kind of event: of the dearest kind of the same columns, else of an update that no product reads. Where no
    product reads the entity any more, the row alone is written."""
    if kind in after:
        return after[kind]
    same = [price for name, price in after.items() if columns_of(kind) & columns_of(name)]
    return max(same, default=after.get(UNREAD, prices.write))
