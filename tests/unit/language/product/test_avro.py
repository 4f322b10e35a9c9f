"""Avro documents: what a consumer reads is the document, whatever the product, and of whatever version."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from processor.language.definitions.load import load
from processor.language.product.product import Definitions
from processor.values import canonical_json
from processor.values.record import Record
from tests.integration.product.products import draw_definitions, draw_history
from tests.integration.product.published import last_documents, plain
from tests.support.required import require_schema_packages

require_schema_packages()

from tests.unit.language.product.avro_trip import AvroTrip  # noqa: E402
from tests.unit.language.product.example_documents import EXAMPLES, example_documents  # noqa: E402

ENTITIES = """
    thing:
      key: [id]
      columns:
        {id: int, of: int, name: string, exact: "decimal(12,2)", price: decimal, size: float, ok: bool, day: date,
         at: timestamp, fine: timestamp(ns), any: json, tags: "string[]", paid: "decimal(4,1)[]"}
    bag: {key: [id], columns: {id: int, user-id: string}}
    """
THING: dict[str, Any] = {
    "id": 2**63 - 1,
    "of": -1,
    "name": "Zoë",
    "exact": Decimal("-1234567890.1"),
    "price": Decimal("0.1000000000000000000000000000000000001"),
    "size": Decimal("1.1"),
    "ok": True,
    "day": "0001-01-01",
    "at": "1969-12-31T23:59:59.999999Z",
    "fine": "2020-02-29T00:00:00.123456789Z",
    "any": {"b": [1, None, Decimal("1.50")], "a": "x"},
    "tags": ["a", None],
    "paid": [Decimal("-0.5"), Decimal("100"), None],
}
CONSUMED = THING | {
    "price": "0.1000000000000000000000000000000000001",
    "size": 1.1,
    "day": date(1, 1, 1),
    "at": datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
    "fine": 1582934400123456789,
    "any": '{"b":[1,null,1.50],"a":"x"}',
    "undeclared": {},
}


def definitions_of(product: str) -> Definitions:
    return load({"entities.yaml": dedent(ENTITIES), "p.yaml": dedent(product)})


def trip_of(product: str) -> AvroTrip:
    definitions = definitions_of(product)
    return AvroTrip(definitions.products["p"], definitions.entities)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_every_document_of_an_example_comes_back(example: Path, tmp_path: Path) -> None:
    plan, documents = example_documents(example, tmp_path)
    entities = plan.declared_entities
    trips = {name: AvroTrip(product.product, entities) for name, product in plan.products.items()}
    for name, document in documents:
        trips[name].check(document)


@settings(suppress_health_check=list(HealthCheck))
@given(rng=st.randoms(use_true_random=False))
def test_every_document_of_any_product_comes_back(rng: Random) -> None:
    definitions = draw_definitions(rng)
    trip = AvroTrip(definitions.products["p"], definitions.entities)
    records = []
    for offset, (entity, key, row) in enumerate(draw_history(rng, 25)):
        value = None if row is None else canonical_json.encode(plain(row))
        key_bytes = canonical_json.encode(plain(key))
        records.append(Record(topic=entity, partition=0, offset=offset, key=key_bytes, value=value))
    for document in last_documents(definitions, records)["p"].values():
        trip.check(document)


def test_a_consumer_reads_the_value_of_each_declared_type() -> None:
    trip = trip_of("{product: p, root: thing}")
    trip.check(THING)
    assert trip.consume(trip.write(THING)) == CONSUMED
    nothing = dict.fromkeys(THING) | {"id": 1}
    trip.check(nothing)
    assert trip.consume(trip.write(nothing)) == nothing | {"undeclared": {}}


def test_undeclared_columns_are_a_map_of_json_texts_in_their_place() -> None:
    trip = trip_of("{product: p, root: bag, embed: {things: {many: thing, on: {of: id}, value: name}}}")
    document = {"id": 1, "user-id": "u", "more": {"x": Decimal("1.0")}, "name": None, "things": ["a", None]}
    trip.check(document)
    assert trip.consume(trip.write(document)) == {
        "id": 1,
        "user_id": "u",
        "undeclared": {"more": '{"x":1.0}', "name": "null"},
        "things": ["a", None],
    }


def test_objects_are_records_and_lists_are_arrays() -> None:
    trip = trip_of("""
        product: p
        root: bag
        fields: {id: id, constant: "'x'", nothing: "null", twice: only}
        embed:
          only: {one: thing, on: {of: id}, value: size * 2}
          first: {one: thing, on: {of: id}, fields: [id], embed: {bag: {one: bag, on: {id: of}, fields: [id]}}}
          things: {many: thing, on: {of: id}, fields: [name], limit: 2, total: true}
          sums: {many: thing, on: {of: id}, fields: {n: count(*), exact: sum(exact), last: max(at)}}
          n: {many: thing, on: {of: id}, value: count(*)}
        """)
    document = {
        "id": 1,
        "constant": "x",
        "nothing": None,
        "twice": Decimal("1.5"),
        "only": Decimal("1.5"),
        "first": {"id": 2, "bag": {"id": 1}},
        "things": [{"name": "a"}, {"name": None}],
        "things_total": 3,
        "sums": {"n": 3, "exact": Decimal("3.5"), "last": "2020-01-01T00:00:00.5Z"},
        "n": 3,
    }
    trip.check(document)
    consumed = trip.consume(trip.write(document))
    assert consumed["sums"] == {"n": 3, "exact": "3.5", "last": datetime(2020, 1, 1, 0, 0, 0, 500000, UTC)}
    assert {name: consumed[name] for name in ("first", "things", "things_total", "n")} == {
        "first": {"id": 2, "bag": {"id": 1}},
        "things": [{"name": "a"}, {"name": None}],
        "things_total": 3,
        "n": 3,
    }
    trip.check(document | {"twice": None, "only": None, "first": None, "things": []})


@pytest.mark.parametrize(
    ("product", "documents"),
    [
        ("{product: p, root: thing, value: name}", ["a", None]),
        ("{product: p, root: bag, embed: {things: {many: thing, on: {of: id}}}, fields: []}", [{"things": []}]),
    ],
    ids=["a bare value", "a list only"],
)
def test_a_document_may_be_no_record_of_columns(product: str, documents: list[Any]) -> None:
    trip = trip_of(product)
    for document in documents:
        trip.check(document)


@pytest.mark.parametrize(
    ("member", "value", "reason"),
    [
        ("id", 2**63, "id: expected int, found number 9223372036854775808 (Avro has 64 bits: declare decimal(38,0))"),
        (
            "exact",
            Decimal("0.001"),
            "exact: expected decimal(12,2), found number 0.001 (declare more digits, or decimal)",
        ),
        ("exact", 10**10, "exact: expected decimal(12,2), found number 10000000000 (declare more digits, or decimal)"),
        (
            "at",
            "2020-01-01T00:00:00.1234567Z",
            "at: expected timestamp, found text '2020-01-01T00:00:00.1234567Z' (Avro has",
        ),
        (
            "fine",
            "2300-01-01T00:00:00Z",
            "fine: expected timestamp(ns), found text '2300-01-01T00:00:00Z' (Avro has nano",
        ),
        ("name", 1, "do not match"),
        (
            "paid",
            [Decimal("0.12")],
            "paid: expected decimal(4,1)[], found number 0.12 (declare more digits, or decimal)",
        ),
    ],
)
def test_a_value_that_avro_cannot_hold_is_refused_with_its_place(member: str, value: Any, reason: str) -> None:
    trip = trip_of("{product: p, root: thing}")
    with pytest.raises(ValueError) as error:  # noqa: PT011
        trip.write(THING | {member: value})
    assert reason in str(error.value)


def test_equal_products_have_equal_schemas_and_one_member_changes_only_its_own_field() -> None:
    before, after = (
        json.loads(trip_of(f"{{product: p, root: bag, fields: [id], embed: {{{joins}}}}}").schema)
        for joins in (
            "b: {many: thing, on: {of: id}, fields: [id]}",
            "a: {one: bag, on: {id: id}, fields: [id]}, b: {many: thing, on: {of: id}, fields: [id]}",
        )
    )
    added = next(field for field in after["fields"] if field["name"] == "a")
    assert [field for field in after["fields"] if field is not added] == before["fields"]
    assert (before["name"], before["namespace"]) == ("Value", "statestore.p")
    assert before["fields"][1]["type"]["items"]["namespace"] == "statestore.p.b"


def test_readers_of_either_version_read_the_documents_of_the_other() -> None:
    old = trip_of("{product: p, root: thing, fields: [id, name]}")
    new = trip_of("{product: p, root: thing, fields: [id, ok], embed: {bags: {many: bag, on: {id: of}}}}")
    written = old.write({"id": 1, "name": "a"}), new.write({"id": 1, "ok": True, "bags": []})
    assert old.consume(written[0], new.schema) == {"id": 1, "ok": None, "bags": []}
    assert new.consume(written[1], old.schema) == {"id": 1, "name": None}
