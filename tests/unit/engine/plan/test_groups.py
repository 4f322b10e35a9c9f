"""A root that is a group: its key is what its rows hold, so most changes find it without a request."""

from collections.abc import Mapping

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone, plan_of, requirements_of
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.product.product import group_name
from processor.values import canonical_json
from processor.values.record import Record, Value
from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.errors import RootChanged
from registry.model import KeyPath, Snapshot

ENTITIES = """
sale: {key: [id], columns: {id: int, item: string, shop: int, qty: int, at: timestamp}}
item: {key: [sku], columns: {sku: string, title: string}}
note: {key: [id], columns: {id: int, shop: int, text: string}}
"""
BY_ITEM = """
product: items
root: {group: sale, by: [item]}
fields: {item: item, n: count(*), qty: sum(qty), title: of.title}
join: {of: {one: item, on: {sku: item}}}
"""
BY_SHOP = """
product: shops
root: {group: sale, by: {store: shop, day: "at::date"}, where: qty > 0}
where: count(*) < 10
fields: [store, day]
embed:
  sales: {many: sale, on: {shop: store, "at::date": day}, fields: [id, item]}
  notes: {many: note, on: {shop: store}, value: text}
"""


def plan_with(**products: str) -> Plan:
    return plan_alone(load({"entities.yaml": ENTITIES, **{f"{name}.yaml": text for name, text in products.items()}}), 8)


def changed(trial: Trial, offset: int, entity: str, key: Mapping[str, Value], row: Mapping[str, Value] | None) -> None:
    value = None if row is None else canonical_json.encode({**key, **row})
    trial.batch([Record(topic=entity, partition=0, offset=offset, key=canonical_json.encode(key), value=value)])


def shown(trial: Trial) -> dict[str, Value]:
    """The last value of each key."""
    messages = trial.published.messages
    return {
        (message.key or b"").decode(): None if message.value is None else canonical_json.loads(message.value)
        for message in messages
    }


def test_a_group_is_born_with_its_first_row_and_ends_with_its_last() -> None:
    trial = Trial(plan=plan_with(items=BY_ITEM), settings=Settings())
    changed(trial, 0, "sale", {"id": 1}, {"item": "pen", "qty": 2})
    changed(trial, 1, "sale", {"id": 2}, {"item": "pen", "qty": 3})
    changed(trial, 2, "sale", {"id": 3}, {"item": None, "qty": 9})
    changed(trial, 0, "item", {"sku": "pen"}, {"title": "A pen"})
    changed(trial, 1, "item", {"sku": "ink"}, {"title": "Ink"})
    trial.finish()
    assert shown(trial) == {'{"item":"pen"}': {"item": "pen", "n": 2, "qty": 5, "title": "A pen"}}
    changed(trial, 3, "sale", {"id": 1}, {"item": "ink", "qty": 2})
    changed(trial, 4, "sale", {"id": 2}, None)
    trial.finish()
    assert shown(trial) == {
        '{"item":"pen"}': None,
        '{"item":"ink"}': {"item": "ink", "n": 1, "qty": 2, "title": "Ink"},
    }


def test_a_group_of_expressions_with_joins_of_some_of_its_columns() -> None:
    trial = Trial(plan=plan_with(shops=BY_SHOP), settings=Settings())
    for id_, at in enumerate(["2026-01-01T10:00:00Z", "2026-01-01T23:59:59Z", "2026-01-02T00:00:00Z", None]):
        changed(trial, id_, "sale", {"id": id_}, {"item": "pen", "shop": 7, "qty": 1, "at": at})
    changed(trial, 9, "sale", {"id": 9}, {"shop": 7, "qty": 0, "at": "2026-01-05T10:00:00Z"})
    changed(trial, 0, "note", {"id": 1}, {"shop": 7, "text": "closed"})
    trial.finish()
    found = shown(trial)
    assert found.keys() == {'{"store":7,"day":"2026-01-01"}', '{"store":7,"day":"2026-01-02"}'}
    assert found['{"store":7,"day":"2026-01-01"}'] == {
        "store": 7,
        "day": "2026-01-01",
        "sales": [{"id": 0, "item": "pen"}, {"id": 1, "item": "pen"}],
        "notes": ["closed"],
    }


