"""What events would cost without a product: `processor.pricing.price` tries each kind of event on the plan without it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from processor.plan.planning import plan_of
from processor.pricing.estimate import estimate_events, index_statistics
from processor.pricing.event_kinds import UNREAD, columns_of
from processor.pricing.preview import Preview
from processor.pricing.price import price_events
from processor.pricing.price_list import Prices
from processor.pricing.product_prices import event_prices
from processor.settings.settings import Settings
from registry.edits.advance import completed
from registry.edits.edit import edited
from registry.edits.operations import remove
from registry.model import Snapshot, Statistics


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
