"""The plan as one JSON object."""

from dataclasses import asdict
from decimal import Decimal

from processor.cli.printing.plan_text import summary
from processor.tools.inspect.preview import Preview, estimated_dollars, product_prices
from processor.tools.inspect.prices import Prices


def plan_json(found: Preview, prices: Prices) -> dict[str, object]:
    """All that `plan` shows, with its prices in dollars a million events."""
    priced = [
        {
            **{name: float(value) if isinstance(value, Decimal) else value for name, value in asdict(cost).items()},
            "dollars_per_million": float(prices.dollars(cost.write_units, cost.read_units)),
            "batch_dollars_per_million": float(prices.dollars(cost.batch_write_units, cost.batch_read_units)),
        }
        for cost in found.costs
    ]
    listed = {name: str(value) if isinstance(value, Decimal) else value for name, value in asdict(prices).items()}
    estimated = [
        {**asdict(one), "dollars_per_million": float(estimated_dollars(one, prices))} for one in found.estimates
    ]
    by_product = [
        {"product": p.product, "from": float(p.low), "to": float(p.high)} for p in product_prices(found, prices)
    ]
    taken = found.taken_at.isoformat() if found.taken_at else None
    return {
        "summary": summary(found, prices),
        **asdict(found),
        "taken_at": taken,
        "prices": listed,
        "costs": priced,
        "estimates": estimated,
        "product_prices": by_product,
        "errors": [],
    }
