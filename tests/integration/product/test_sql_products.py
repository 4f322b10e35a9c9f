"""The unfolded documents of a product in SQL equal the rows that Postgres answers to the author's query."""

import itertools
import uuid
from collections.abc import Iterator, Mapping
from textwrap import indent
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from processor.language.definitions.load import load
from processor.tools.inspect.oracle import oracle
from tests.integration.product.conftest import documents

ENTITIES = """
user: {key: [email], columns: {id: int, email: string, username: string}}
star: {key: [username, repo_name], columns: {username: string, repo_name: string, points: int}}
repo: {key: [name], columns: {name: string, description: string}}
pull_request: {key: [number], columns: {number: int, author: string, status: string}}
payment_info: {key: [id], columns: {id: int, user_id: int, verified: bool, data: json, tags: "string[]"}}
"""
ROWS: dict[str, list[dict[str, Any]]] = {
    "user": [{"id": n, "email": f"{name}@x.org", "username": name} for n, name in enumerate(["ann", "bob", "cem", None])],
    "star": [
        {"username": "ann", "repo_name": "tool", "points": 1},
        {"username": "ann", "repo_name": "gone", "points": 2},
        {"username": "bob", "repo_name": "tool", "points": None},
    ],
    "repo": [{"name": "tool", "description": "A tool"}, {"name": "unused", "description": None}],
    "pull_request": [
        {"number": n, "author": author, "status": status}
        for n, (author, status) in enumerate(
            [("ann", "open"), ("ann", "draft"), ("bob", "draft"), ("cem", "open"), (None, "open"), ("ann", None)]
        )
    ],
    "payment_info": [
        {"id": 1, "user_id": 0, "verified": True, "data": {"city": "Ulm", "ages": [3, None]}, "tags": ["x", None]},
        {"id": 2, "user_id": 0, "verified": False, "data": {"ages": [7]}, "tags": []},
        {"id": 3, "user_id": 1, "verified": None, "data": [1]},
        {"id": 4, "user_id": None, "verified": True},
    ],
}  # fmt: skip
QUERIES = [
    """select u.email, s.repo_name, p.number, i.verified from "user" u left join star s on s.username = u.username
       left join pull_request p on p.author = u.username left join payment_info i on i.user_id = u.id""",
    """select u.email, upper(u.username) as name, s.points + 1 as points, r.description from "user" u
       left join star s on s.username = u.username and (s.points > 1 or s.points is null)
       left join repo r on r.name = s.repo_name where u.id < 3 and not u.username = 'cem'""",
    """select email, s.repo_name as starred, description, verified from "user" u join star s on s.username = u.username
       inner join repo r on r.name = s.repo_name left join payment_info on user_id = u.id and verified is not null
       where s.points = 1 or s.points is null""",
    """select u.*, p.number as pull from "user" u inner join pull_request p on p.author = u.username
       where p.status = 'open' order by p.status desc nulls last, p.number""",
    """select p.number, a.email as author, i.id as payment from pull_request p left join "user" a on a.username = p.author
       left join payment_info i on i.user_id = a.id where p.status <> 'draft'""",
    """select i.id, i.data ->> 'city' as city, (i.data -> 'ages' ->> 0)::int as age, jsonb_typeof(i.data #> '{ages}') as ages,
       md5(u.email) as hash, regexp_replace(u.email, '^(.)n+', '\\1-', 'g') as masked from payment_info i left join "user" u
       on u.id = i.user_id and u.email ~ 'n' where i.data ? 'city' or i.data @> '{"ages": [7]}' or not 'x' = any(i.tags)""",
    """select u.id, s.points, p.number, i.verified from "user" u
       left join star s on lower(s.username || 'X') = lower(u.username) || 'x'
       left join pull_request p on p.number % 2 = u.id and upper(p.author) like 'A%'
       left join payment_info i on (i.data -> 'ages' ->> 0)::int = u.id + 3""",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_unfolded_documents_are_the_rows_of_the_query(postgres_url: str, query: str) -> None:
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": "product: p\nsql: |\n" + indent(query, "  ")})
    schema = f"query_{uuid.uuid4().hex}"
    with oracle(postgres_url, schema, definitions.entities) as tables:
        tables.load(ROWS)
        found = tables.documents(definitions.products["p"])
        rows = _query_rows(postgres_url, schema, query)
    assert documents(definitions, ROWS) == found
    unfolded = [row for document in found.values() for row in _unfolded(document)]
    assert rows
    assert _sorted(rows) == _sorted([{name: row.get(name) for name in rows[0]} for row in unfolded])


def _query_rows(url: str, schema: str, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), row_factory=dict_row) as connection:
        connection.execute("select set_config('search_path', %s, false)", [schema])
        return connection.execute(query.encode()).fetchall()


def _unfolded(document: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of the joined tables: each element of a list combined with each element of every other list."""
    lists = [
        value if isinstance(value, list) else [value] for value in document.values() if isinstance(value, list | dict)
    ]
    below = [[row for element in elements for row in _unfolded(element)] or [{}] for elements in lists]
    own = {name: value for name, value in document.items() if not isinstance(value, list | dict)}
    for rows in itertools.product(*below):
        yield own | {name: value for row in rows for name, value in row.items()}


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: str(sorted(row.items())))
