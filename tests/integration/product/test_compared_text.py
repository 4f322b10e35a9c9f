"""Columns that say how their text compares: documents by hand, by the steps, and by the product's SQL in Postgres."""

import uuid
from typing import Any

import pytest

from processor.tools.inspect.oracle import oracle
from tests.integration.product.teams import Ask, asking, definitions

SHOP = """
    country:
      key: [code]
      columns: {code: {type: string, compare: [ci, trimmed]}, name: string}
    customer:
      key: [id]
      columns:
        id: int
        country: {type: string, compare: [ci, trimmed]}
        status: {type: string, compare: ci}
        nick: string
        tags: {type: "string[]", compare: ci}
        seen: "json[]"
    ticket:
      key: [shop, number]
      columns: {shop: {type: string, compare: trimmed}, number: int, owner: {type: string, compare: ci}, text: string}
"""


@pytest.fixture
def ask(postgres_url: str) -> Ask:
    return asking(postgres_url)


def customer(id: int, **columns: Any) -> dict[str, Any]:
    return dict.fromkeys(("country", "status", "nick", "tags", "seen")) | {"id": id} | columns


def test_spellings_of_a_key_join_in_both_directions(ask: Ask) -> None:
    found = definitions(
        SHOP,
        """
        product: countries
        root: country
        embed:
          customers: {many: customer, on: {country: code}, value: id}
        """,
    )
    rows = {
        "country": [{"code": "DE", "name": "Germany"}, {"code": "Étr ", "name": "abroad"}],
        "customer": [
            customer(1, country="de"),
            customer(2, country="De  "),
            customer(3, country="ÉTR"),
            customer(4, country="etr"),
            customer(5, country=" de"),
        ],
    }

    documents = ask(found, rows)

    assert documents == {
        '{"code":"DE"}': {"code": "DE", "name": "Germany", "customers": [1, 2]},
        '{"code":"Étr "}': {"code": "Étr ", "name": "abroad", "customers": [3]},
    }


def test_a_plain_side_compares_as_the_other_side(ask: Ask) -> None:
    found = definitions(
        SHOP,
        """
        product: customers
        root: customer
        fields: [id]
        embed:
          tickets: {many: ticket, on: {owner: nick}, value: text}
          strong: {many: ticket, on: {owner: nick}, strong: true, value: text}
          plain: {many: ticket, on: {text: nick}, value: text}
        """,
    )
    rows = {
        "customer": [customer(1, nick="Bo")],
        "ticket": [
            {"shop": "a", "number": 1, "owner": "BO", "text": "bo"},
            {"shop": "a", "number": 2, "owner": "bo", "text": "Bo"},
            {"shop": "a", "number": 3, "owner": "bo ", "text": "BO"},
        ],
    }

    documents = ask(found, rows)

    assert documents['{"id":1}'] == {"id": 1, "tickets": ["bo", "Bo"], "strong": ["bo", "Bo"], "plain": ["Bo"]}


def test_elements_of_arrays_and_members_of_json_compare_as_the_column(ask: Ask) -> None:
    found = definitions(
        SHOP,
        """
        product: customers
        root: customer
        fields: [id]
        embed:
          visited: {many: country, on: {code: "seen[].at"}, fields: [code, name]}
          tagged: {many: ticket, on: {owner: "tags[]"}, value: number}
        """,
    )
    rows = {
        "country": [{"code": "DE", "name": "Germany"}],
        "customer": [customer(1, tags=["VIP", "vip", "none"], seen=[{"at": "de "}, {"at": 5}, {"at": "fr"}])],
        "ticket": [{"shop": "a", "number": 7, "owner": "Vip", "text": ""}],
    }

    documents = ask(found, rows)

    visited = [{"code": "DE", "name": "Germany"}, {"code": 5, "name": None}, {"code": "fr", "name": None}]
    assert documents['{"id":1}'] == {"id": 1, "visited": visited, "tagged": [7, 7, None]}


