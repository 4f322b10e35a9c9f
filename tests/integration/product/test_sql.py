"""PostgreSQL runs the SQL of products: joins and their orders. The documents equal those computed by hand."""

from pathlib import Path
from typing import Any

from processor.language.definitions.load import load, read_directory
from tests.integration.product.conftest import Ask, Rows
from tests.integration.product.people import PEOPLE, definitions

Table = list[dict[str, Any]]
EXAMPLE = Path(__file__).parents[3] / "examples" / "github"


def test_the_example_gives_the_documents_of_its_definition(ask: Ask) -> None:
    users: Table = [
        {"email": "a@x.org", "id": 1, "username": "ada"},
        {"email": "b@x.org", "id": 2, "username": "bob"},
        {"email": "c@x.org", "id": None, "username": None},
    ]
    stars: Table = [
        {"username": "ada", "repo_owner": "o", "repo_name": "old", "created_at": "2020-01-01T00:00:00Z"},
        {"username": "ada", "repo_owner": "o", "repo_name": "new", "created_at": "2021-01-01T00:00:00Z"},
        {"username": "ada", "repo_owner": "o", "repo_name": "unknown", "created_at": None},
    ]
    repos: Table = [
        {"owner": "o", "name": "old", "description": "It is old"},
        {"owner": "o", "name": "new", "description": None},
        {"owner": "p", "name": "old", "description": "another owner's"},
    ]
    pull = {"repo": "new", "repo_owner": "o", "author": "ada", "title": "Fix 'it'", "status": "open"}
    pulls: Table = [pull | {"index": 1, "created_at": "2021-02-03T04:05:06.120Z"}, pull | {"index": 2, "author": None}]
    payments = [{"id": 8, "user_id": 1, "verified": True}, {"id": 7, "user_id": 1, "verified": False}]
    rows: Rows = {"user": users, "star": stars, "repo": repos, "pull_request": pulls, "payment_info": payments}

    documents = ask(load(read_directory(EXAMPLE)), rows)

    nothing: dict[str, Any] = {"starred_repos": [], "pull_requests": [], "payment_verified": None}
    assert documents == {
        ("a@x.org",): {
            "email": "a@x.org",
            "username": "ada",
            "starred_repos": [
                {"owner": "o", "name": "new", "description": None},
                {"owner": "o", "name": "old", "description": "It is old"},
                {"owner": "o", "name": "unknown", "description": None},
            ],
            "pull_requests": [
                {
                    "repo": "new",
                    "repo_owner": "o",
                    "index": 1,
                    "title": "Fix 'it'",
                    "status": "open",
                    "created_at": "2021-02-03T04:05:06.12Z",
                }
            ],
            "payment_verified": False,
        },
        ("b@x.org",): {"email": "b@x.org", "username": "bob"} | nothing,
        ("c@x.org",): {"email": "c@x.org", "username": None} | nothing,
    }
    assert list(documents[("a@x.org",)]) == ["email", "username", *nothing]


def test_nulls_come_last_in_both_directions_and_the_key_orders_ties(ask: Ask) -> None:
    found = definitions(
        PEOPLE,
        """
        product: p
        root: person
        fields: []
        embed:
          up: {many: visit, on: {person: id}, order_by: rating, value: number}
          down: {many: visit, on: {person: id}, order_by: [-rating], value: number}
          by_city: {many: visit, on: {person: id}, order_by: [city, -number], limit: 3, value: number}
          plain: {many: visit, on: {person: id}, value: number}
        """,
    )
    ratings = {10: "2", 9: None, 8: "2.0", 7: "1", 6: None}
    visits = [
        {"person": 1, "number": n, "rating": rating, "city": "Z" if n > 8 else "a"} for n, rating in ratings.items()
    ]

    documents = ask(found, {"person": [{"id": 1}], "visit": visits})

    assert documents[(1,)] == {
        "up": [7, 8, 10, 6, 9],
        "down": [8, 10, 7, 6, 9],
        "by_city": [10, 9, 8],
        "plain": [6, 7, 8, 9, 10],
    }


