"""The oracle runs a product's SQL in Postgres over plain tables. It is independent of the steps and of the table.

No other module sends SQL by psycopg itself; the registry's doorway is `registry.repository`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from processor.errors import OracleError
from processor.language.product.document import message_key
from processor.language.product.expressions.catalogue import folded_text
from processor.language.product.expressions.functions import of_scale
from processor.language.product.expressions.zones import known_times
from processor.language.product.join_fields import parse_compared, secrets_in, zones_in
from processor.language.product.product import Product, root_entity
from processor.language.product.sql_printer import product_sql, sql_name, table_ddl
from processor.values import canonical_json
from processor.values.entity import ColumnType, Entity
from processor.values.record import Value
from processor.values.values import canonical_value, round_to_microseconds
from registry.fields import column_of, computed_column

OracleRow = Mapping[str, Any]


class Oracle:
    """Tables of entities in a schema: in one of their own, which the `oracle` block removes at its end, or in the source's.
    `secrets`: of `hmac_sha256`, for a server whose log may show them."""

    def __init__(
        self,
        connection: psycopg.Connection,
        schema: str,
        entities: Mapping[str, Entity],
        secrets: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._connection, self._schema, self._entities, self._secrets = connection, schema, entities, secrets

    def create(self) -> None:
        """Makes the schema, unless it exists."""
        self._connection.execute(sql.SQL("create schema if not exists {}").format(sql.Identifier(self._schema)))

    def drop(self) -> None:
        """Removes the schema with its tables."""
        self._connection.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(self._schema)))

    def load(self, tables: Mapping[str, Iterable[OracleRow]]) -> None:
        """Replaces all tables by tables with these rows (declared columns only)."""
        for name in self._entities:
            self.fill(name, tables.get(name, ()))

    def fill(self, name: str, rows: Iterable[OracleRow], indexes: Collection[tuple[str, ...]] = ()) -> None:
        """Replaces the table of an entity by one with these rows and with indexes of these fields. Rows are copied one by one,
        not held. Raises OracleError for a row that Postgres refuses."""
        entity, table = self._entities[name], sql.Identifier(self._schema, sql_name(name))
        self._connection.execute(sql.SQL("drop table if exists {}").format(table))
        self._connection.execute(table_ddl(entity, self._schema).encode())
        copied = sql.SQL("copy {} ({}) from stdin").format(table, _column_list(entity.columns))
        with self._connection.cursor() as cursor, cursor.copy(copied) as copy:
            for row in rows:
                try:
                    copy.write_row([_copy_value(column, row.get(c)) for c, column in entity.columns.items()])
                except psycopg.DataError as error:
                    key = ", ".join(str(row[c]) for c in entity.key)
                    cure = "correct it at its source"
                    raise OracleError(f"{name} {key}: Postgres cannot hold this row: {error}; {cure}") from error
        plain = {fields for fields in indexes if not any(map(computed_column, map(column_of, fields)))}
        for columns in sorted({*plain, entity.key}):
            with suppress(psycopg.errors.ProgramLimitExceeded):  # a text of over 2,704 bytes: slower, but right
                fields = sql.SQL(", ").join(map(_index_field, columns))
                self._connection.execute(sql.SQL("create index on {} ({})").format(table, fields))
        self._connection.execute(sql.SQL("analyze {}").format(table))

    def documents(self, product: Product) -> dict[str, Value]:
        """The documents of all roots, by message key."""
        return {key: canonical_json.loads(text) for key, text in self.answer(product)}

    def answer(self, product: Product, clock: int | None = None) -> Iterator[tuple[str, str]]:
        """The message key and the document, as JSON, of each root; fetched in portions. `clock`: of the product, in seconds since
        1970; None for that of the database."""
        root = root_entity(product, self._entities)
        self._check_zones(product)
        with self._connection.cursor("documents", withhold=True) as cursor:
            for row in cursor.execute(self._query(product, clock).encode()):
                yield message_key(product, _root_key(root, row)), row[-1]

    def _check_zones(self, product: Product) -> None:
        """Raises OracleError where the server has other rules of a time zone of the product, from 1970 to 2037."""
        for name, release in sorted({*zones_in(product)}):
            times = [at for year in range(1970, 2038) for at in known_times(name, release, year)]
            other = self._connection.execute(
                "select at::text from unnest(%s::timestamptz[], %s::timestamp[]) as known(at, local) "
                "where (at at time zone %s) <> local order by at limit 1",
                ([f"{at}Z" for at, _ in times], [local for _, local in times], name),
            ).fetchone()
            if other:
                raise OracleError(
                    f"product {product.name}: this Postgres has other rules for the time zone {name} than tzdata {release}, "
                    f"at {other[0]}; ask a server with this release, or verify the product without SQL"
                )

    def _query(self, product: Product, clock: int | None) -> str:
        """The SQL of a product at this clock, with the values of its secrets. Raises OracleError where they are not given."""
        text = product_sql(product, self._entities, self._schema, clock=clock)
        for name in sorted(set(secrets_in(product))):
            if name not in self._secrets:
                cure = "a query with its value may come into the server's log: verify the product without SQL"
                raise OracleError(f"product {product.name} uses the secret `:{name}`; {cure}")
            text = text.replace(f":'{name}'", sql.Literal(self._secrets[name]).as_string(self._connection))
        return text


@contextmanager
def oracle(
    url: str, schema: str, entities: Mapping[str, Entity], secrets: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Oracle]:
    """An oracle in the database at `url` (a URL of SQLAlchemy or libpq). Raises OracleError if Postgres refuses a request."""
    with source_oracle(url, schema, entities, secrets) as made:
        made.create()
        try:
            yield made
        finally:
            made.drop()


@contextmanager
def source_oracle(
    url: str, schema: str, entities: Mapping[str, Entity], secrets: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Oracle]:
    """An oracle over the tables that a schema has: those of the source itself. Raises OracleError as `oracle` does."""
    try:
        with psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), autocommit=True) as connection:
            # Load documents as text, so that numbers keep their digits, and times too, since Python would cut them.
            for name in ("json", "jsonb", "date", "timestamptz"):
                connection.adapters.register_loader(name, psycopg.types.string.TextLoader)
            connection.execute("set timezone to 'UTC'; set datestyle to 'ISO'")
            yield Oracle(connection, schema, entities, secrets)
    except psycopg.Error as error:
        cure = "correct the address, the permission or the row that the error names"
        raise OracleError(f"Postgres cannot answer the documents of SQL; {cure}: {error}") from error


def _column_list(columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, map(sql_name, columns)))


def _index_field(field: str) -> sql.Composable:
    """A column, or the folded text with which a query of SQL finds it."""
    compared = parse_compared(field)
    if compared is None:
        return sql.Identifier(sql_name(field))
    return sql.SQL(f"({folded_text('{}', compared[1])})").format(sql.Identifier(sql_name(compared[0])))


def _root_key(root: Entity, row: tuple[Any, ...]) -> str:
    parts = zip(root.key, row, strict=False)
    return canonical_json.dumps({c: canonical_value(v, root.columns[c]) for c, v in parts})


def _copy_value(column: ColumnType, value: Value) -> Any:
    """The value in a form that COPY accepts. All numbers of an array get one type."""
    if value is None:
        return None
    if column.array:
        element = replace(column, array=False)
        return [_copy_value(element, each) for each in value]
    if column.name == "json":
        return Jsonb(value, dumps=canonical_json.dumps)
    if column.name == "timestamp":
        return round_to_microseconds(canonical_value(value, column))
    if column.name == "decimal" and column.scale is not None:
        return of_scale(Decimal(str(value)), column.scale)  # as in the source: 4.50, and a row keeps 4.5
    return Decimal(value) if type(value) is int else value
