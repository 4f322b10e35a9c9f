"""PostgreSQL and the steps agree on the aggregates that make lists and objects, and on `distinct`, `order by` and `filter`."""

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.values import canonical_json
from tests.integration.product.conftest import Both, Rows

ENTITIES = """
shop: {key: [id], columns: {id: int, name: string}}
sale:
  key: [id]
  columns:
    id: int
    shop: int
    item: string
    kind: {type: string, compare: ci}
    price: "decimal(8,2)"
    weight: float
    paid: bool
    day: date
    at: timestamp
    extra: json
    tags: "string[]"
    times: "timestamp[]"
"""
ROWS: Rows = {
    "shop": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}, {"id": 3, "name": "three"}],
    "sale": [
        {"id": 1, "shop": 1, "item": "pen", "kind": "A", "price": "1.50", "weight": 0.5, "paid": True, "day": "2026-01-02",
         "at": "2026-01-02T03:04:05.678Z", "extra": {"a": [1, None]}, "tags": ["x", None], "times": ["2026-01-01T00:00:00Z"]},
        {"id": 2, "shop": 1, "item": "ink", "kind": "a", "price": "1.5", "weight": None, "paid": None, "day": "2026-01-01",
         "at": "2026-01-02T03:04:05.678Z", "extra": None, "tags": None, "times": None},
        {"id": 3, "shop": 1, "item": "pen", "kind": "b", "price": "20", "weight": 1e20, "paid": False, "day": None,
         "at": None, "extra": {}, "tags": [], "times": []},
        {"id": 4, "shop": 1, "item": None, "kind": None, "price": None, "weight": 0.5, "paid": True, "day": "2026-01-02",
         "at": "2025-01-01T00:00:00Z", "extra": {"b": 1.0}, "tags": ["y"], "times": [None]},
        {"id": 5, "shop": 2, "item": "Éclair", "kind": "B", "price": "-3", "weight": -0.25, "paid": None, "day": None,
         "at": None, "extra": None, "tags": None, "times": None},
    ],
}  # fmt: skip
EXPRESSIONS = [
    "array_agg(item)", "array_agg(item order by item desc)", "array_agg(distinct item)", "array_agg(at order by day, id desc)",
    "array_agg(distinct item order by item desc)", "array_agg(distinct at)", "array_agg(distinct weight)", "array_agg(weight)",
    "array_agg(distinct price order by price desc nulls last)", "json_agg(extra order by id desc)", "array_agg(tags)",
    "array_agg(times)", "array_agg(distinct day)", "array_agg(paid)", "array_agg(day) filter (where paid)",
    "jsonb_agg(price * 2 order by price nulls first)", "array_agg(upper(item)) filter (where item is not null)",
    "string_agg(item, ', ')", "string_agg(item, ', ' order by item desc, id)", "string_agg(distinct item, '|')",
    "string_agg(distinct item, '|' order by item desc)", "string_agg(price::text, '') filter (where price > 1)",
    "string_agg(kind, '-' order by kind, id)", "string_agg(kind, '-' order by kind desc nulls last, id desc)",
    "json_object_agg(id, price)", "json_object_agg(item, at order by id desc)", "jsonb_object_agg(item, extra)",
    "json_object_agg(day, weight) filter (where weight > 0)", "json_object_agg(paid, paid)",
    "bool_and(paid)", "bool_or(paid)", "every(price > 1)", "bool_or(paid) filter (where id > 2)",
    "count(distinct item)", "count(distinct kind)", "count(distinct price)", "count(distinct at)", "count(distinct paid)",
    "sum(distinct price)", "sum(distinct weight)", "avg(distinct price)", "min(distinct price)", "max(item) filter (where paid)",
    "count(*) filter (where paid is null)", "count(item) filter (where price < 5)", "sum(weight) filter (where id <> 3)",
    "sum(weight order by price desc)", "min(kind) filter (where paid)", "avg(price) filter (where paid)",
    "first(item order by price, id)", "last(item order by price, id)", "first(price order by at desc nulls last)",
    "last(at order by day nulls first)", "first(weight order by item desc)", "last(price) filter (where paid)",
    "first(item order by kind, id desc)", "coalesce(string_agg(item, ','), 'none')", "first(paid)",
]  # fmt: skip


def members(expressions: list[str], wrap: str) -> str:
    return "".join(f"\n      m{n}: {canonical_json.dumps(wrap.format(one))}" for n, one in enumerate(expressions))


@pytest.mark.parametrize("order", ["", "order_by: [-at, item]"])
def test_the_aggregates_of_a_list_are_those_of_postgres(both: Both, order: str) -> None:
    text = f"""
product: p
root: shop
fields: [id]
embed:
  sales:
    many: sale
    on: {{shop: id}}
    {order}
    fields:{members(EXPRESSIONS, "{0}")}
"""
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": text})
    (one,) = definitions.products.values()
    again = load({"entities.yaml": ENTITIES, "p.yaml": canonical_json.dumps(describe_product(one))})
    assert again.products["p"] == one
    found = both(definitions, ROWS)
    assert found['{"id":3}']["sales"]["m0"] is None


QUALIFIED = [
    "array_agg(s.item order by s.price desc)", "array_agg(s)", "count(distinct s)",
    "max(s)", "array_agg(distinct s order by s)", "first(s.item order by s.at)", "json_object_agg(s.id, s.item || name)",
    "sum(s) filter (where s.paid and name <> 'two')", "jsonb_build_object('n', count(s), 'at', max(s.at), 'of', name)",
    "array[count(s), sum(s), null, 1.50]", "json_build_array(name, json_build_object('id', id))",
]  # fmt: skip


def test_the_aggregates_of_a_joined_many_are_those_of_postgres(both: Both) -> None:
    fields = members(QUALIFIED, "{0}")
    text = f"""
product: p
root: shop
join:
  s: {{many: sale, on: {{shop: id}}, order_by: [-price], value: price * 2}}
fields:{fields}
"""
    assert both(load({"entities.yaml": ENTITIES, "p.yaml": text}), ROWS)
