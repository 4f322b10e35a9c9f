"""Joins whose columns name the same column of the other side: how the plan finds both sides, and how the SQL prints them.
Then the columns that a product reads by its selections, conditions, orders and joins, at every level.
"""

import json
from textwrap import indent
from typing import Any

import pytest

from processor.engine.plan.plan import JoinPlan, Plan
from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load
from processor.language.product.product import Definitions, Join, align_columns, used_columns
from processor.language.product.sql_printer import product_sql
from registry.model import EdgePath, KeyPath, SlotPath

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
    assert isinstance(node.down, SlotPath)
    assert isinstance(node.up, SlotPath)
    assert plan.entities["game"].slots[node.down.slot] == ("away", "home")
    assert plan.entities["team"].slots[node.up.slot] == ("lead", "lead")


def test_two_columns_that_are_the_whole_key_are_read_by_key_in_the_order_of_the_key() -> None:
    _, node = planned("team", "{one: pair, on: {a: lead, b: lead}}")
    assert (node.child_columns, node.down) == (("b", "a"), KeyPath())
    assert node.parent_columns == ("lead", "lead")


def test_a_key_above_that_the_join_names_twice_is_not_read_by_key() -> None:
    _, node = planned("team", "{many: game, on: {home: id, away: id}}")
    assert node.parent_columns == ("id", "id")
    assert isinstance(node.up, SlotPath)


def edges(entity: str, *fields: str) -> EdgePath:
    return EdgePath(entity=entity, fields=fields)


def test_a_strong_join_and_a_list_join_name_the_column_twice_in_their_edges() -> None:
    _, node = planned("team", "{many: game, on: {home: lead, away: lead}, strong: true}")
    assert (node.down, node.up) == (edges("game", "away", "home"), edges("team", "lead", "lead"))
    _, node = planned("team", '{many: pair, on: {a: "ids[]", b: "ids[]"}}')
    assert (node.down, node.up) == (KeyPath(), edges("team", "ids[]", "ids[]"))


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


COLUMNS = dict.fromkeys("abcdefgh", "int") | {"id": "int"}
ENTITY = {"t": {"key": ["id"], "columns": COLUMNS}}


def read(**product: Any) -> dict[str, str | None]:
    definitions = load(
        {"entities.yaml": json.dumps(ENTITY), "p.json": json.dumps({"product": "p", "root": "t"} | product)}
    )
    found = used_columns(definitions.products["p"])
    return {".".join(at): None if columns is None else "".join(sorted(columns)) for at, columns in found.items()}


def test_a_whole_row_reads_every_column() -> None:
    assert read(embed={"j": {"many": "t", "on": {"a": "b"}}}) == {"": None, "j": None}


def test_conditions_and_order_read_columns_like_the_selection() -> None:
    join = {"many": "t", "on": {"a": "b"}, "where": "c > 1", "order_by": ["-d + e"], "value": "f"}
    assert read(fields=["g"], where="h = 1", embed={"j": join}) == {"": "bgh", "j": "acdef"}


def test_a_join_without_embed_reads_only_the_columns_that_expressions_name() -> None:
    join = {"one": "t", "on": {"a": "b"}, "fields": ["h"], "join": {"k": {"one": "t", "on": {"c": "d"}}}}
    assert read(value="j.e + j.k.f", join={"j": join}) == {"": "b", "j": "ade", "j.k": "cf"}


def test_columns_that_a_level_below_reads_count_at_the_level_of_their_row() -> None:
    lower = {"many": "t", "on": {"a": "b"}, "where": "parent.c > parent.parent.d", "value": "count(*)"}
    join = {"many": "t", "on": {"e": "f"}, "fields": [], "embed": {"k": lower}}
    assert read(fields=[], embed={"j": join}) == {"": "df", "j": "bce", "j.k": "a"}


def test_an_aggregate_reads_its_rows_and_the_row_that_it_belongs_to() -> None:
    many = {"many": "t", "on": {"a": "b"}, "join": {"k": {"one": "t", "on": {"c": "d"}}}}
    assert read(value="sum(j.k.e * f) + count(j)", join={"j": many}) == {"": "bf", "j": "ad", "j.k": "ce"}


def test_an_expression_that_shows_a_join_reads_the_columns_of_its_value() -> None:
    join = {"one": "t", "on": {"a": "b"}, "value": "c + 1"}
    assert read(value="j + 1", join={"j": join}) == {"": "b", "j": "ac"}
    assert read(value="d", join={"j": join}) == {"": "bd", "j": "a"}
