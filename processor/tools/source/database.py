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

from processor.errors import SettingError
from processor.tools.source.column_types import ConnectorModes, declared_type
from processor.tools.source.draft import DraftColumn, DraftEntity, ForeignKey, distinct_names, fit_limits, legal_name
from processor.tools.source.session import SourceSession, connected, read_equalities, unsent_as_null

GENERATED: Final = "a generated column, which records after the snapshot lack: compute it in the product, or publish it"
_NAMES_OF_TYPES: Final = """
    SELECT c.relname, a.attname,
           CASE t.typtype WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
                          ELSE format_type(a.atttypid, a.atttypmod) END
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE n.nspname = :schema AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
"""
"""The types as PostgreSQL writes them: SQLAlchemy knows no type of an extension, and no precision of a domain."""
_FOREIGN_KEYS: Final = """
    SELECT c.relname AS child, p.nspname AS schema, r.relname AS parent,
           (SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.conkey) WITH ORDINALITY k (number, place)
            JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.number) AS columns,
           (SELECT array_agg(a.attname::text ORDER BY k.place) FROM unnest(f.confkey) WITH ORDINALITY k (number, place)
            JOIN pg_attribute a ON a.attrelid = f.confrelid AND a.attnum = k.number) AS parent_columns
    FROM pg_constraint f
    JOIN pg_class c ON c.oid = f.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class r ON r.oid = f.confrelid JOIN pg_namespace p ON p.oid = r.relnamespace
    LEFT JOIN pg_constraint whole ON whole.oid = f.conparentid
    WHERE f.contype = 'f' AND n.nspname = :schema AND whole.conrelid IS DISTINCT FROM f.conrelid
    ORDER BY c.relname, f.conname
"""
"""The foreign keys, without those that PostgreSQL adds for each partition of a parent. SQLAlchemy leaves out a parent's schema
that is on the search path, and cannot read a name with the end of a line."""
_Table = tuple[str, str]
"""Schema and table."""
_TableKey = tuple[tuple[str, ...], _Table, tuple[str, ...]]
"""A foreign key: its columns, the parent, and the columns there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource:
    """A source database."""

    url: str
    """Its whole address."""
    prefix: str
    """The connector's `topic.prefix`."""
    schemas: Sequence[str]
    """Those to read (MySQL: databases); empty: that of the connection."""
    modes: ConnectorModes


def read_tables(source: TableSource) -> list[DraftEntity]:
    """The tables of the schemas, in the order of their names. Raises SettingError for a wrong address or schema, and
    StatestoreError for a database that does not answer or refuses the user."""
    with connected(source.url, "--database") as connection:
        inspector = inspect(connection)
        schemas = source.schemas or [inspector.default_schema_name or ""]
        read = [_Schema(connection, inspector, name, source) for name in dict.fromkeys(_checked(schemas, inspector))]
        tables = [table for one in read for table in one.tables()]
        names = distinct_names({(s, t): legal_name(f"{s}.{t}" if len(read) > 1 else t) for s, t in tables})
        return [fit_limits(entity) for one in read for entity in one.entities(names, _clashes(tables, source.prefix))]


def _checked(schemas: Sequence[str], inspector: Inspector) -> Sequence[str]:
    known = inspector.get_schema_names()
    for name in schemas:
        if name not in known:
            raise SettingError(f"--schemas: the database has no schema {name!r}; it has {', '.join(known)}")
    return schemas


def _topic(prefix: str, table: _Table) -> str:
    return legal_name(".".join((prefix, *table)))