def test_the_key_of_a_group_is_that_of_its_rows_so_no_request_finds_it() -> None:
    product = plan_with(items=BY_ITEM).products["items"]
    rows, of = product.nodes
    assert (rows.own_slot, rows.parent_columns) == (1, ("item",))
    assert isinstance(rows.up, KeyPath)
    assert isinstance(of.up, KeyPath)
    assert product.ledger.root == "sale by item"
    shops = plan_with(shops=BY_SHOP).products["shops"]
    assert [isinstance(node.up, KeyPath) for node in shops.nodes] == [True, True, False]


def test_products_of_one_group_share_its_rows() -> None:
    more = BY_ITEM.replace("product: items", "product: more").replace("by: [item]", "by: [item], where: qty > 1")
    plan = plan_with(items=BY_ITEM, more=more, shops=BY_SHOP)
    assert len(plan.trees) == 2
    assert plan.trees["sale by item"].products == ("items", "more")
    assert len(plan.trees["sale by item"].nodes) == 2
    assert ("sale", None) not in plan.places["sale"]


def test_groups_by_other_columns_of_one_name_have_trees_of_their_own() -> None:
    by_shop = BY_ITEM.replace("product: items", "product: more").replace("by: [item]", "by: {item: shop::text}")
    plan = plan_with(items=BY_ITEM, more=by_shop)
    assert [tree.products for tree in plan.trees.values()] == [("items",), ("more",)]
    assert {one.ledger for one in plan.products.values()} == {("sale by item", 0), ("sale by item", 1)}


def test_products_that_call_the_column_of_one_group_otherwise_each_have_their_documents() -> None:
    other = "product: other\nroot: {group: sale, by: {article: item}}\nfields: {article: article, n: count(*)}\n"
    trial = Trial(plan=plan_with(items=BY_ITEM, other=other), settings=Settings())
    changed(trial, 0, "sale", {"id": 1}, {"item": "pen", "qty": 2})
    trial.finish()
    assert shown(trial).keys() == {'{"item":"pen"}', '{"article":"pen"}'}


def test_a_column_with_a_comma_in_its_name_is_not_two_columns() -> None:
    assert group_name("sale", ["a, b"]) != group_name("sale", ["a", "b"])


def test_a_plan_reads_the_columns_of_rows_that_make_a_group_and_not_those_of_the_group() -> None:
    plan = plan_with(shops=BY_SHOP, whole="product: whole\nroot: {group: sale, by: {kind: item}}\n")
    assert plan.products["whole"].used == frozenset({"item"})
    assert plan.products["shops"].used == frozenset({"shop", "at"})
    sale = plan.entities["sale"]
    assert sale.used == sale.indexed == frozenset({"id", "item", "shop", "qty", "at"})


def test_a_group_comes_back_from_the_registry() -> None:
    definitions = load({"entities.yaml": ENTITIES, "a.yaml": BY_ITEM, "b.yaml": BY_SHOP})
    empty = Snapshot(version=0, slots=8, entities=(), products=(), assignments=(), joins=())
    stored = edited(empty, apply(empty, requirements_of(definitions), frozenset()))
    plan = plan_of(stored)
    assert {name: one.product for name, one in plan.products.items()} == definitions.products
    for product in definitions.products.values():
        text = canonical_json.dumps(describe_product(product))
        assert load({"entities.yaml": ENTITIES, "p.yaml": text}).products == {product.name: product}
    other = load({"entities.yaml": ENTITIES, "a.yaml": BY_ITEM.replace("[item]", "[item, shop]")})
    with pytest.raises(RootChanged, match="its root was sale by item and is now sale by item, shop"):
        apply(stored, requirements_of(other), frozenset({"sale"}))
