"""Estimates from the statistics of a state, compared with the metered cost of the same events in that state.

Products of one root: their estimate next to the metered cost of the same events, and what one more product costs.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load, read_directory
from processor.tools.inspect.estimate import Estimate, estimate_events, index_statistics, take_statistics
from processor.tools.inspect.price import Cost, price_events
from processor.values import canonical_json
from processor.values.record import Record
from statestore.memory import MeteredStore

PLAN = plan_alone(load(read_directory(Path(__file__).parents[4] / "examples" / "github")), slots=20)
USERS, STARS, REPOS = 40, 30, 120
STARRED = Random(7).sample([n % REPOS for n in range(USERS * STARS)], USERS * STARS)
Row = dict[str, Any]


def star(user: int, repo: int, at: str = "2015-01-01T00:00:00Z") -> Row:
    return {"username": f"user{user}", "repo_name": f"repo{repo}", "repo_owner": "acme", "created_at": at}


def rows() -> Iterator[tuple[str, Row]]:
    """Users with 30 stars, two pull requests of two kilobytes and a payment each; repositories with ten stars each."""
    for n in range(USERS):
        yield "user", {"id": n, "email": f"{n}@example.org", "username": f"user{n}", "registered_at": None}
        yield "payment_info", {"id": n, "user_id": n, "verified": True}
        for k in range(STARS):
            yield "star", star(n, STARRED[n * STARS + k])
        for k in range(2):
            pull = {
                "repo": "repo1",
                "repo_owner": "acme",
                "index": n * 2 + k,
                "author": f"user{n}",
                "title": "x" * 2000,
            }
            yield "pull_request", pull | {"status": "open", "created_at": None}
    for n in range(REPOS):
        yield "repo", repo(n)


def repo(number: int, description: str = "A tool") -> Row:
    return {"owner": "acme", "name": f"repo{number}", "description": description, "star_count": 1}


def record(plan: Plan, entity: str, row: Row, offset: int) -> Record:
    key = canonical_json.encode({column: row[column] for column in plan.entities[entity].entity.key})
    return Record(topic=entity, partition=0, offset=offset, key=key, value=canonical_json.encode(row))


@pytest.fixture(scope="module")
def state() -> Trial:
    clock = VirtualClock()
    trial = Trial(plan=PLAN, settings=Settings(), clock=clock, other_store=MeteredStore(20, clock=clock.now))
    trial.batch(record(PLAN, entity, row, offset) for offset, (entity, row) in enumerate(rows()))
    trial.finish()
    return trial


@pytest.fixture(scope="module")
def estimated(state: Trial) -> dict[str, tuple[Estimate, Cost]]:
    """The estimate and the one-row price of each event."""
    taken = take_statistics(PLAN, state.store, sample=100, random=Random(1), at=datetime(2026, 11, 21, tzinfo=UTC))
    costs = price_events(PLAN, Settings())
    found = estimate_events(PLAN, costs, index_statistics(taken, PLAN))
    return {f"{cost.entity}: {cost.event}": (estimate, cost) for estimate, cost in zip(found, costs, strict=True)}


@pytest.mark.parametrize(
    ("event", "entity", "row", "documents"),
    [
        ("repo: update of description", "repo", repo(7, "The tool"), 10),
        ("repo: first seen", "repo", repo(999), 0),
        ("star: update of created_at", "star", star(1, STARRED[STARS], "2016-01-01T00:00:00Z"), 1),
        ("star: first seen", "star", star(6, 7), 1),
        ("payment_info: update of verified", "payment_info", {"id": 3, "user_id": 3, "verified": False}, 1),
        ("payment_info: update of user_id (join key)", "payment_info", {"id": 3, "user_id": 1, "verified": False}, 2),
    ],
)
def test_an_estimate_is_near_the_metered_cost_of_the_event_less_the_part_that_a_batch_shares(
    state: Trial, estimated: dict[str, tuple[Estimate, Cost]], event: str, entity: str, row: Row, documents: int
) -> None:
    store = state.store
    assert isinstance(store, MeteredStore)
    written, read = store.written, store.read_units
    state.batch([record(PLAN, entity, row, 10_000 + state.tally["batches"])])
    state.finish()

    estimate, cost = estimated[event]
    shared = float(cost.write_units - cost.batch_write_units)
    assert estimate.documents == pytest.approx(documents, rel=0.1)
    assert estimate.write_units == pytest.approx(store.written - written - shared, rel=0.1, abs=1)
    units = float(store.read_units - read)
    if event == "repo: update of description":  # its ten documents show all repositories: a range reads them
        assert units < estimate.read_units
    else:
        assert estimate.read_units == pytest.approx(units, rel=0.3)


def test_a_join_without_statistics_counts_as_finding_one_row(state: Trial) -> None:
    taken = take_statistics(PLAN, MeteredStore(20), sample=1, random=Random(1), at=datetime(2026, 11, 21, tzinfo=UTC))
    costs = price_events(PLAN, Settings())
    for cost, estimate in zip(costs, estimate_events(PLAN, costs, index_statistics(taken, PLAN)), strict=True):
        assert estimate.read_units == cost.batch_read_units
        assert estimate.documents >= cost.documents


SHOP = {
    "entities.yaml": """