def test_conditions_compare_folded_text(ask: Ask) -> None:
    found = definitions(
        SHOP,
        """
        product: customers
        root: customer
        fields:
          same: status = 'ACTIVE'
          other: status <> 'active'
          listed: status in ('x', 'Active')
          between: status between 'a' and 'B'
          alike: status like 'ACT%'
          distinct: status is distinct from 'aCTIVE'
          chosen: case status when 'ACTIVE' then 1 else 0 end
          nothing: nullif(status, 'ACTIVE')
          through: coalesce(status, 'none') = 'NONE'
          padded: country = 'DE'
          column: status = nick
          plain: nick = 'bo'
          largest: greatest(status, 'B', 'a')
          smallest: least(status, 'B', null)
        """,
    )
    rows = {"customer": [customer(1, status="Active", nick="ACTIVE", country="de "), customer(2, nick="Bo")]}

    documents = ask(found, rows)

    assert documents['{"id":1}'] == {
        "same": True,
        "other": False,
        "listed": True,
        "between": True,
        "alike": True,
        "distinct": False,
        "chosen": 1,
        "nothing": None,
        "through": False,
        "padded": True,
        "column": True,
        "plain": False,
        "largest": "B",
        "smallest": "Active",
    }
    assert documents['{"id":2}']["through"] is True


def test_a_mirror_finds_rows_by_an_index_of_folded_text(postgres_url: str) -> None:
    found, product = definitions(SHOP, "{product: countries, root: country}"), "countries"
    with oracle(postgres_url, f"folded_{uuid.uuid4().hex[:8]}", found.entities) as postgres:
        for name in found.entities:
            postgres.fill(name, [])
        postgres.fill(
            "country", [{"code": "DE", "name": "Germany"}], {("code::ci+trimmed",), ("name::trimmed", "code")}
        )
        assert list(postgres.documents(found.products[product])) == ['{"code":"DE"}']


def test_orders_and_extremes_follow_the_folded_text(ask: Ask) -> None:
    found = definitions(
        SHOP,
        """
        product: shops
        root: country
        fields: [code]
        embed:
          up: {many: customer, on: {country: code}, order_by: [status], value: status}
          down: {many: customer, on: {country: code}, order_by: [-status], limit: 2, value: status}
          first: {many: customer, on: {country: code}, value: min(status)}
          last: {many: customer, on: {country: code}, value: max(status)}
        """,
    )
    rows = {
        "country": [{"code": "DE", "name": "Germany"}],
        "customer": [
            customer(n, country="de", status=status) for n, status in enumerate(["b", "A", None, "a", "C", "B", "c"])
        ],
    }

    documents = ask(found, rows)

    assert documents['{"code":"DE"}'] == {
        "code": "DE",
        "up": ["A", "a", "b", "B", "C", "c", None],
        "down": ["C", "c"],
        "first": "A",
        "last": "c",
    }


def test_rows_of_keys_that_differ_in_spelling_alone_stay_two_rows(ask: Ask) -> None:
    """A source that moves a key from `de` to `DE` sends a delete of one and a row of the other, in any order of partitions."""
    found = definitions(
        SHOP,
        """
        product: customers
        root: customer
        fields: [id]
        embed: {country: {one: country, on: {code: country}, value: code}}
        """,
    )
    rows = {
        "country": [{"code": "de", "name": "old"}, {"code": "DE", "name": "new"}],
        "customer": [customer(1, country="De")],
    }

    documents = ask(found, rows)

    assert documents['{"id":1}'] == {"id": 1, "country": "DE"}


def test_a_part_of_a_composite_key_compares_in_its_own_way(ask: Ask) -> None:
    found = definitions(
        SHOP,
        """
        product: tickets
        root: ticket
        fields: [shop, number]
        embed:
          same: {one: ticket, on: {shop: shop, number: number}, value: text}
          others: {many: ticket, on: {shop: shop}, value: number}
        """,
    )
    rows = {
        "ticket": [
            {"shop": "a ", "number": 1, "owner": None, "text": "padded"},
            {"shop": "a", "number": 2, "owner": None, "text": "plain"},
            {"shop": "A", "number": 3, "owner": None, "text": "upper"},
        ]
    }

    documents = ask(found, rows)

    assert documents == {
        '{"shop":"a ","number":1}': {"shop": "a ", "number": 1, "same": "padded", "others": [2, 1]},
        '{"shop":"a","number":2}': {"shop": "a", "number": 2, "same": "plain", "others": [2, 1]},
        '{"shop":"A","number":3}': {"shop": "A", "number": 3, "same": "upper", "others": [3]},
    }
