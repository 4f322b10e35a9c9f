"""The JSON Schema of a product accepts all documents of the examples, and refuses wrong documents. Then the mapping of an
index for the documents of a product.
"""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError
from processor.language.definitions.load import load
from processor.language.product.document_type import (
    ListType,
    ObjectType,
    ValueType,
    document_schema,
    document_type,
    index_mapping,
)
from processor.values import canonical_json
from processor.values.entity import ColumnType
from processor.values.record import Record
from tests.unit.language.product.example_documents import EXAMPLES, example_documents, published_documents


def validator(plan: Plan, product: str) -> Draft202012Validator:
    entities = plan.declared_entities
    schema = document_schema(plan.products[product].product, entities)
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_document_that_an_example_publishes_is_valid(example: Path, tmp_path: Path) -> None:
    plan, documents = example_documents(example, tmp_path)
    validators = {name: validator(plan, name) for name in plan.products}
    for name, document in documents:
        validators[name].validate(document)


TYPES = load(
    {
        "entities.yaml": dedent("""
            thing:
              key: [id]
              columns: {id: int, of: int, name: string, price: "decimal(12,2)", ok: bool, day: date, at: timestamp}
            bag: {key: [id], columns: {id: int, tags: "string[]", any: json, many: "json[]"}}
            """),
        "bags.yaml": dedent("""
            product: bags
            root: bag
            embed:
              things: {many: thing, on: {of: id}, limit: 2, fields: [id, of, name, price, ok, day, at]}
              first: {one: thing, on: {of: id}}
              name: {one: thing, on: {of: id}, value: name}
              back:
                many: thing
                on: {of: id}
                join: {bag: {one: bag, on: {id: of}}}
                fields: {of: of, bag: bag.id}
            """),
    }
)
THING = {"id": 1, "of": 2, "name": None, "price": 1.5, "ok": True, "day": "2020-02-29", "at": "2020-01-01T00:00:00.5Z"}
BAG = {"id": 2, "tags": ["a", None], "any": None, "many": [1, {"x": None}, None]}
DOCUMENT = {**BAG, "things": [THING], "first": None, "name": None, "back": [{"of": 2, "bag": None}]}


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"tags": None, "many": None, "any": [1]},
        {"things": [], "first": {**THING, "unknown": 1}, "name": "x"},
        {"undeclared": "a whole row shows it"},
    ],
)
def test_the_schema_accepts_null_where_the_product_may_give_null(change: dict[str, Any]) -> None:
    validator(plan_alone(TYPES, slots=20), "bags").validate({**DOCUMENT, **change})


@pytest.mark.parametrize(
    "change",
    [
        {"id": None},
        {"id": 1.5},
        {"tags": "a"},
        {"tags": [1]},
        {"things": None},
        {"things": [THING, THING, THING]},
        {"things": [{**THING, "of": None}]},
        {"things": [{**THING, "id": None}]},
        {"things": [{**THING, "extra": 1}]},
        {"things": [{k: v for k, v in THING.items() if k != "name"}]},
        {"things": [{**THING, "price": "1.5"}]},
        {"things": [{**THING, "ok": 1}]},
        {"things": [{**THING, "day": "2020-02-30"}]},
        {"first": {**THING, "of": None}},
        {"name": 1},
        {"back": [{"of": None, "bag": 1}]},
    ],
    ids=str,
)
def test_the_schema_refuses_a_wrong_document(change: dict[str, Any]) -> None:
    assert not validator(plan_alone(TYPES, slots=20), "bags").is_valid({**DOCUMENT, **change})


COMPUTED = load(
    {
        "entities.yaml": dedent("""
            thing: {key: [id], columns: {id: int, of: int, name: string, price: "decimal(12,2)"}}
            bag: {key: [id], columns: {id: int, label: string}}
            """),
        "bags.yaml": dedent("""
            product: bags
            root: bag
            join:
              all: {many: thing, on: {of: id}}
              first: {one: thing, on: {of: id}, required: true}
            fields:
              {id: id, label: upper(label), n: count(all.id), spent: sum(all.price), first: first.id, called: first.name, one: 1,
               twice: only}
            embed:
              things:
                many: thing
                on: {of: id}
                where: price > 0
                limit: 1
                total: true
                fields: {name: name, bag: parent.id, label: parent.label}
              cheapest: {many: thing, on: {of: id}, fields: {price: min(price), n: count(*)}}
              only: {one: thing, on: {of: id}, required: true, value: price * 2}
            """),
    }
)
FILLED = {
    "id": 2,
    "label": "BAG",
    "n": 2,
    "spent": 3.5,
    "first": 1,
    "called": None,
    "one": 1,
    "things_total": 2,
    "only": 1.0,
} | {
    "things": [{"name": "a", "bag": 2, "label": "Bag"}],
    "cheapest": {"price": 0.5, "n": 2},
    "twice": 1.0,
}


