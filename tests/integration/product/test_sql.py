"""PostgreSQL runs the SQL of products; the documents equal those computed by hand."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from textwrap import dedent
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb, set_json_loads

from processor.definitions.load import load, read_directory
from processor.product.product import Definitions
from processor.product.sql.product_query import product_sql, table_ddl

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Table = list[dict[str, Any]]
Ask = Callable[[Definitions, Rows], dict[tuple[Any, ...], Any]]
EXAMPLE = Path(__file__).parents[3] / "examples" / "github"


@pytest.fixture
def ask(postgres_url: str) -> Iterator[Ask]:
    """A function that puts rows into a new schema, and answers the first product's documents by key, with exact numbers."""
    schema = f"sql_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
        connection.execute("SET TIME ZONE 'Asia/Kathmandu'")  # 5:45 ahead of UTC; documents do not depend on it
        set_json_loads(lambda text: json.loads(text, parse_float=Decimal), connection)

        def answer(definitions: Definitions, rows: Rows) -> dict[tuple[Any, ...], Any]:
            for entity in definitions.entities.values():
                connection.execute(table_ddl(entity, schema))
                for row in rows.get(entity.name, ()):
                    insert(connection, schema, entity.name, row)
            product = next(iter(definitions.products.values()))
            answers = connection.execute(product_sql(product, definitions.entities, schema)).fetchall()
            return {tuple(row[:-1]): row[-1] for row in answers}

        yield answer
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema)))


def insert(connection: psycopg.Connection[Any], schema: str, table: str, row: Mapping[str, Any]) -> None:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(schema, table),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder() * len(row)),
    )
    values = [Jsonb(value) if isinstance(value, dict) else value for value in row.values()]
    connection.execute(statement, values)


def definitions(entities: str, product: str) -> Definitions:
    return load({"entities.yaml": dedent(entities), "product.yaml": dedent(product)})


PEOPLE = """
    person:
      key: [id]
      columns: {id: int, name: string, boss: int, city: string}
    city:
      key: [name]
      columns: {name: string, country: string, mayor: int}
    visit:
      key: [person, number]
      columns: {person: int, number: int, city: string, at: timestamp, rating: decimal}
"""


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
