"""Joins whose columns name the same column of the other side: how the plan finds both sides, and how the SQL prints them."""

from textwrap import indent

import pytest

from processor.definitions.load import load
from processor.plan.access import EdgeRead, KeyRead, SlotRead
from processor.plan.plan import Plan
from processor.plan.planning import plan_alone
from processor.plan.product_plan import JoinPlan
from processor.product.product import Definitions, Join, align_columns
from processor.product.sql_printer import product_sql

ENTITIES = """
team: {key: [id], columns: {id: int, lead: int, ids: "int[]"}}
game: {key: [id], columns: {id: int, home: int, away: int}}
pair: {key: [b, a], columns: {a: int, b: int}}
"""


def definitions(root: str, join: str) -> Definitions:
    product = f"product: p\nroot: {root}\nembed:\n  j: {join}\n"
    return load({"entities.yaml": ENTITIES, "p.yaml": product})


def planned(root: str, join: str) -> tuple[Plan, JoinPlan]:
    plan = plan_alone(definitions(root, join), slots=20)
    (node,) = plan.products["p"].nodes
    return plan, node


def test_two_columns_that_equal_one_above_make_it_stand_twice() -> None:
    plan, node = planned("team", "{many: game, on: {home: lead, away: lead}}")
    assert (node.child_columns, node.parent_columns) == (("away", "home"), ("lead", "lead"))
    assert isinstance(node.down, SlotRead)
    assert isinstance(node.up, SlotRead)
    assert plan.entities["game"].slots[node.down.slot] == ("away", "home")
    assert plan.entities["team"].slots[node.up.slot] == ("lead", "lead")


def test_two_columns_that_are_the_whole_key_are_read_by_key_in_the_order_of_the_key() -> None:
    _, node = planned("team", "{one: pair, on: {a: lead, b: lead}}")
    assert (node.child_columns, node.down) == (("b", "a"), KeyRead())
    assert node.parent_columns == ("lead", "lead")


def test_a_key_above_that_the_join_names_twice_is_not_read_by_key() -> None:
    _, node = planned("team", "{many: game, on: {home: id, away: id}}")
    assert node.parent_columns == ("id", "id")
    assert isinstance(node.up, SlotRead)


def test_a_strong_join_and_a_list_join_name_the_column_twice_in_their_edges() -> None:
    _, node = planned("team", "{many: game, on: {home: lead, away: lead}, strong: true}")
    assert (node.down, node.up) == (EdgeRead(fields="away#home"), EdgeRead(fields="lead#lead"))
    _, node = planned("team", '{many: pair, on: {a: "ids[]", b: "ids[]"}}')
    assert (node.down, node.up) == (KeyRead(), EdgeRead(fields="ids[]#ids[]"))


@pytest.mark.parametrize("on", [(("id", "home"), ("id", "away")), (("id", "away"), ("id", "home"))])
def test_a_column_that_equals_two_columns_above_counts_twice(on: tuple[tuple[str, str], ...]) -> None:
    entities = load({"entities.yaml": ENTITIES}).entities
    join = Join(name="j", entity="team", many=False, shown=True, on=on)
    assert align_columns(join, entities["team"], entities["game"]) == (("id", "id"), ("away", "home"))


def test_the_printed_query_has_every_condition() -> None:
    known = definitions("team", "{many: game, on: {home: lead, away: lead}}")
    words = " ".join(product_sql(known.products["p"], known.entities).split())
    assert 'WHERE t1."home" = t0."lead" AND t1."away" = t0."lead"' in words


def test_a_product_given_as_sql_may_equate_two_columns_with_one() -> None:
    query = "select t.id, g.id as game from team t left join game g on g.home = t.lead and t.lead = g.away"
    known = load({"entities.yaml": ENTITIES, "p.yaml": "product: p\nsql: |\n" + indent(query, "  ")})
    (join,) = known.products["p"].joins
    assert join.on == (("home", "lead"), ("away", "lead"))
