"""Expressions in place of columns, in a plan: what a row has in its slots, and which columns products read for it."""

from dataclasses import replace

from processor.engine.plan.plan import EntityPlan
from processor.engine.plan.planning import plan_alone
from processor.engine.plan.row_image import image_of
from processor.language.definitions.load import load
from processor.language.product.join_fields import read_computed, write_computed
from processor.values.record import UNAVAILABLE, Change, Record
from registry.fields import columns_of, shown_field, shown_fields
from statestore.items import written_row
from statestore.keys import Key

ENTITIES = """
user:
  key: [id]
  columns:
    id: int
    email: string
    first: string
    last: string
    name: {type: string, as: "lower(first || ' ' || last)"}
order: {key: [no], columns: {no: int, email: string, who: string, data: json}}
"""
PRODUCT = """
product: users
root: user
fields: [id]
embed:
  orders: {many: order, on: {lower(email): lower(email)}, value: no}
  named: {many: order, on: {who: name}, value: no}
  same: {many: order, on: {who: "lower(first || ' ' || last)"}, value: count(*)}
"""


def user() -> EntityPlan:
    return plan_alone(load({"entities.yaml": ENTITIES, "p.yaml": PRODUCT}), 20).entities["user"]


def test_a_computed_column_and_the_same_expression_share_a_slot() -> None:
    held = sorted(shown_fields(fields) for fields in user().slots.values())
    assert held == ["lower(email)", "lower(first ||   || last)"] or held == [
        "lower(email)",
        "lower(first || ' ' || last)",
    ]


def test_all_columns_of_an_expression_count_as_read_and_stay_in_the_indexes() -> None:
    assert sorted(user().used or ()) == ["email", "first", "id", "last"]
    assert sorted(user().indexed or ()) == ["email", "first", "id", "last"]
    assert user().joined() == {"email", "first", "last"}


def test_a_value_that_the_source_did_not_send_comes_from_the_stored_row() -> None:
    plan = user()
    record = Record(topic="user", partition=0, offset=9, key=None, value=None)
    row = {"id": 1, "email": UNAVAILABLE, "first": UNAVAILABLE, "last": "Lovelace"}
    stored = {"id": 1, "email": "Ada@X.org", "first": "Ada", "last": "Byron"}
    key = Key("TABLE#user", "1")
    first = image_of(Change(entity="user", key=(1,), row=stored, record=replace(record, offset=4)), plan, key, None, 99)
    seen = written_row(first, None)
    image = image_of(Change(entity="user", key=(1,), row=row, record=record), plan, key, seen, 99)
    assert sorted(map(str, image.slots.values())) == ["ada lovelace", "ada@x.org"]


def test_a_null_in_an_expression_that_needs_it_joins_nothing() -> None:
    plan = user()
    assert set(plan.slots_of({"id": 1, "email": None, "first": None, "last": "x"}).values()) == {None}


def test_a_field_says_all_of_its_expression() -> None:
    (field,) = (f for fields in user().slots.values() for f in fields if "first" in f)
    read = read_computed(field)
    assert read is not None
    assert write_computed(read.node) == field
    assert columns_of(field) == ("first", "last")
    assert shown_field('=json {"#>(json,string)":["data",["string","{refs}"]]}[].id::number') == (
        "data #> '{refs}'[].id::number"
    )