def test_a_published_document_with_computed_values_is_valid() -> None:
    plan = plan_alone(COMPUTED, slots=20)
    rows: list[tuple[str, dict[str, Any]]] = [
        ("thing", {"id": 1, "of": 2, "price": 0.5}),
        ("thing", {"id": 3, "of": 2, "price": 3, "name": "c"}),
        ("bag", {"id": 2}),
    ]
    trial = Trial(plan=plan, settings=Settings())
    trial.batch(
        Record(topic=topic, partition=0, offset=n, key=b'{"id":%d}' % row["id"], value=canonical_json.encode(row))
        for n, (topic, row) in enumerate(rows)
    )
    ((_, document),) = published_documents(trial)
    assert document.keys() == FILLED.keys()
    validator(plan, "bags").validate(document)


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        ({}, True),
        ({"label": None, "spent": None, "only": None}, True),
        ({"n": None}, False),
        ({"n": 1.5}, False),
        ({"first": None}, False),
        ({"one": None}, False),
        ({"things_total": None}, False),
        ({"things": [{"name": None, "bag": 2, "label": None}]}, True),
        ({"things": [{"name": None, "bag": None, "label": None}]}, False),
        ({"cheapest": {"price": None, "n": 0}}, True),
        ({"cheapest": {"price": None, "n": None}}, False),
        ({"cheapest": None}, False),
        ({"twice": None}, True),
    ],
    ids=str,
)
def test_a_computed_value_may_be_null_except_counts_and_constants(change: dict[str, Any], valid: bool) -> None:
    assert validator(plan_alone(COMPUTED, slots=20), "bags").is_valid({**FILLED, **change}) is valid


def test_an_element_without_a_row_shows_null_for_what_a_row_above_never_lacks() -> None:
    texts = {
        "entities.yaml": 'team: {key: [id], columns: {id: int, ids: "int[]"}}\nuser: {key: [id], columns: {id: int}}',
        "p.yaml": '{product: p, root: team, embed: {users: {many: user, on: {id: "ids[]"}, fields: {team: parent.id}}}}',
    }
    trial = Trial(plan=plan_alone(load(texts), slots=20), settings=Settings())
    trial.batch([Record(topic="team", partition=0, offset=0, key=None, value=b'{"id": 1, "ids": [2]}')])
    ((_, document),) = published_documents(trial)
    assert document["users"] == [{"team": None}]
    validator(trial.plan, "p").validate(document)


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


def test_a_member_of_a_union_has_the_types_of_all_parts() -> None:
    definitions = load(
        {
            "entities.yaml": dedent("""
                thing: {key: [id], columns: {id: int, of: int, price: "decimal(12,2)"}}
                bag: {key: [id], columns: {id: int, of: int, price: "decimal(9,4)"}}
                """),
            "p.yaml": dedent("""
                product: p
                root: bag
                fields: [id]
                embed:
                  all:
                    union:
                      thing: {many: thing, on: {of: id}, fields: {id: id, price: price, more: "null"}}
                      bag: {many: bag, on: {of: id}, fields: {id: "null", price: price, more: id}}
                  below: {many: bag, on: {of: id}, recursive: 2, fields: {depth: depth()}}
                """),
        }
    )
    found = document_type(definitions.products["p"], definitions.entities)
    assert isinstance(found, ObjectType)
    members = dict(found.members)
    assert isinstance(members["all"], ListType)
    assert isinstance(members["all"].items, ObjectType)
    assert dict(members["all"].items.members) == {
        "id": ValueType(column=ColumnType(name="int"), nullable=True),
        "price": ValueType(column=ColumnType(name="decimal"), nullable=True),
        "more": ValueType(column=ColumnType(name="int"), nullable=True),
    }
    assert isinstance(members["below"], ListType)
    assert isinstance(members["below"].items, ObjectType)
    assert dict(members["below"].items.members)["depth"] == ValueType(column=ColumnType(name="int"))


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
