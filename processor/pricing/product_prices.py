"""The prices of events by product, in dollars: of the estimates where there are statistics, else with one row for every join."""

from dataclasses import dataclass
from decimal import Decimal

from processor.pricing.estimate import Estimate
from processor.pricing.preview import Preview
from processor.pricing.price_list import Prices


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPrice:
    """The cheapest and the dearest kind of event of the entities that a product reads, in dollars a million events."""

    product: str
    low: Decimal
    high: Decimal


def product_prices(found: Preview, prices: Prices) -> list[ProductPrice]:
    """The prices by product: of the estimates where there are statistics, else with one row for every join; in a batch."""
    by_entity: dict[str, list[Decimal]] = {}
    for cost in found.costs if not found.estimates else ():
        dollars = prices.dollars(cost.batch_write_units, cost.batch_read_units)
        by_entity.setdefault(cost.entity, []).append(dollars)
    for estimate in found.estimates:
        by_entity.setdefault(estimate.entity, []).append(estimated_dollars(estimate, prices))
    priced = {p: [one for entity in reads for one in by_entity.get(entity, ())] for p, reads in found.reads.items()}
    return [ProductPrice(product=name, low=min(all), high=max(all)) for name, all in priced.items() if all]


def estimated_dollars(estimate: Estimate, prices: Prices) -> Decimal:
    """Dollars a million events of an estimate."""
    return prices.dollars(Decimal(estimate.write_units), Decimal(estimate.read_units))
