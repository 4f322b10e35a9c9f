"""What the catalogue of a source says about its log and its tables, for `doctor --source`. Reads no row of a table."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from processor.source.session import SourceSession


_SERVER: Final = """
    SELECT current_setting('server_version_num')::int, current_setting('wal_level'),
           coalesce(current_setting('max_slot_wal_keep_size', true), '-1')
"""
_SLOTS: Final = """
    SELECT slot_name, active, coalesce(wal_status, ''),
           pg_size_pretty(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                                               ELSE pg_current_wal_lsn() END, confirmed_flush_lsn)::bigint)
    FROM pg_replication_slots WHERE slot_type = 'logical' AND database = current_database() AND NOT temporary ORDER BY 1
"""
_TABLES: Final = """
    SELECT n.nspname, c.relname, c.relkind = 'p', c.relpersistence = 'u', c.relreplident::text,
           EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary),
           array(SELECT p.pubname::text FROM pg_publication p WHERE p.puballtables OR EXISTS (
             SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = c.oid) OR EXISTS (
             SELECT FROM pg_publication_tables t WHERE t.pubname = p.pubname AND t.schemaname = n.nspname
               AND t.tablename = c.relname)),
           array(SELECT p.pubname::text FROM pg_publication p WHERE NOT p.pubviaroot),
           array(SELECT p.pubname::text FROM pg_publication p WHERE NOT (p.pubinsert AND p.pubupdate AND p.pubdelete))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')
"""
_COLUMNS: Final = """
    SELECT n.nspname, c.relname, a.attname, a.attnotnull, {generated} <> '', a.atthasdef AND {generated} = '',
           EXISTS (SELECT FROM pg_stats s WHERE s.schemaname = n.nspname AND s.tablename = c.relname
             AND s.attname = a.attname AND s.null_frac > 0),
           array(SELECT p.pubname::text FROM pg_publication_tables p WHERE p.schemaname = n.nspname
             AND p.tablename = c.relname AND NOT {published} ORDER BY 1)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      AND n.nspname NOT IN ('pg_catalog', 'information_schema')
"""
_VARIABLES: Final = """
    SHOW GLOBAL VARIABLES WHERE variable_name IN
      ('version', 'log_bin', 'binlog_format', 'binlog_row_image', 'binlog_row_value_options')
"""
_CASCADES: Final = """
    SELECT r.constraint_schema, r.table_name, r.referenced_table_name, r.constraint_name, r.delete_rule, r.update_rule
    FROM information_schema.referential_constraints r
    WHERE r.delete_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT') OR r.update_rule IN ('CASCADE', 'SET NULL', 'SET DEFAULT')
    ORDER BY 1, 2, 4
"""


class ReplicationSlot(NamedTuple):
    """A logical slot of the database. `kept`: how much log it holds back, for people."""

    name: str
    active: bool
    wal_status: str
    kept: str


class ColumnFacts(NamedTuple):
    """A column of PostgreSQL. `generated`: its stored value is an expression; `has_nulls`: the statistics of the server saw a
    null; `left_out_by`: the publications of its table that do not publish it."""

    not_null: bool
    generated: bool
    has_default: bool
    has_nulls: bool
    left_out_by: Sequence[str]


class TableFacts(NamedTuple):
    """A table of PostgreSQL. `identity`: of its replica identity; `publications`: that have it; `not_via_root`, `without_all`:
    all publications that publish by partition, or leave out a kind of change."""

    schema: str
    name: str
    partitioned: bool
    unlogged: bool
    identity: str
    has_key: bool
    publications: Sequence[str]
    not_via_root: Sequence[str]
    without_all: Sequence[str]
    columns: Mapping[str, ColumnFacts] = {}


class PostgresFacts(NamedTuple):
    """The server, its slots, and its tables by `schema.name`. `version`: such as 180001; `keeps`: max_slot_wal_keep_size."""

    version: int
    wal_level: str
    keeps: str
    slots: Sequence[ReplicationSlot]
    tables: Mapping[str, TableFacts]


class CascadingKey(NamedTuple):
    """A foreign key whose rule changes rows of `table` when a row of `parent` changes."""

    schema: str
    table: str
    parent: str
    name: str
    on_delete: str
    on_update: str


class MysqlFacts(NamedTuple):
    """The server's variables, and its cascading foreign keys."""

    variables: Mapping[str, str]
    cascades: Sequence[CascadingKey]

    @property
    def logs_cascades(self) -> bool:
        """Whether the binary log has the rows of cascades: MySQL from 9.6 on, and no MariaDB."""
        version = self.variables.get("version", "")
        parts = version.partition("-")[0].split(".")
        return "mariadb" not in version.lower() and tuple(map(int, parts[:2])) >= (9, 6)


def read_postgres_facts(session: "SourceSession") -> PostgresFacts:
    """The facts of a PostgreSQL."""
    ((version, wal_level, keeps),) = session.read_rows(_SERVER)
    tables = [TableFacts(*row) for row in session.read_rows(_TABLES)]
    columns = _columns(session, version)
    tables = [one._replace(columns=columns.get((one.schema, one.name), {})) for one in tables]
    return PostgresFacts(
        version=version,
        wal_level=wal_level,
        keeps=keeps,
        slots=[ReplicationSlot(*row) for row in session.read_rows(_SLOTS)],
        tables={f"{one.schema}.{one.name}": one for one in tables},
    )


def _columns(session: "SourceSession", version: int) -> Mapping[tuple[str, str], Mapping[str, ColumnFacts]]:
    """The columns of each table. PostgreSQL has generated columns from 12 on, column lists from 15 on, and publishes generated
    columns from 18 on, if a publication says it."""
    generated = "a.attgenerated" if version >= 120000 else "''"
    listed = "a.attname = ANY(p.attnames)" if version >= 150000 else "true"
    published = listed if version >= 180000 else f"({generated} = '' AND {listed})"
    found: dict[tuple[str, str], dict[str, ColumnFacts]] = {}
    for schema, table, column, *facts in session.read_rows(_COLUMNS.format(generated=generated, published=published)):
        found.setdefault((schema, table), {})[column] = ColumnFacts(*facts)
    return found


def read_mysql_facts(session: "SourceSession") -> MysqlFacts:
    """The facts of a MySQL or a MariaDB."""
    variables = {row[0]: str(row[1]) for row in session.read_rows(_VARIABLES)}
    return MysqlFacts(variables=variables, cascades=[CascadingKey(*row) for row in session.read_rows(_CASCADES)])
