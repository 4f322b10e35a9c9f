"""Postgres answers the SQL of products: as it is, and next to the documents that the steps publish."""

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb, set_json_loads

from processor.language.product.product import Definitions
from processor.language.product.sql_printer import product_sql, table_ddl
from processor.tools.inspect.oracle import oracle
from processor.values import canonical_json
from processor.values.record import Record
from tests.integration.conftest import SECRETS
from tests.integration.product.published import last_documents, plain

Rows = Mapping[str, Sequence[Mapping[str, Any]]]
Ask = Callable[[Definitions, Rows], dict[tuple[Any, ...], Any]]
Both = Callable[[Definitions, Rows], dict[str, Any]]


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


@pytest.fixture(scope="module")
def both(postgres_url: str) -> Both:
    """A function that answers the first product's documents by key, from Postgres, after it compared them with the steps'."""

    def answer(definitions: Definitions, rows: Rows) -> dict[str, Any]:
        (product, *_) = definitions.products.values()
        with oracle(postgres_url, f"both_{uuid.uuid4().hex}", definitions.entities, SECRETS) as tables:
            tables.load(rows)
            truth = tables.documents(product)
        assert documents(definitions, rows) == truth
        return truth

    return answer


def documents(definitions: Definitions, rows: Rows) -> dict[str, Any]:
    """The last documents of the first product, as the steps publish them."""
    (product, *_) = definitions.products
    records = (
        Record(topic=name, partition=0, offset=n, key=None, value=canonical_json.encode(plain(row)))
        for name, table in rows.items()
        for n, row in enumerate(table)
    )
    return last_documents(definitions, records)[product]
