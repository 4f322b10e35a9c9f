"""The prices of events by product, in dollars: of the estimates where there are statistics, else with one row for every join."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from decimal import Decimal

from processor.pricing.estimate import Estimate
from processor.pricing.preview import Preview
from processor.pricing.price import Cost
from processor.pricing.price_list import Prices


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
