"""The tables of a source as its catalogue shows them: columns with their types, and primary keys. Reads no row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from processor.records.entity import Entity

if TYPE_CHECKING:
    from processor.source.session import SourceSession

_POSTGRES: Final = """
    SELECT n.nspname, c.relname, a.attname,
           CASE t.typtype WHEN 'e' THEN 'enum' WHEN 'd' THEN format_type(t.typbasetype, t.typtypmod)
                          ELSE format_type(a.atttypid, a.atttypmod) END,
           array_position(i.indkey::int2[], a.attnum), n.nspname = current_schema()
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
    WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      AND n.nspname NOT IN ('pg_catalog', 'information_schema')
    ORDER BY 1, 2, a.attnum
"""
_MYSQL: Final = """
    SELECT c.table_schema, c.table_name, c.column_name, c.column_type, s.seq_in_index, c.table_schema = database()
    FROM information_schema.columns c
    JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
    LEFT JOIN information_schema.statistics s ON s.table_schema = c.table_schema AND s.table_name = c.table_name
      AND s.index_name = 'PRIMARY' AND s.column_name = c.column_name
    WHERE t.table_type = 'BASE TABLE'
      AND c.table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')
    ORDER BY 1, 2, c.ordinal_position
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table. `columns`: name -> type as the source writes it; `key`: of the primary key, in its order, perhaps empty.
    `nearby`: in the schema (MySQL: database) of the connection."""

    schema: str
    name: str
    columns: Mapping[str, str]
    key: tuple[str, ...]
    nearby: bool

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


def read_source_tables(session: "SourceSession") -> list[SourceTable]:
    """All tables that the user sees."""
    found: dict[tuple[str, str], dict[str, tuple[str, int | None]]] = {}
    nearby: set[str] = set()
    for schema, table, column, kind, place, near in session.read_rows(_MYSQL if session.mysql else _POSTGRES):
        found.setdefault((schema, table), {})[column] = (kind, place)
        nearby |= {schema} if near else set()
    return [
        SourceTable(
            schema=schema,
            name=table,
            columns={name: kind for name, (kind, _) in columns.items()},
            key=tuple(sorted((c for c, (_, n) in columns.items() if n is not None), key=lambda c: columns[c][1] or 0)),
            nearby=schema in nearby,
        )
        for (schema, table), columns in found.items()
    ]


def table_of(entity: Entity, tables: Sequence[SourceTable]) -> SourceTable | None:
    """The table of an entity: that of `source`; without it the one that the end of the topic names, or the entity's own name."""
    if entity.source:
        return _named(entity.source, tables)
    ends = [one for one in tables if f".{entity.topic}".endswith(f".{_topic_name(str(one))}")]
    return ends[0] if len(ends) == 1 else _named(entity.name, tables)


def _named(name: str, tables: Sequence[SourceTable]) -> SourceTable | None:
    return next((one for one in tables if name == str(one) or (one.nearby and name == one.name)), None)


def _topic_name(name: str) -> str:
    """The name as Debezium writes it in a topic."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)
