"""Products of one root: their estimate next to the metered cost of the same events, and what one more product costs."""

from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.clock import VirtualClock
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.inspect.estimate import estimate_events, index_statistics
from processor.tools.inspect.price import price_events
from processor.tools.inspect.statistics import take_statistics
from statestore.memory import MeteredStore
from tests.unit.tools.inspect.test_estimate import record

ENTITIES = """
customer: {key: [id], columns: {id: int, name: string}}
order: {key: [id], columns: {id: int, customer_id: int, total: int}}
card: {key: [id], columns: {id: int, customer_id: int, number: string}}
"""
ORDERS = "orders: {many: order, on: {customer_id: id}, fields: [id, total]}"
CARDS = "cards: {many: card, on: {customer_id: id}, fields: [number]}"
EVENTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("order: update of total", "order", {"id": 7, "customer_id": 2, "total": 2}),
    ("order: update of customer_id (join key)", "order", {"id": 7, "customer_id": 3, "total": 2}),
    ("order: first seen", "order", {"id": 99, "customer_id": 1, "total": 1}),
    ("card: update of number", "card", {"id": 2, "customer_id": 2, "number": "changed"}),
    ("customer: update of name", "customer", {"id": 2, "name": "b"}),
)


class Units(NamedTuple):
    """What an event took: documents, write units and read units."""

    documents: float
    written: float
    read: float


def plan_of_products(of_orders: int, of_both: int = 0) -> Plan:
    """Products of customers: first those that show orders, then those that show cards, too."""
    embeds = [ORDERS] * of_orders + [f"{ORDERS}, {CARDS}"] * of_both
    texts = {
        f"p{n:02}.yaml": f"{{product: p{n:02}, root: customer, fields: [id, name], embed: {{{embed}}}}}"
        for n, embed in enumerate(embeds)
    }
    return plan_alone(load({"entities.yaml": ENTITIES, **texts}), slots=5)


def state_of(plan: Plan) -> Trial:
    """Five customers with eight orders and one card each."""
    clock = VirtualClock()
    trial = Trial(plan=plan, settings=Settings(), clock=clock, other_store=MeteredStore(5, clock=clock.now))
    rows = [("customer", {"id": n, "name": "a"}) for n in range(5)]
    rows += [("order", {"id": n, "customer_id": n % 5, "total": 1}) for n in range(40)]
    rows += [("card", {"id": n, "customer_id": n, "number": "1"}) for n in range(5)]
    trial.batch(record(plan, entity, row, offset) for offset, (entity, row) in enumerate(rows))
    trial.finish()
    return trial


def metered(trial: Trial, entity: str, row: dict[str, Any]) -> Units:
    """The units of an event alone in its batch, settling included."""
    store = trial.store
    assert isinstance(store, MeteredStore)
    before, written, read = trial.tally["published"], store.written, store.read_units
    trial.batch([record(trial.driver.plan, entity, row, 1_000 + trial.tally["batches"])])
    trial.finish()
    return Units(trial.tally["published"] - before, float(store.written - written), float(store.read_units - read))


@pytest.mark.parametrize(("of_orders", "of_both"), [(1, 0), (3, 2), (18, 6)], ids=["one", "five", "two groups"])
def test_the_estimate_of_products_of_one_root_is_near_the_metered_cost(of_orders: int, of_both: int) -> None:
    plan = plan_of_products(of_orders, of_both)
    trial = state_of(plan)
    taken = take_statistics(plan, trial.store, sample=100, random=Random(1), at=datetime(2026, 11, 24, tzinfo=UTC))
    costs = price_events(plan, Settings())
    estimates = estimate_events(plan, costs, index_statistics(taken, plan))
    known = {f"{cost.entity}: {cost.event}": (cost, one) for cost, one in zip(costs, estimates, strict=True)}
    for event, entity, row in EVENTS if of_both else EVENTS[:3]:
        cost, estimate = known[event]
        found = metered(trial, entity, row)
        shared = float(cost.write_units - cost.batch_write_units)
        assert estimate.documents == pytest.approx(found.documents), event
        assert estimate.write_units == pytest.approx(found.written - shared, rel=0.1, abs=1), event
        assert estimate.read_units == pytest.approx(found.read, rel=0.3), event


def test_one_more_product_of_the_same_joins_adds_no_unit_until_its_group_is_full() -> None:
    for event, entity, row in EVENTS[:3]:
        one, two, twenty, more = (metered(state_of(plan_of_products(n)), entity, row) for n in (1, 2, 20, 21))
        roots = one.documents
        assert two == one._replace(documents=2 * roots), event
        assert twenty == one._replace(documents=20 * roots), event
        assert more == Units(21 * roots, one.written + roots, one.read + roots / 2), event
