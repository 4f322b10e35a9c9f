"""A hundred products over one state: they share its rows and slots."""

import pytest

from benchmarks.definitions import generated
from benchmarks.steps import history
from processor.definitions.load import load
from processor.model.plan import Plan
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import Trial, batches
from statestore.store import Item

RECORDS = history(300, 25)


def told(plan: Plan) -> Trial:
    trial = Trial(plan=plan, settings=Settings())
    for chunk in batches(RECORDS, 50):
        trial.batch(chunk)
        trial.settle()
    trial.finish()
    return trial


def rows(trial: Trial) -> dict[str, list[Item]]:
    """The stored rows of each entity, whole, delete markers included."""
    return {entity: trial.store.partition(f"TABLE#{entity}") for entity in trial.plan.entities}


def readers(plan: Plan, column: str) -> set[str]:
    """The products that read this column of pull requests."""
    return {
        name
        for name, node in plan.places["pull_request"]
        if column in ((plan.products[name] if node is None else plan.products[name].nodes[node]).used or ())
    }


@pytest.fixture(scope="module")
def plans() -> tuple[Plan, Plan]:
    one, hundred = (plan_alone(load(generated(n)), Settings().slots) for n in (1, 100))
    return one, hundred


def test_a_hundred_products_need_no_slot_that_the_joins_of_one_do_not(plans: tuple[Plan, Plan]) -> None:
    one, hundred = plans
    assert len(hundred.products) == 100
    assert {name: entity.slots for name, entity in hundred.entities.items()} == {
        name: entity.slots for name, entity in one.entities.items()
    }


def test_rows_under_a_hundred_products_are_those_under_one_to_the_byte(plans: tuple[Plan, Plan]) -> None:
    one, hundred = map(told, plans)
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
