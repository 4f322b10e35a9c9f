"""The documents of a product in SQL are the rows that Postgres answers to the author's query, where it is a view as it is."""

import json
import re
import uuid
from decimal import Decimal
from pathlib import Path
from textwrap import indent
from typing import Any

import psycopg
import pytest
from psycopg.types.json import set_json_loads

from processor.language.definitions import sql_views
from processor.language.definitions.describe import describe_product
from processor.language.definitions.load import load
from processor.language.definitions.problems import DefinitionError
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from tests.integration.product.conftest import documents

ENTITIES = """
users: {key: [id], columns: {id: int, name: string, city: int, plan: string}}
city: {key: [id], columns: {id: int, name: string, country: string}}
country: {key: [code], columns: {code: string, title: string}}
orders: {key: [id], columns: {id: int, user_id: int, status: string, total: decimal, at: date}}
line: {key: [order_id, number], columns: {order_id: int, number: int, item: string, qty: int, price: decimal}}
item: {key: [sku], columns: {sku: string, title: string}}
address: {key: [id], columns: {id: int, user_id: int, street: string, main: bool}}
node: {key: [id], columns: {id: int, name: string, up: int}}
"""
ROWS: dict[str, list[dict[str, Any]]] = {
    "users": [
        {"id": 1, "name": "Ada", "city": 1, "plan": "pro"},
        {"id": 2, "name": "Bob", "city": 2, "plan": None},
        {"id": 3, "name": None, "city": None, "plan": "pro"},
        {"id": 4, "name": "Dee", "city": 9, "plan": "free"},
    ],
    "city": [{"id": 1, "name": "Rom", "country": "IT"}, {"id": 2, "name": "Ulm", "country": "DE"}],
    "country": [{"code": "IT", "title": "Italy"}],
    "orders": [
        {"id": 10, "user_id": 1, "status": "open", "total": 5, "at": "2026-01-01"},
        {"id": 11, "user_id": 1, "status": "paid", "total": 7, "at": None},
        {"id": 12, "user_id": 1, "status": "paid", "total": None, "at": "2026-01-03"},
        {"id": 13, "user_id": 2, "status": None, "total": 1, "at": "2026-01-02"},
        {"id": 14, "user_id": 4, "status": "open", "total": 9, "at": "2026-01-02"},
        {"id": 15, "user_id": None, "status": "open", "total": 9, "at": "2026-01-02"},
    ],
    "line": [
        {"order_id": 10, "number": 1, "item": "pen", "qty": 2, "price": 1.5},
        {"order_id": 10, "number": 2, "item": "ink", "qty": 1, "price": 2},
        {"order_id": 11, "number": 1, "item": "gone", "qty": None, "price": 7},
        {"order_id": 13, "number": 1, "item": "pen", "qty": 1, "price": 1},
    ],
    "item": [{"sku": "pen", "title": "A pen"}, {"sku": "ink", "title": None}],
    "address": [
        {"id": 1, "user_id": 1, "street": "A", "main": False},
        {"id": 2, "user_id": 1, "street": "B", "main": True},
        {"id": 3, "user_id": 2, "street": "C", "main": None},
    ],
    "node": [
        {"id": 1, "name": "all", "up": None},
        {"id": 2, "name": "pens", "up": 1},
        {"id": 3, "name": None, "up": 2},
        {"id": 4, "name": "ink", "up": 3},
        {"id": 5, "name": "other", "up": None},
        {"id": 6, "name": "lost", "up": 9},
    ],
}  # fmt: skip
HERE = Path(__file__).parent


def _queries(file: str) -> dict[str, str]:
    """The queries of a file by the words in the comment above each."""
    parts = re.split(r"^-- (.*)\n", (HERE / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: query.strip() for name, query in zip(parts[1::2], parts[2::2], strict=True)}


VIEWS, MORE, REFUSED = _queries("views.sql"), _queries("more_views.sql"), _queries("refused_views.sql")
OFTEN = ("a group of null", "with, name after name", "levels of a tree")
"""Those of `more_views.sql` that each run of the tests has."""


@pytest.fixture(autouse=True)
def few_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SQL of a recursive join writes out each level, and Postgres plans it for seconds."""
    monkeypatch.setattr(sql_views, "_LEVELS", 5)


@pytest.mark.parametrize("reason", REFUSED)
def test_a_query_whose_rows_are_no_documents_is_refused(reason: str) -> None:
    with pytest.raises(DefinitionError) as wrong:
        load({"entities.yaml": ENTITIES, "p.yaml": "product: p\nsql: |\n" + indent(REFUSED[reason], "  ")})
    assert reason.partition(" (")[0] in str(wrong.value)


@pytest.mark.parametrize(
    "name",
    [*VIEWS, *(pytest.param(name, marks=() if name in OFTEN else pytest.mark.rest) for name in MORE)],
)
def test_the_documents_of_a_view_are_its_rows(postgres_url: str, name: str) -> None:
    query = {**VIEWS, **MORE}[name]
    flat = "flat: true\n" if name in ("one joins",) else ""
    definitions = load({"entities.yaml": ENTITIES, "p.yaml": f"product: p\n{flat}sql: |\n" + indent(query, "  ")})
    product = definitions.products["p"]
    described = describe_product(product)
    again = load({"entities.yaml": ENTITIES, "p.yaml": canonical_json.dumps(described)})
    assert again.products["p"] == product
    schema = f"view_{uuid.uuid4().hex}"
    with oracle(postgres_url, schema, definitions.entities) as tables:
        tables.load(ROWS)
        found = tables.documents(product)
        rows = _rows(postgres_url, schema, query)
    assert documents(definitions, ROWS) == found
    assert rows
    assert _sorted(found.values()) == _sorted(rows), described
    assert list(next(iter(found.values()))) == list(rows[0])


def _rows(url: str, schema: str, query: str) -> list[Any]:
    plain = url.replace("postgresql+psycopg://", "postgresql://", 1)
    with psycopg.connect(plain) as connection:
        set_json_loads(lambda text: json.loads(text, parse_float=Decimal), connection)
        connection.execute("select set_config('search_path', %s, false)", [schema])
        return [row for (row,) in connection.execute(f"select to_json(q) from ({query}) as q".encode())]


def _sorted(rows: Any) -> list[Any]:
    return sorted(rows, key=lambda row: json.dumps(row, default=str, sort_keys=True))
