"""Reads the tables of a source database by SQLAlchemy's inspector: columns, keys, foreign keys and comments.

It reads the catalogue only, never a row. PostgreSQL needs psycopg, MySQL and MariaDB need PyMySQL (the extra `mysql`).
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Inspector, exc, inspect, text
from sqlalchemy.dialects.postgresql import DOMAIN
from sqlalchemy.types import ARRAY, Enum, NullType, Numeric

from processor.drafts.declared_types import ConnectorModes, declared_type
from processor.drafts.draft import DraftColumn, DraftEntity, ForeignKey, fit_limits, legal_name
from processor.errors import SettingError
from processor.source.source_equality import read_equalities
from processor.source.source_session import SourceSession, connected

_NAMES_OF_TYPES: Final = """
    SELECT c.relname, a.attname,
           CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
                          ELSE format_type(a.atttypid, a.atttypmod) END
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE n.nspname = :schema AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
"""
"""The types as PostgreSQL writes them: SQLAlchemy knows no type of an extension, and no precision of a domain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """A source database. `url`: its whole address; `prefix`: the connector's `topic.prefix`; `schemas`: those to read (MySQL:
    databases), by default that of the connection."""

    url: str
    prefix: str
    schemas: Sequence[str]
    modes: ConnectorModes


def read_tables(source: TableSource) -> list[DraftEntity]:
    """The tables of the schemas, in the order of their names. Raises SettingError for a wrong address or schema, and
    StatestoreError for a database that does not answer or refuses the user."""
    with connected(source.url, "--database") as connection:
        inspector = inspect(connection)
        schemas = source.schemas or [inspector.default_schema_name or ""]
        read = [_Schema(connection, inspector, name, source) for name in _checked(schemas, inspector)]
        return [fit_limits(entity) for one in read for entity in one.entities(many=len(read) > 1)]


def _checked(schemas: Sequence[str], inspector: Inspector) -> Sequence[str]:
    known = inspector.get_schema_names()
    for name in schemas:
        if name not in known:
            raise SettingError(f"--schemas: the database has no schema {name!r}; it has {', '.join(known)}")
    return schemas


class _Schema:
    """The tables of one schema."""

    def __init__(self, connection: Connection, inspector: Inspector, schema: str, source: TableSource) -> None:
        self._schema, self._source = schema, source
        self._dialect = inspector.dialect
        self._mysql = inspector.dialect.name in ("mysql", "mariadb")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", exc.SAWarning)  # of types that the dialect does not know
            self._columns = inspector.get_multi_columns(schema=schema)
        self._keys = inspector.get_multi_pk_constraint(schema=schema)
        self._foreign = inspector.get_multi_foreign_keys(schema=schema)
        self._unique = inspector.get_multi_unique_constraints(schema=schema)
        self._comments = inspector.get_multi_table_comment(schema=schema)
        self._equalities = read_equalities(SourceSession(connection, mysql=self._mysql))
        self._rare: dict[tuple[str, str], str] = {}
        if not self._mysql:
            rows = connection.execute(text(_NAMES_OF_TYPES), {"schema": schema})
            self._rare = {(table, column): name for table, column, name in rows}

    def entities(self, *, many: bool) -> Iterator[DraftEntity]:
        """The tables. `many`: there are several schemas, and the name of an entity begins with its schema."""
        for place, columns in sorted(self._columns.items(), key=lambda item: item[0][1]):
            primary: Mapping[str, Any] = self._keys.get(place) or {}
            key = tuple(primary.get("constrained_columns") or ())
            unique = () if key else self._unique_key(place, columns)
            table = place[1]
            comment: Mapping[str, Any] = self._comments.get(place) or {}
            drafts = {column["name"]: self._column(table, column) for column in columns}
            decimal = self._source.modes.decimal
            text_form = {"precise": "bytes", "string": "text"}.get(decimal or "")
            yield DraftEntity(
                name=self._name(table, self._schema, many),
                topic=legal_name(f"{self._source.prefix}.{self._schema}.{table}"),
                key=key or unique,
                key_guess="a unique key, which the connector must know (message.key.columns)" if unique else "",
                columns=drafts,
                comment=comment.get("text") or "",
                note="" if key or unique else "the table has no primary key, and no unique key without nulls",
                decimals=text_form if any(draft.type.startswith("decimal") for draft in drafts.values()) else None,
                references=tuple(self._references(place, many)),
            )

    def _unique_key(self, place: Any, columns: Sequence[Any]) -> tuple[str, ...]:
        filled = {column["name"] for column in columns if not column["nullable"]}
        keys = [tuple(unique["column_names"]) for unique in self._unique.get(place) or ()]
        return next((key for key in keys if key and filled.issuperset(key)), ())

    def _references(self, place: Any, many: bool) -> Iterator[ForeignKey]:
        for foreign in self._foreign.get(place) or ():
            schema = foreign["referred_schema"] or self._schema
            yield ForeignKey(
                columns=tuple(foreign["constrained_columns"]),
                parent=self._name(foreign["referred_table"], schema, many),
                parent_columns=tuple(foreign["referred_columns"]),
            )

    def _name(self, table: str, schema: str, many: bool) -> str:
        return legal_name(f"{schema}.{table}" if many or schema != self._schema else table)

    def _column(self, table: str, column: Any) -> DraftColumn:
        name = self._sql_type(table, column["name"], column["type"])
        found = declared_type(name, self._source.modes, mysql=self._mysql)
        equality = self._equalities.get((self._schema, table, column["name"]))
        compare = equality.compare if equality and found.type.startswith("string") else ()
        return found._replace(comment=column.get("comment") or "", compare=compare)

    def _sql_type(self, table: str, name: str, kind: Any) -> str:
        """The type as SQL writes it. A domain counts as its base, and an enum as `enum`."""
        match kind:
            case DOMAIN(data_type=Numeric() | NullType()):
                return self._rare.get((table, name), "")
            case DOMAIN():
                return self._sql_type(table, name, kind.data_type)
            case ARRAY():
                return self._sql_type(table, name, kind.item_type) + "[]"
            case Enum():
                return "enum"
            case NullType():
                return self._rare.get((table, name), "").removesuffix("[]") or "geometry" * self._mysql
        return str(kind.compile(self._dialect)).partition(" CHARACTER SET")[0].partition(" COLLATE")[0]