customer: {key: [id], columns: {id: int, name: string}}
order: {key: [id], columns: {id: int, customer_id: int, total: int, paid: bool}}
""",
    "customers.yaml": """
product: customers
root: customer
fields: [id, name]
embed:
  orders: {many: order, on: {customer_id: id}, fields: [id, total, paid]}
  spent: {many: order, on: {customer_id: id}, value: sum(total)}
  open: {many: order, on: {customer_id: id}, where: not paid, fields: [id, total]}
""",
    "orders.yaml": """
product: orders
root: order
fields: [id]
embed:
  customer:
    one: customer
    on: {id: customer_id}
    fields: [name]
    embed:
      others: {many: order, on: {customer_id: id}, fields: [id, paid]}
""",
}


def test_a_root_counts_once_for_all_embeds_that_lead_to_it() -> None:
    """Five customers have eight orders each: an order is in the document of its customer, and in those of eight orders."""
    plan = plan_alone(load(SHOP), slots=20)
    clock = VirtualClock()
    trial = Trial(plan=plan, settings=Settings(), clock=clock, other_store=MeteredStore(20, clock=clock.now))
    found = [("customer", {"id": n, "name": "a"}) for n in range(5)]
    found += [("order", {"id": n, "customer_id": n % 5, "total": 1, "paid": False}) for n in range(40)]
    trial.batch(record(plan, entity, row, offset) for offset, (entity, row) in enumerate(found))
    trial.finish()
    taken = take_statistics(plan, trial.store, sample=100, random=Random(1), at=datetime(2026, 11, 21, tzinfo=UTC))
    costs = price_events(plan, Settings())
    estimates = {
        f"{one.entity}: {one.event}": one for one in estimate_events(plan, costs, index_statistics(taken, plan))
    }
    for event, entity, row, documents in (
        ("order: update of total", "order", {"id": 7, "customer_id": 2, "total": 2, "paid": False}, 1),
        ("customer: update of name", "customer", {"id": 2, "name": "b"}, 9),
    ):
        before = trial.tally["published"]
        trial.batch([record(plan, entity, row, 1000)])
        trial.finish()
        assert trial.tally["published"] - before == documents
        assert estimates[event].documents == pytest.approx(documents)


def test_a_wide_row_costs_its_bytes_in_the_table_and_only_what_products_read_in_the_indexes() -> None:
    plan = plan_alone(load(SHOP), slots=20)
    clock = VirtualClock()
    store = MeteredStore(20, clock=clock.now)
    trial = Trial(plan=plan, settings=Settings(), clock=clock, other_store=store)
    note = Random(1).randbytes(3_000).hex()
    found = [("customer", {"id": n, "name": "a"}) for n in range(5)]
    found += [("order", {"id": n, "customer_id": n % 5, "total": 1, "paid": False, "note": note}) for n in range(40)]
    trial.batch(record(plan, entity, row, offset) for offset, (entity, row) in enumerate(found))
    trial.finish()
    taken = take_statistics(plan, store, sample=100, random=Random(1), at=datetime(2026, 11, 21, tzinfo=UTC))
    (order,) = [one for one in taken.entities if one.entity == "order"]
    assert order.entry_bytes is not None
    assert order.undeclared_bytes is not None
    assert order.entry_bytes < 300 < 3_000 < order.undeclared_bytes < order.mean_bytes
    costs = price_events(plan, Settings())

    def estimate_of(event: str, some: Plan) -> Estimate:
        estimates = estimate_events(some, costs, index_statistics(taken, some))
        return next(one for one in estimates if f"{one.entity}: {one.event}" == event)

    before = store.read_units
    trial.batch([record(plan, "customer", {"id": 2, "name": "b"}, 1000)])
    trial.finish()
    estimate = estimate_of("customer: update of name", plan)
    assert 7.5 == store.read_units - before < estimate.read_units == 15  # the way up shows the wide roots

    kept = plan_alone(load(SHOP | {"entities.yaml": f"keep: declared{SHOP['entities.yaml']}"}), slots=20)
    more = ceil(order.mean_bytes / 1024) - 1
    for event in ("order: update of total", "order: update of nothing that is used"):
        assert estimate_of(event, plan).write_units - estimate_of(event, kept).write_units == pytest.approx(more)


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