def _clashes(tables: Sequence[_Table], prefix: str) -> dict[_Table, str]:
    """Why a table cannot be an entity, for those with one topic: Debezium writes `_` for each sign that a topic cannot have."""
    by_topic: dict[str, list[_Table]] = {}
    for table in tables:
        by_topic.setdefault(_topic(prefix, table), []).append(table)
    return {
        one: f"the connector writes {len(same)} tables to this topic: {', '.join(map('.'.join, same))}"
        for same in by_topic.values()
        if len(same) > 1
        for one in same
    }


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
        self._foreign = self._mysql_keys(inspector) if self._mysql else self._postgres_keys(connection)
        self._unique = inspector.get_multi_unique_constraints(schema=schema)
        self._comments = inspector.get_multi_table_comment(schema=schema)
        self._equalities = read_equalities(SourceSession(connection, mysql=self._mysql))
        self._rare: dict[tuple[str, str], str] = {}
        if not self._mysql:
            rows = connection.execute(text(_NAMES_OF_TYPES), {"schema": schema})
            self._rare = {(table, column): name for table, column, name in rows}

    def tables(self) -> list[_Table]:
        """The tables, in the order of their names."""
        return [(self._schema, table) for table in sorted(table for _, table in self._columns)]

    def entities(self, names: Mapping[_Table, str], clashes: Mapping[_Table, str]) -> Iterator[DraftEntity]:
        """The entities. `names`: of the tables of all schemas; `clashes`: why some tables cannot be entities."""
        for place, columns in sorted(self._columns.items(), key=lambda item: item[0][1]):
            primary: Mapping[str, Any] = self._keys.get(place) or {}
            key = tuple(primary.get("constrained_columns") or ())
            unique = () if key else self._unique_key(place, columns)
            table = place[1]
            comment: Mapping[str, Any] = self._comments.get(place) or {}
            drafts = {column["name"]: self._column(table, column) for column in columns}
            decimal = self._source.modes.decimal
            text_form = {"precise": "bytes", "string": "text", "double": "text"}.get(decimal or "")
            yield DraftEntity(
                name=names[self._schema, table],
                topic=_topic(self._source.prefix, (self._schema, table)),
                key=key or unique,
                key_guess="a unique key, which the connector must know (message.key.columns)" if unique else "",
                columns=drafts,
                comment=comment.get("text") or "",
                note="" if key or unique else "the table has no primary key, and no unique key without nulls",
                decimals=text_form if any(draft.type.startswith("decimal") for draft in drafts.values()) else None,
                references=tuple(self._references(table, names)),
                refusal=clashes.get((self._schema, table), ""),
            )

    def _unique_key(self, place: Any, columns: Sequence[Any]) -> tuple[str, ...]:
        filled = {column["name"] for column in columns if not column["nullable"]}
        keys = [tuple(unique["column_names"]) for unique in self._unique.get(place) or ()]
        return next((key for key in keys if key and filled.issuperset(key)), ())

    def _references(self, table: str, names: Mapping[_Table, str]) -> Iterator[ForeignKey]:
        """The foreign keys of a table to tables that have names."""
        for columns, parent, parent_columns in self._foreign.get(table, ()):
            if parent in names:
                yield ForeignKey(columns=columns, parent=names[parent], parent_columns=parent_columns)

    def _postgres_keys(self, connection: Connection) -> Mapping[str, list[_TableKey]]:
        found: dict[str, list[_TableKey]] = {}
        for child, schema, parent, columns, parent_columns in connection.execute(
            text(_FOREIGN_KEYS), {"schema": self._schema}
        ):
            found.setdefault(child, []).append((tuple(columns), (schema, parent), tuple(parent_columns)))
        return found

    def _mysql_keys(self, inspector: Inspector) -> Mapping[str, list[_TableKey]]:
        return {
            table: [
                (
                    tuple(key["constrained_columns"]),
                    (key["referred_schema"] or self._schema, key["referred_table"]),
                    tuple(key["referred_columns"]),
                )
                for key in foreign
            ]
            for (_, table), foreign in inspector.get_multi_foreign_keys(schema=self._schema).items()
        }

    def _column(self, table: str, column: Any) -> DraftColumn:
        name = self._sql_type(table, column["name"], column["type"])
        found = declared_type(name, self._source.modes, mysql=self._mysql)
        if column.get("computed") and not self._mysql:
            found = DraftColumn("", GENERATED)
        unsent = (
            not self._mysql
            and not column["nullable"]
            and bool(unsent_as_null(self._rare.get((table, column["name"]), name)))
        )
        equality = self._equalities.get((self._schema, table, column["name"]))
        compare = equality.compare if equality and found.type.startswith("string") else ()
        not_null = unsent and bool(found.type)
        return found._replace(comment=column.get("comment") or "", compare=compare, not_null=not_null)

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
