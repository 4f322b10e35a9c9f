"""A hundred products over one state share its rows and its slots."""

import pytest

from benchmarks.definitions import generate_definitions
from benchmarks.steps import generate_records
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial, batches
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from statestore.store import Item

RECORDS = generate_records(300, 25)


def run_trial(plan: Plan) -> Trial:
    trial = Trial(plan=plan, settings=Settings())
    for chunk in batches(RECORDS, 50):
        trial.batch(chunk)
        trial.background_work()
    trial.finish()
    return trial


def rows(trial: Trial) -> dict[str, list[Item]]:
    """The stored rows of each entity, whole, delete markers included."""
    return {entity: trial.store.partition(f"TABLE#{entity}") for entity in trial.plan.entities}


def readers(plan: Plan, column: str) -> set[str]:
    """The products that read this column of pull requests."""
    return {
        name
        for name, node in plan.occurrences["pull_request"]
        if column in ((plan.products[name] if node is None else plan.products[name].nodes[node]).used or ())
    }


@pytest.fixture(scope="module")
def plans() -> tuple[Plan, Plan]:
    one, hundred = (plan_alone(load(generate_definitions(n)), Settings().slots) for n in (1, 100))
    return one, hundred


def test_a_hundred_products_with_the_same_joins_need_the_slots_of_one(plans: tuple[Plan, Plan]) -> None:
    one, hundred = plans
    assert len(hundred.products) == 100
    assert {name: entity.slots for name, entity in hundred.entities.items()} == {
        name: entity.slots for name, entity in one.entities.items()
    }


@pytest.mark.rest
def test_rows_under_a_hundred_products_equal_the_rows_under_one(plans: tuple[Plan, Plan]) -> None:
    one, hundred = map(run_trial, plans)
    assert rows(hundred) == rows(one)
    assert sum(map(len, rows(one).values())) > 100
    assert {dict(m.headers)["statestore.product"] for m in hundred.published.messages} == {
        name.encode() for name in hundred.plan.products
    }


def test_the_generated_products_differ_and_read_what_the_benchmark_changes(plans: tuple[Plan, Plan]) -> None:
    products = plans[1].products.values()
    assert len({(p.product.root, p.product.selection, p.product.joins) for p in products}) == 100
    assert readers(plans[1], "title") == set(plans[1].products)
    assert readers(plans[1], "created_at") == {"user_profile"}