def test_joins_nest_and_paths_reach_joined_columns(ask: Ask) -> None:
    found = definitions(
        PEOPLE,
        """
        product: p
        root: person
        join:
          home:
            one: city
            on: {name: city}
            join: {mayor: {one: person, on: {id: mayor}}}
        fields: {name: name, country: home.country, mayor: home.mayor.name}
        embed:
          staff:
            many: person
            on: {boss: id}
            join: {home: {one: city, on: {name: city}}}
            order_by: [-home.country]
            fields: [name]
            embed:
              staff: {many: person, on: {boss: id}, value: name}
              place:
                one: city
                on: {name: city}
                fields: [name, country]
                embed: {mayor: {one: person, on: {id: mayor}, value: name}}
        """,
    )
    people = [
        {"id": 1, "name": "Ann", "boss": 1, "city": "Rome"},
        {"id": 2, "name": "Bea", "boss": 1, "city": "Bonn"},
        {"id": 3, "name": "Cem", "boss": 2, "city": "Nowhere"},
    ]
    cities: Table = [{"name": "Rome", "country": "IT", "mayor": 3}, {"name": "Bonn", "country": "DE", "mayor": None}]

    documents = ask(found, {"person": people, "city": cities})

    rome = {"name": "Rome", "country": "IT", "mayor": "Cem"}
    bonn = {"name": "Bonn", "country": "DE", "mayor": None}
    ann = {"name": "Ann", "staff": ["Ann", "Bea"], "place": rome}
    bea = {"name": "Bea", "staff": ["Cem"], "place": bonn}
    cem: dict[str, Any] = {"name": "Cem", "staff": [], "place": None}
    assert documents == {
        (1,): {"name": "Ann", "country": "IT", "mayor": "Cem", "staff": [ann, bea]},
        (2,): {"name": "Bea", "country": "DE", "mayor": None, "staff": [cem]},
        (3,): {"name": "Cem", "country": None, "mayor": None, "staff": []},
    }


def test_a_one_that_finds_several_rows_takes_the_first_of_order_by_else_the_lowest_key(ask: Ask) -> None:
    found = definitions(
        PEOPLE,
        """
        product: p
        root: person
        join: {last: {one: visit, on: {person: id}, order_by: -at}}
        fields: {last: last.number}
        embed:
          first: {one: visit, on: {person: id}, fields: [number]}
          latest: {one: visit, on: {person: id}, order_by: [-at], value: city}
        """,
    )
    visits = [
        {"person": 1, "number": 10, "city": "x", "at": "2020-01-01T00:00:00Z"},
        {"person": 1, "number": 9, "city": "y", "at": "2021-01-01T00:00:00Z"},
        {"person": 1, "number": 8, "city": "z", "at": None},
    ]

    documents = ask(found, {"person": [{"id": 1}, {"id": 2}], "visit": visits})

    assert documents[(1,)] == {"last": 9, "first": {"number": 8}, "latest": "y"}
    assert documents[(2,)] == {"last": None, "first": None, "latest": None}


def test_a_composite_key_orders_rows_and_a_composite_join_needs_all_its_columns(ask: Ask) -> None:
    found = definitions(
        """
        line: {key: [shop, number], columns: {number: int, shop: string, product: string}}
        product: {key: [shop, code], columns: {shop: string, code: string, name: string}}
        """,
        """
        product: p
        root: line
        value: product.name
        join: {product: {one: product, on: {code: product, shop: shop}}}
        """,
    )
    lines = [
        {"shop": "b", "number": 2, "product": "x"},
        {"shop": "b", "number": 10, "product": None},
        {"shop": "a", "number": 3, "product": "x"},
    ]

    documents = ask(found, {"line": lines, "product": [{"shop": "b", "code": "x", "name": "Axe"}]})

    assert list(documents.items()) == [(("a", 3), None), (("b", 2), "Axe"), (("b", 10), None)]
