"""What the tools show of documents of groups: paths, prices, lineage, roots and schemas."""

from datetime import UTC, datetime
from random import Random

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import StepRunner
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.product.document_type import document_schema
from processor.tools.inspect.estimate import estimate_events, index_statistics, take_statistics
from processor.tools.inspect.explain import explain, explanation_lines, lineage, lineage_lines, mermaid_lines
from processor.tools.inspect.price import price_events
from processor.tools.inspect.rows import references, roots_in
from processor.values import canonical_json
from processor.values.record import Record

TEXTS = {
    "entities.yaml": """
sale: {key: [id], columns: {id: int, item: string, shop: int, at: timestamp}}
item: {key: [sku], columns: {sku: string, title: string}}
""",
    "items.yaml": """
product: items
root: {group: sale, by: [item]}
fields: {item: item, n: count(*), title: of.title}
join: {of: {one: item, on: {sku: item}}}
""",
    "days.yaml": """
product: days
root: {group: sale, by: {day: "at::date"}}
embed: {sales: {many: sale, on: {"at::date": day}, fields: [id]}}
""",
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_alone(load(TEXTS), 8)


@pytest.fixture(scope="module")
def trial(plan: Plan) -> Trial:
    made = Trial(plan=plan, settings=Settings())
    rows = [{"id": n, "item": "pen", "shop": 1, "at": f"2026-01-0{1 + n % 2}T10:00:00Z"} for n in range(3)]
    made.batch(
        [
            Record(
                topic="sale",
                partition=0,
                offset=n,
                key=canonical_json.encode({"id": n}),
                value=canonical_json.encode(row),
            )
            for n, row in enumerate(rows)
        ]
    )
    made.finish()
    return made


def test_the_paths_of_a_group_need_no_request_up(plan: Plan) -> None:
    lines = list(explanation_lines(explain(plan, plan.products["days"])))
    assert lines[:2] == [
        "days, version 1: a document for each group of sale by at::date, by day",
        "  topic days; rebuilt when at of sale changes",
    ]
    assert lines[4] == "    up    no request: the key of the group is known"
    assert lines[-1].startswith("one document, where every join finds one row: 0 BatchGetItem, 1 Query")
    assert '    root["days<br>a document for each group of sale, by day"]' in mermaid_lines(plan, plan.products["days"])


def test_a_moved_row_of_a_group_makes_two_documents(plan: Plan) -> None:
    documents = {(cost.entity, cost.event): cost.documents for cost in price_events(plan, Settings())}
    assert documents["sale", "first seen"] == 2
    assert documents["sale", "update of item (join key)"] == 2
    assert documents["item", "update of title"] == 1
    assert documents["sale", "delete"] == 2


def test_an_event_makes_no_more_documents_than_there_are_groups(plan: Plan, trial: Trial) -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)
    taken = take_statistics(plan, trial.driver.store, sample=100, random=Random(1), at=at)
    costs = price_events(plan, Settings())
    found = {(one.entity, one.event): one for one in estimate_events(plan, costs, index_statistics(taken, plan))}
    assert found["sale", "update of item (join key)"].documents == 1  # all rows are of the pen


def test_the_roots_are_the_values_of_the_rows(plan: Plan, trial: Trial) -> None:
    store = trial.driver.store
    assert list(roots_in(store, plan, plan.products["items"])) == ["pen"]
    assert list(roots_in(store, plan, plan.products["days"])) == ["2026-01-01", "2026-01-02"]


def test_the_lineage_of_a_group_begins_with_its_rows(plan: Plan, trial: Trial) -> None:
    runner = StepRunner(store=trial.driver.store)
    found, missing = runner.run([lineage(plan, plan.products["items"], key, {}) for key in ("pen", "ink")])
    lines = list(lineage_lines(found, {}))
    assert lines[0] == "sale by item pen; by GSI_2 = 'pen' AND begins_with(GSI_SK, 'sale#')"
    assert lines[2] == "    sale 0; topic sale, partition 0, offset 0, epoch 0"
    assert len(list(found.origins())) == 3
    assert (missing.root, missing.reason) == (None, "no row of sale is in this group")


def test_the_rows_of_a_group_refer_to_each_other(plan: Plan, trial: Trial) -> None:
    row = {"id": 1, "item": "pen", "shop": 1, "at": "2026-01-02T10:00:00Z"}
    (found,) = StepRunner(store=trial.driver.store).run([references(plan, "sale", row)])
    assert {(one.entity, len(one.keys)) for one in found if one.columns == ("item",)} == {("sale", 2)}


def test_the_columns_of_a_group_are_never_null(plan: Plan) -> None:
    schema = document_schema(plan.products["days"].product, plan.declared_entities)
    assert schema["properties"]["day"] == {"type": "string", "format": "date"}
