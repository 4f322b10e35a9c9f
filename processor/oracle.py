"""The oracle: a product's SQL, run by Postgres over plain tables. Independent of the steps and of the table.

The only module that talks to Postgres by psycopg itself; the registry's doorway is `registry.repository`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from processor.errors import OracleError
from processor.model import canonical_json
from processor.model.change import Value
from processor.model.entity import ColumnType, Entity
from processor.model.product import Product
from processor.model.sql import product_sql, table_ddl
from processor.model.values import canonical

Row = Mapping[str, Any]


class Oracle:
    """Tables of entities in a schema of their own, which goes with the `oracle` block."""

    def __init__(self, connection: psycopg.Connection, schema: str, entities: Mapping[str, Entity]) -> None:
        self._connection, self._schema, self._entities = connection, schema, entities

    def load(self, tables: Mapping[str, Iterable[Row]]) -> None:
        """Makes all tables anew, with these rows (declared columns only)."""
        for name in self._entities:
            self.fill(name, tables.get(name, ()))

    def fill(self, name: str, rows: Iterable[Row], indexes: Collection[tuple[str, ...]] = ()) -> None:
        """Makes the table of an entity anew, with these rows, which are not held, and with indexes of these columns."""
        entity, table = self._entities[name], sql.Identifier(self._schema, name)
        self._connection.execute(sql.SQL("drop table if exists {}").format(table))
        self._connection.execute(table_ddl(entity, self._schema).encode())
        copied = sql.SQL("copy {} ({}) from stdin").format(table, _listed(entity.columns))
        with self._connection.cursor() as cursor, cursor.copy(copied) as copy:
            for row in rows:
                try:
                    copy.write_row([_adapted(column, row.get(c)) for c, column in entity.columns.items()])
                except psycopg.DataError as error:
                    key = ", ".join(str(row[c]) for c in entity.key)
                    cure = "correct it at its source"
                    raise OracleError(f"{name} {key}: Postgres cannot hold this row: {error}; {cure}") from error
        for columns in sorted(indexes):
            with suppress(psycopg.errors.ProgramLimitExceeded):  # a text of more than 2,704 bytes: slower without
                self._connection.execute(sql.SQL("create index on {} ({})").format(table, _listed(columns)))
        self._connection.execute(sql.SQL("analyze {}").format(table))

    def documents(self, product: Product) -> dict[str, Value]:
        """The documents of all roots, by message key."""
        return {key: canonical_json.loads(text) for key, text in self.answer(product)}

    def answer(self, product: Product) -> Iterator[tuple[str, str]]:
        """The message key and the document, as JSON, of each root; fetched a portion at a time."""
        root = self._entities[product.root]
        with self._connection.cursor("documents", withhold=True) as cursor:
            for row in cursor.execute(product_sql(product, self._entities, self._schema).encode()):
                yield _key(root, row), row[-1]


@contextmanager
def oracle(url: str, schema: str, entities: Mapping[str, Entity]) -> Iterator[Oracle]:
    """An oracle in the database at `url` (SQLAlchemy's or libpq's form). Raises OracleError for what Postgres refuses."""
    try:
        with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True) as connection:
            # documents come as text, so that numbers keep their digits; so do times, which Python cuts
            for name in ("json", "jsonb", "date", "timestamptz"):
                connection.adapters.register_loader(name, psycopg.types.string.TextLoader)
            connection.execute("set timezone to 'UTC'; set datestyle to 'ISO'")
            connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
            try:
                yield Oracle(connection, schema, entities)
            finally:
                connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))
    except psycopg.Error as error:
        cure = "correct the address, the right or the row that it names"
        raise OracleError(f"Postgres cannot answer the documents of SQL; {cure}: {error}") from error


def _listed(columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _key(root: Entity, row: tuple[Any, ...]) -> str:
    parts = zip(root.key, row, strict=False)
    return canonical_json.dumps({c: canonical(v, root.columns[c]) for c, v in parts})


def _adapted(column: ColumnType, value: Value) -> Any:
    """The value as COPY takes it; numbers of an array are of one type."""
    if value is None:
        return None
    if column.array:
        element = replace(column, array=False)
        return [_adapted(element, each) for each in value]
    if column.name == "json":
        return Jsonb(value, dumps=canonical_json.dumps)
    return Decimal(value) if type(value) is int else value
