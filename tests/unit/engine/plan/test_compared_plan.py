"""How a plan reads columns that say how their text compares, and how a change of these words reaches products."""

import json
from random import Random
from textwrap import dedent

import pytest

from processor.engine.plan.planning import check_after, plan_alone, plan_of, requirements_of
from processor.language.definitions.describe import describe_entity, describe_product
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.edits.operations import completed
from registry.model import KeyPath, SlotPath, Snapshot
from tests.integration.product.products import draw_compared_definitions

ENTITIES = """
    country: {key: [code], columns: {code: COLUMN, name: string}}
    customer: {key: [id], columns: {id: int, country: COLUMN, status: STATUS, tags: TAGS, seen: "json[]"}}
"""
PRODUCT = """
    product: customers
    root: customer
    fields: [id, status]
    embed: {country: {one: country, on: {code: country}, value: name}}
"""
ACTIVE = "where: status = 'active'"


def definitions(
    column: str = "string", status: str = "string", tags: str = '"string[]"', product: str = PRODUCT, more: str = ""
) -> Definitions:
    entities = dedent(ENTITIES).replace("COLUMN", column).replace("STATUS", status).replace("TAGS", tags)
    return load({"entities.yaml": entities, "product.yaml": f"{dedent(product)}{more}\n"})


BOTH = "{type: string, compare: [trimmed, ci]}"
CI = "{type: string, compare: ci}"


def registry(*given: Definitions, has_run: bool = True) -> Snapshot:
    """The registry after these applies, the first of them on an empty registry."""
    snapshot = Snapshot(version=0, slots=20, entities=(), products=(), assignments=(), joins=())
    for one in given:
        run = {entity.name for entity in snapshot.entities} if has_run else set()
        after = edited(snapshot, apply(snapshot, requirements_of(one), run))
        check_after(one, "rejects")(snapshot, after)
        snapshot = after
    return snapshot


def test_a_key_that_compares_in_its_own_way_is_read_through_an_index_of_folded_text() -> None:
    plan = plan_alone(definitions(BOTH), 5)
    (node,) = plan.products["customers"].nodes
    assert (node.child_columns, node.parent_columns) == (("code::ci+trimmed",), ("country::ci+trimmed",))
    assert isinstance(node.down, SlotPath)
    assert plan.entities["country"].slots_of({"code": "DE ", "name": None}) == {node.down.slot: "de"}
    assert plan.entities["country"].key("DE ") == ("TABLE#country", "DE ")


def test_columns_without_the_word_keep_their_key_read() -> None:
    plan = plan_alone(definitions(), 5)
    (node,) = plan.products["customers"].nodes
    assert isinstance(node.down, KeyPath)
    assert [entity.converted for entity in plan.entities.values()] == [(), ()]


def test_the_side_without_the_word_compares_as_the_other() -> None:
    given = definitions(tags='{type: "string[]", compare: ci}').entities
    texts = {"entities.yaml": json.dumps({name: describe_entity(entity) for name, entity in given.items()})}
    product = """
        product: tagged
        root: customer
        embed: {countries: {many: country, on: {code: "tags[]"}}, met: {many: country, on: {code: "seen[].at"}}}
    """
    plan = plan_alone(load({**texts, "product.yaml": dedent(product)}), 5)
    sides = [(node.child_columns, node.parent_columns) for node in plan.products["tagged"].nodes]
    assert sides == [(("code::ci",), ("tags[]::ci",)), (("code",), ("seen[].at::string",))]
    edges = plan.entities["customer"].edges_of({"tags": ["A", "a", None], "seen": [{"at": "A"}]})
    assert sorted(edges or ()) == [("seen[].at::string", "A"), ("tags[]::ci", "a")]


@pytest.mark.parametrize(("more", "joined"), [("", BOTH), (ACTIVE, "string")])
def test_definitions_with_compare_are_read_back(more: str, joined: str) -> None:
    found = definitions(joined, CI, more=more)
    texts = {"entities.yaml": json.dumps({name: describe_entity(one) for name, one in found.entities.items()})}
    read = load({**texts, "product.json": json.dumps(describe_product(found.products["customers"]))})
    assert read == found


@pytest.mark.parametrize("seed", range(50))
def test_any_product_over_columns_that_compare_in_their_own_way_is_read_back_from_the_registry(seed: int) -> None:
    found = draw_compared_definitions(Random(seed))
    assert plan_of(registry(found)).products["p"].product == found.products["p"]


def test_another_word_of_a_joined_column_waits_for_its_slots_while_the_live_product_joins_as_before() -> None:
    before, after = definitions(), definitions(BOTH)
    snapshot = registry(before, after)
    assert [(one.name, one.version) for one in snapshot.products] == [("customers", 1)]
    assert [(one.name, one.version) for one in snapshot.waiting] == [("customers", 2)]
    planned = {(one.entity, one.columns): one.state for one in snapshot.assignments}
    assert planned[("country", ("code::ci+trimmed",))] == "planned"
    (node,) = plan_of(snapshot).products["customers"].nodes
    assert (node.child_columns, node.parent_columns) == (("code",), ("country",))
    (node,) = plan_of(completed(snapshot)).products["customers"].nodes
    assert (node.child_columns, node.parent_columns) == (("code::ci+trimmed",), ("country::ci+trimmed",))


def test_another_word_of_a_column_in_a_condition_is_a_new_version_of_the_product() -> None:
    before, after = definitions(more=ACTIVE), definitions(status=CI, more=ACTIVE)
    snapshot = registry(before, after)
    assert [one.version for one in (*snapshot.products, *snapshot.waiting)] == [1, 2]
    assert plan_of(snapshot).products["customers"].product == before.products["customers"]
    assert registry(before, after, after) == snapshot


def test_another_word_of_a_column_that_no_expression_reads_changes_no_product() -> None:
    whole = PRODUCT.replace("    fields: [id, status]\n", "").replace("country: {one", "from: {one")
    snapshot = registry(definitions(product=whole), definitions(status=CI, product=whole))
    assert [one.version for one in snapshot.products] == [1]
    assert not snapshot.waiting
    listed = registry(definitions(), definitions(status=CI))
    assert [one.version for one in (*listed.products, *listed.waiting)] == [1]


def test_a_stored_product_of_other_definitions_keeps_its_way_to_compare() -> None:
    both = definitions(BOTH, more=ACTIVE)
    entities = {name: describe_entity(one) for name, one in definitions().entities.items()}
    other = load({"entities.yaml": json.dumps(entities)})
    snapshot = registry(both, other)
    product = plan_of(snapshot).products["customers"]
    assert product.nodes[0].parent_columns == ("country::ci+trimmed",)
    assert product.product == both.products["customers"]
