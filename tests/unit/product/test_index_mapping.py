"""The mapping of an index for the documents of a product."""

import pytest

from processor.definitions.load import load
from processor.errors import StatestoreError
from processor.product.document_type import index_mapping

ENTITIES = """
a:
  key: [i]
  columns: {i: int, s: string, f: float, d: "decimal(12,2)", b: bool, day: date, at: timestamp, j: json, l: "string[]"}
c:
  key: [i]
  columns: {i: int, a: int, s: string}
"""
PRODUCT = """
product: p
root: a
embed:
  many: {many: c, on: {a: i}, fields: [s]}
  first: {one: c, on: {a: i}}
  n: {many: c, on: {a: i}, value: count(*)}
"""


def test_a_product_whose_documents_are_no_objects() -> None:
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": "{product: p, root: a, value: s}"})
    with pytest.raises(StatestoreError, match="documents of p are single values, and an index takes objects"):
        index_mapping(definitions.products["p"], definitions.entities)


def test_each_type_of_the_definitions() -> None:
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": PRODUCT})
    text = {"type": "text", "fields": {"keyword": {"type": "keyword", "ignore_above": 256}}}
    number, kept = {"type": "long"}, {"type": "object", "enabled": False}
    assert index_mapping(definitions.products["p"], definitions.entities) == {
        "dynamic": False,
        "properties": {
            "i": number,
            "s": text,
            "f": {"type": "double"},
            "d": {"type": "double"},
            "b": {"type": "boolean"},
            "day": {"type": "date", "format": "strict_date"},
            "at": {"type": "date", "format": "strict_date_optional_time"},
            "j": kept,
            "l": text,
            "many": {"properties": {"s": text}},
            "first": {"properties": {"i": number, "a": number, "s": text}},
            "n": number,
        },
    }
