"""The oracle: a product's SQL, run by Postgres over plain tables. Independent of the steps and of the table.

The only module that talks to Postgres by psycopg itself; the registry's doorway is `registry.repository`.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from processor.model import canonical_json
from processor.model.change import Value
from processor.model.entity import Entity
from processor.model.product import Product
from processor.model.sql import product_sql, table_ddl

Row = Mapping[str, Any]


class Oracle:
    """Tables of entities in a schema of their own, which goes with the `oracle` block."""

    def __init__(self, connection: psycopg.Connection, schema: str, entities: Mapping[str, Entity]) -> None:
        self._connection, self._schema, self._entities = connection, schema, entities

    def load(self, tables: Mapping[str, Iterable[Row]]) -> None:
        """Makes all tables anew, with these rows (declared columns only)."""
        for name, entity in self._entities.items():
            table = sql.Identifier(self._schema, name)
            self._connection.execute(sql.SQL("drop table if exists {}").format(table))
            self._connection.execute(table_ddl(entity, self._schema).encode())
            columns = list(entity.columns)
            insert = sql.SQL("insert into {} ({}) values ({})").format(
                table,
                sql.SQL(", ").join(map(sql.Identifier, columns)),
                sql.SQL(", ").join(sql.Placeholder() * len(columns)),
            )
            with self._connection.cursor() as cursor:
                cursor.executemany(
                    insert, [[_adapted(entity, c, row.get(c)) for c in columns] for row in tables.get(name, ())]
                )

    def documents(self, product: Product) -> dict[str, Value]:
        """The documents of all roots, by message key."""
        root = self._entities[product.root]
        rows = self._connection.execute(product_sql(product, self._entities, self._schema).encode()).fetchall()
        return {_key(root, row): canonical_json.loads(row[-1]) for row in rows}


@contextmanager
def oracle(url: str, schema: str, entities: Mapping[str, Entity]) -> Iterator[Oracle]:
    """An oracle in the database at `url` (SQLAlchemy's or libpq's form)."""
    with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True) as connection:
        # documents come as text, so that numbers keep their digits
        for name in ("json", "jsonb"):
            connection.adapters.register_loader(name, psycopg.types.string.TextLoader)
        connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(schema)))
        try:
            yield Oracle(connection, schema, entities)
        finally:
            connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))


def _key(root: Entity, row: tuple[Any, ...]) -> str:
    parts = zip(root.key, row, strict=False)
    return canonical_json.dumps({c: int(v) if root.columns[c].name == "int" else v for c, v in parts})


def _adapted(entity: Entity, column: str, value: Value) -> Any:
    kind = entity.columns[column]
    if kind.name != "json" or value is None:
        return value
    return [_json(element) for element in value] if kind.array else _json(value)


def _json(value: Value) -> Jsonb:
    return Jsonb(value, dumps=canonical_json.dumps)
