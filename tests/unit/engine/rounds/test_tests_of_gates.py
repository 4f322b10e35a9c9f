"""Tests of products whose documents wait: time passes between changes, and before the test looks."""

from textwrap import dedent

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import run_case
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.language.definitions.product_tests import read_cases
from tests.unit.engine.rounds.test_gates import ENTITIES, PRODUCT

OLD = "given: {order: [{id: 5, total: 1}]}"
TOTAL_2 = "- {topic: app.public.orders, key: {id: 5}, value: {id: 5, total: 2}}"
TOTAL_3 = "- {topic: app.public.orders, key: {id: 5}, value: {id: 5, total: 3}}"


def failures(publish: str, total: int | None, *changes: str) -> list[str]:
    """The failures of a test that expects this total after these changes."""
    definitions = load({"entities.yaml": ENTITIES, "bill.yaml": f"{PRODUCT}publish: {publish}"})
    lines = "\n".join(f"    {change}" for change in changes)
    text = f"- test: t\n  {OLD}\n  changes:\n{lines}\n  contains: {{'5': {{total: {total}}}}}\n"
    (case,) = read_cases({"tests/t.yaml": text}, definitions)
    return [failure.what for failure in run_case(case, plan_alone(definitions, slots=5), Settings())]


def test_a_document_is_out_when_its_root_was_quiet_for_so_long_and_no_sooner() -> None:
    assert failures("{quiet: 2 s}", 1, TOTAL_2, "- after: 1999 ms") == []
    assert failures("{quiet: 2 s}", 2, TOTAL_2, "- after: 2 s") == []
    assert failures("{quiet: 2 s}", 1, TOTAL_2, "- after: 1 s", TOTAL_3, "- after: 1500 ms") == []
    assert (
        failures("{quiet: 300 ms}", 3, TOTAL_2, "- after: 200 ms", TOTAL_3, "- after: 100 ms", "- after: 200 ms") == []
    )


def test_the_second_message_of_a_root_keeps_its_distance() -> None:
    between = (TOTAL_2, "- after: 1 s", TOTAL_3)
    assert failures("{every: 30 s}", 2, *between, "- after: 28 s") == []
    assert failures("{every: 30 s}", 3, *between, "- after: 29 s") == []


def test_without_a_time_at_the_end_a_test_looks_when_all_documents_are_out() -> None:
    assert failures("{quiet: 1 h, at_most: 2 h}", 3, TOTAL_2, "- after: 1 min", TOTAL_3) == []


def test_a_transaction_that_is_not_complete_holds_its_document() -> None:
    source = "source: {connector: postgresql, schema: public, table: orders}"
    block = 'transaction: {id: "7:1", total_order: 1, data_collection_order: 1}'
    value = f"{{op: u, before: null, after: {{id: 5, total: 2}}, {source}, {block}}}"
    order = f"- {{topic: app.public.orders, key: {{id: 5}}, value: {value}}}"
    end = (
        '- {topic: app.transaction, key: {id: "7:9"}, value: {status: END, id: "7:9", '
        "data_collections: [{data_collection: public.orders, event_count: 1}]}}"
    )
    assert failures("{transactions: whole}", 1, order, "- after: 59 s") == []
    assert failures("{transactions: whole}", 2, order, "- after: 1 s", end, "- after: 1 ms") == []


@pytest.mark.parametrize(
    ("pause", "problem"),
    [
        (
            "{after: 2}",
            "`after` is `2`, which has no unit; write a duration with its unit: `500 ms`, `2 s`, `5 min` or `1 h`",
        ),
        ("{after: soon}", "`after` is `soon`, which is no duration; write a duration with its unit"),
        ("{after: 2 s, topic: star}", "a pause has no key `topic`; write one of: after"),
    ],
)
def test_a_wrong_pause_is_named_with_its_place_and_its_cure(pause: str, problem: str) -> None:
    definitions = load({"entities.yaml": ENTITIES, "bill.yaml": PRODUCT})
    text = dedent(f"""
        - test: t
          changes:
            - {pause}
          expect: {{"5": null}}
        """)
    with pytest.raises(DefinitionError) as caught:
        read_cases({"tests/t.yaml": text}, definitions)
    (found,) = map(str, caught.value.problems)
    assert found.startswith("tests/t.yaml:4:"), found
    assert problem in found
