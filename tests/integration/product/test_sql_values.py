"""PostgreSQL runs the SQL of products: types, values and names. The documents equal those computed by hand."""

from decimal import Decimal
from typing import Any

import pytest

from tests.integration.product.conftest import Ask, Rows
from tests.integration.product.people import PEOPLE, definitions

Table = list[dict[str, Any]]


def test_every_type_has_the_json_form_of_published_messages(ask: Ask) -> None:
    found = definitions(
        """
        thing:
          key: [id]
          columns:
            id: int
            text: string
            real: float
            price: decimal(12,2)
            yes: bool
            day: date
            at: timestamp
            data: json
            tags: "string[]"
            times: "timestamp[]"
            days: "date[]"
            items: "json[]"
        """,
        "{product: things, root: thing}",
    )
    full = {
        "id": 18446744073709551615,
        "text": "ä'\"\\\n",
        "real": 0.1,
        "price": Decimal("12345678901234567890.12"),
        "yes": False,
        "day": "0999-12-31",
        "at": "1969-12-31T23:59:59.000001+02:00",
        "data": {"a": [1, None]},
        "tags": ["x", None],
        "times": ["2020-01-01T00:00:00Z", None],
        "days": ["2020-02-29"],
        "items": [],
    }
    empty = dict.fromkeys(full) | {"id": 2, "times": []}

    documents = ask(found, {"thing": [full, empty]})

    written = {"real": Decimal("0.1"), "at": "1969-12-31T21:59:59.000001Z", "times": ["2020-01-01T00:00:00Z", None]}
    assert documents[(18446744073709551615,)] == full | written
    assert documents[(2,)] == empty


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("2020-01-01T10:20:30.100Z", "2020-01-01T10:20:30.1Z"),
        ("2020-01-01T10:20:30.000100Z", "2020-01-01T10:20:30.0001Z"),
        ("2020-06-01T00:00:00-03:30", "2020-06-01T03:30:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_a_timestamp_is_rfc_3339_in_utc_without_trailing_zeros(ask: Ask, stored: str, written: str) -> None:
    found = definitions("t: {key: [id], columns: {id: int, at: timestamp}}", "{product: p, root: t, value: at}")
    assert ask(found, {"t": [{"id": 1, "at": stored}]}) == {(1,): written}


def test_text_is_ordered_by_code_point(ask: Ask) -> None:
    found = definitions(
        PEOPLE,
        """
        product: p
        root: city
        fields: []
        embed: {people: {many: person, on: {city: name}, order_by: [name], value: name}}
        """,
    )
    names = ["b", "B", "é", "z", "_", "\U0001f600", "\uffee"]
    people = [{"id": number, "name": name, "city": "here"} for number, name in enumerate(names)]

    documents = ask(found, {"city": [{"name": "here"}], "person": people})

    assert documents[("here",)] == {"people": sorted(names)}


def test_numbers_of_different_types_join_by_value(ask: Ask) -> None:
    found = definitions(
        """
        a: {key: [id], columns: {id: int, x: float}}
        b: {key: [id], columns: {id: decimal}}
        """,
        """
        product: p
        root: a
        fields: []
        embed:
          by_id: {many: b, on: {id: id}, value: id}
          by_x: {many: b, on: {id: x}, value: id}
        """,
    )
    tenth, whole, nearly = Decimal("0.1"), Decimal("9007199254740992"), Decimal("9007199254740993")

    numbers = (1, tenth, whole, nearly)
    rows: Rows = {"a": [{"id": 1, "x": 0.1}, {"id": 2, "x": 2.0**53}], "b": [{"id": n} for n in numbers]}
    documents = ask(found, rows)

    assert documents == {(1,): {"by_id": [1], "by_x": [tenth]}, (2,): {"by_id": [], "by_x": [whole]}}


def test_an_object_of_more_than_fifty_members_keeps_their_order(ask: Ask) -> None:
    names = [f"c{n}" for n in range(120, 0, -1)]
    columns = ", ".join(f"{name}: int" for name in names)
    found = definitions(
        f"t: {{key: [id], columns: {{id: int, {columns}}}}}",
        "{product: p, root: t, embed: {same: {many: t, on: {id: id}, embed: {self: {one: t, on: {id: c1}}}}}}",
    )
    row = {"id": 5} | {name: int(name[1:]) for name in names}

    document = ask(found, {"t": [row]})[(5,)]

    assert list(document) == ["id", *names, "same"]
    assert document == row | {"same": [row | {"self": None}]}


def test_names_that_need_quotes_are_quoted(ask: Ask) -> None:
    found = definitions(
        """
        Select.it-1: {key: ['a"b'], columns: {'a"b': int, "o'c": string, Order: string, "%s": int}}
        """,
        """
        product: p
        root: Select.it-1
        fields: {"it's": '"o''c"', "\\\\n": Order, "%d": '"%s"'}
        embed: {'"x"': {many: Select.it-1, on: {Order: Order}, order_by: ['-"a""b"'], value: '"a""b"'}}
        """,
    )
    rows: Table = [{'a"b': 1, "o'c": "x", "Order": "y", "%%s": 3}, {'a"b': 2, "o'c": None, "Order": "y", "%%s": None}]

    documents = ask(found, {"Select.it-1": rows})

    assert documents[(1,)] == {"it's": "x", "\\n": "y", "%d": 3, '"x"': [2, 1]}
