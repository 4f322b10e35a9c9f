"""PostgreSQL and the steps agree on lists with each element once, lists by a key, nested objects, and `*` without columns."""

from textwrap import dedent

import pytest

from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.product.document_type import document_schema, index_mapping
from processor.values import canonical_json
from tests.integration.product.conftest import Both, Rows
from tests.unit.language.product.avro_trip import AvroTrip

ENTITIES = """
shop: {key: [id], columns: {id: int, name: string, street: string, zip: string, opened: timestamp, secret: string}}
sale: {key: [id], columns: {id: int, shop: int, item: string, price: "decimal(8,2)", paid: bool, day: date, extra: json}}
part: {key: [id], columns: {id: int, sale: int, name: string}}
"""
ROWS: Rows = {
    "shop": [
        {"id": 1, "name": "one", "street": "A", "zip": None, "opened": "2026-01-01T00:00:00.1Z", "secret": "x"},
        {"id": 2, "name": None, "street": None, "zip": "9", "opened": None, "secret": None},
    ],
    "sale": [
        {"id": 1, "shop": 1, "item": "pen", "price": "1.50", "paid": True, "day": "2026-01-02", "extra": {"a": 1, "b": [1]}},
        {"id": 2, "shop": 1, "item": "pen", "price": "1.5", "paid": None, "day": None, "extra": {"b": [1], "a": 1}},
        {"id": 3, "shop": 1, "item": "ink", "price": "7", "paid": True, "day": "2026-01-02", "extra": None},
        {"id": 4, "shop": 1, "item": None, "price": "2", "paid": False, "day": None, "extra": {}},
    ],
    "part": [{"id": 1, "sale": 1, "name": "cap"}, {"id": 2, "sale": 2, "name": "cap"}, {"id": 3, "sale": 3, "name": "jar"}],
}  # fmt: skip
PRODUCTS = [
    """
    embed:
      items: {many: sale, on: {shop: id}, distinct: true, order_by: [-item], value: item}
      prices: {many: sale, on: {shop: id}, distinct: true, fields: [item, price], limit: 2, total: true}
      extras: {many: sale, on: {shop: id}, distinct: true, value: extra}
      parts: {many: part, through: {many: sale, on: {shop: id}}, on: {sale: id}, distinct: true, fields: [name]}
      rows: {many: sale, on: {shop: id}, distinct: true, limit: 2}
    """,
    """
    fields: [id]
    embed:
      by_item: {many: sale, on: {shop: id}, key: item, order_by: [-id], fields: [id, price]}
      by_id: {many: sale, on: {shop: id}, key: id, limit: 2, total: true, value: price}
      by_day: {many: sale, on: {shop: id}, key: day, value: id}
      by_price: {many: sale, on: {shop: id}, key: "item || ':' || price::text", value: extra}
      parts: {many: part, through: {many: sale, on: {shop: id}}, on: {sale: id}, key: name, fields: {item: parent.item}}
    """,
    """
    fields:
      id: id
      address: {street: street, zip: zip, more: {opened: opened, "it's": "upper(name)"}}
      list: [id, name, opened, null, {day: opened}]
      built: json_build_object('at', opened, 'list', array[1, 2.50])
      sales: {count: count(sales), last: max(sales.day), all: array_agg(sales.item order by sales.id)}
    join: {sales: {many: sale, on: {shop: id}}}
    embed:
      total: {many: sale, on: {shop: id}, fields: {price: {sum: sum(price), max: max(price)}, n: count(*)}}
    """,
    """
    except: [secret, zip]
    embed:
      some: {many: sale, on: {shop: id}, fields: {"*": "*", day: day::text}, except: [extra, paid]}
      all: {many: sale, on: {shop: id}, fields: ["*"]}
      shop: {one: shop, on: {id: id}, except: [secret]}
    """,
]  # fmt: skip


@pytest.mark.parametrize("text", PRODUCTS, ids=range(len(PRODUCTS)))
def test_the_steps_and_postgres_agree(both: Both, text: str) -> None:
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": "product: p\nroot: shop\n" + dedent(text)})
    (product,) = definitions.products.values()
    again = load({"entities.yaml": ENTITIES, "p.yaml": canonical_json.dumps(describe_product(product))})
    assert again.products["p"] == product
    found = both(definitions, ROWS)
    assert found
    trip = AvroTrip(product, definitions.entities)
    for document in found.values():
        value = canonical_json.loads(canonical_json.dumps(document))
        assert trip.read(trip.write(value)) == value
    assert document_schema(product, definitions.entities)
    assert index_mapping(product, definitions.entities)
