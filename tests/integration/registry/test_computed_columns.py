"""Computed columns and expressions in joins, in the database: slots hold expressions, and live products keep theirs."""

import pytest

from processor.engine.plan.planning import check_after, plan_of, requirements_of
from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from registry.errors import ColumnUsed
from registry.fields import shown_fields
from registry.model import SlotPath
from registry.repository import Registry

ENTITIES = """
shop: {key: [id], columns: {id: int, geohash: string, cell: {type: string, as: "left(geohash, 3)"}}}
visit: {key: [no], columns: {no: int, at: string, email: string, meta: json}}
user: {key: [id], columns: {id: int, email: string}}
"""
FINER = ENTITIES.replace("geohash, 3", "geohash, 5")
PRODUCT = """
product: visits
root: visit
fields: {no: no, cells: max(shops.cell)}
join:
  shops: {many: shop, on: {cell: "left(at, 3)"}}
embed:
  users: {many: user, on: {lower(email): lower(email)}, value: id}
  seen: {many: user, on: {id: "meta.users[].id"}, value: email}
"""


def definitions(entities: str) -> Definitions:
    return load({"entities.yaml": entities, "product.yaml": PRODUCT})


def apply(registry: Registry, entities: str) -> None:
    given = definitions(entities)
    registry.apply(requirements_of(given), who="me", why="test", check=check_after(given, "rejects"))


def test_a_slot_holds_an_expression_of_its_row(registry: Registry) -> None:
    apply(registry, ENTITIES)
    compiled = plan_of(registry.snapshot())
    held = {name: sorted(map(shown_fields, one.slots.values())) for name, one in compiled.entities.items()}
    assert held == {
        "shop": ["left(geohash, 3)"], "visit": ["left(at, 3)", "lower(email)"], "user": ["lower(email)"],
    }  # fmt: skip
    assert list(map(shown_fields, compiled.entities["visit"].edges.values())) == ["meta #> '{users}'[].id::number"]
    shop = compiled.entities["shop"]
    assert shop.slots_of({"id": 1, "geohash": "u4pru"}) == shop.slots_of({"id": 2, "geohash": "u4px"})
    assert shop.indexed == frozenset(["id", "geohash"])
    assert registry.apply(requirements_of(definitions(ENTITIES)), who="me", why="again").changes == ()


def test_a_live_product_keeps_its_expression_until_its_next_version_has_its_slots(registry: Registry) -> None:
    apply(registry, ENTITIES)
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, registry.snapshot().version)
    apply(registry, FINER)
    found = registry.snapshot()
    texts = [one.definition["computed"]["shop"]["cell"]["as"] for one in (*found.products, *found.waiting)]
    assert texts == ["left(geohash, 3)", "left(geohash, 5)"]
    shops = plan_of(found).products["visits"].nodes[0]
    assert shown_fields(shops.child_columns) == "left(geohash, 3)"
    assert isinstance(shops.down, SlotPath)


def test_a_column_that_an_expression_of_a_slot_reads_stays_declared(registry: Registry) -> None:
    apply(registry, ENTITIES)
    without = ENTITIES.replace(
        "user: {key: [id], columns: {id: int, email: string}}", "user: {key: [id], columns: {id: int}}"
    )
    product = "{product: visits, root: visit, fields: [no]}"
    given = load({"entities.yaml": without, "product.yaml": product})
    with pytest.raises(ColumnUsed, match="email"):
        registry.apply(requirements_of(given), who="me", why="test", check=check_after(given, "rejects"))
