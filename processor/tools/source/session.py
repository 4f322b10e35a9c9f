"""The doorway to a source database, and what its catalogue says: PostgreSQL by psycopg, MySQL and MariaDB by PyMySQL (the extra
`mysql`).

The catalogue shows the tables, how the columns compare text, the log, and which values Debezium leaves out. `read_*` send
statements through the session that they get, and read no row of a table; the rest is pure.

Promises: a session changes nothing, and `read_rows` counts the bytes of the values that it gets. Errors name the flag and hide
the password.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, create_engine, exc, make_url, text

from processor.errors import SettingError, StatestoreError
from processor.tools.source.compared_table import SourceTable
from processor.values.entity import Compare, CompareWord, Entity

DRIVERS: Final = {
    "postgresql": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mysql+pymysql",
}
_SECONDS: Final = 10
_SNAPSHOT: Final = (
    "SET time_zone = '+00:00'",
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
)


@contextmanager
def connected(address: str, flag: str) -> Iterator[Connection]:
    """A connection to a database. `flag`: gave the address. Raises SettingError for a wrong address, StatestoreError for a
    database that does not answer, refuses the user or a statement."""
    url = _url(address, flag)
    shown = url.render_as_string(hide_password=True).replace("+psycopg", "").replace("+pymysql", "")
    try:
        engine = create_engine(url, connect_args={"connect_timeout": _SECONDS})
    except ImportError:
        cure = "pip install 'statestore[mysql]'"
        raise SettingError(f"{flag} {shown}: the driver PyMySQL of MySQL and MariaDB is missing: {cure}") from None
    try:
        with engine.connect() as connection:
            yield connection
    except exc.SQLAlchemyError as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise StatestoreError(f"{flag} {shown}: {cause}; correct the address, the user or its password") from None
    finally:
        engine.dispose()


def _url(address: str, flag: str) -> Any:
    try:
        url = make_url(address)
    except exc.ArgumentError:
        url = None
    if url is None or url.get_backend_name() not in DRIVERS:
        raise SettingError(f"{flag}: write postgresql://USER@HOST/DATABASE, or mysql://USER@HOST/DATABASE")
    if url.get_backend_name() in ("mysql", "mariadb") and not url.database:
        raise SettingError(f"{flag}: the address names no database: write mysql://USER@HOST/DATABASE")
    if url.password is None and isinstance(password := url.query.get("password"), str):
        url = url.difference_update_query(["password"]).set(password=password)
    return url.set(drivername=DRIVERS[url.get_backend_name()])


@dataclass(slots=True)
class SourceSession:
    """A session that only reads."""

    connection: Connection
    mysql: bool
    """MySQL or MariaDB, else PostgreSQL."""
    bytes_read: int = 0
    """Of the values so far."""

    def begin_snapshot(self) -> None:
        """Ends the snapshot before, and begins a new one: repeatable read, read only."""
        self.connection.rollback()
        if self.mysql:
            for statement in _SNAPSHOT:
                self.connection.execute(text(statement))
        else:
            self.connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"))

    def read_rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Sequence[Sequence[Any]]:
        """The rows of a statement."""
        rows = self.connection.execute(text(statement), dict(parameters or {})).all()
        self.bytes_read += sum(len(str(value).encode()) for row in rows for value in row if value is not None)
        return rows


@contextmanager
def source_session(address: str, flag: str = "--source") -> Iterator[SourceSession]:
    """A session in a snapshot. Errors as of `connected`."""
    with connected(address, flag) as connection:
        session = SourceSession(connection, mysql=connection.dialect.name in ("mysql", "mariadb"))
        session.begin_snapshot()
        yield session


LOOK_SECONDS: Final = 0.5
PATIENCE: Final = 20.0
"""The longest time of each wait, in lags."""
_POSITION: Final = """
    SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END::text
"""
_SLOTS: Final = """
    SELECT coalesce(bool_and(s.confirmed_flush_lsn >= CAST(:at AS pg_lsn)), false),
           coalesce(bool_and(greatest(r.sent_lsn, s.confirmed_flush_lsn) >= CAST(:at AS pg_lsn)), false), count(*)
    FROM pg_replication_slots s LEFT JOIN pg_stat_replication r ON r.pid = s.active_pid
    WHERE s.slot_type = 'logical' AND s.database = current_database() AND s.active
      AND CAST(:slot AS text) IN ('', s.slot_name::text)
"""
_THREADS: Final = """
    SELECT coalesce(min(state LIKE '%sent all binlog%'), 0), count(*) FROM information_schema.processlist
    WHERE command LIKE 'Binlog Dump%'
"""
Positions = Mapping[str, int]
"""`topic/partition` -> offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineMarker:
    """Waits until the pipeline, from the source's log to the table, has passed a marker: the source's position of now.

    1. the source has sent its log up to the marker to the connector: by the replication slots of PostgreSQL, by the threads
       that send the binary log of MySQL and MariaDB
    2. the connector has produced it: the slot's confirmed position says so at once; without that sign, after `lag` seconds more
    3. the job has read each topic of the entities up to the end that it had then

    Does not: prove a position that the database does not show. Then a line says what is missing, and the comparison
    continues after the patience.
    """

    session: "SourceSession"
    ends: Callable[[], Positions]
    """Where the topics of the entities end."""
    read: Callable[[], Positions | None]
    """Where the job reads next; None: no job runs."""
    warn: Callable[[str], object]
    """Gets a line about what the database does not show."""
    slot: str = ""
    """The connector's replication slot; empty: all that are active."""
    lag: float = 10.0
    """In seconds."""

    def wait(self) -> None:
        """Waits for the three steps."""
        if self.read() is None:
            self.warn("no job runs: rows that the source changed since its last run differ, too")
            return
        # 1, 2
        if not (self._mysql_sent() if self.session.mysql else self._postgres_confirmed()):
            self._until(lambda: False, self.lag)
        ends = self.ends()  # 3
        if not self._until(lambda: self._has_read(ends), PATIENCE * self.lag):
            self.warn("the job has not read its topics up to the end of now: differences may be changes on their way")

    def _postgres_confirmed(self) -> bool:
        """Whether the connector has confirmed the position: what it produced. Returns False where the slot shows only that it got
        the log, or nothing."""
        self.session.begin_snapshot()
        ((at,),) = self.session.read_rows(_POSITION)
        given = {"at": at, "slot": self.slot}

        def look() -> tuple[bool, bool, int]:
            self.session.begin_snapshot()
            ((confirmed, sent, slots),) = self.session.read_rows(_SLOTS, given)
            return bool(confirmed), bool(sent), int(slots)

        if not look()[2]:
            self.warn("no logical replication slot of this database is active: it is unknown how far the connector is")
            return False
        if not self._until(lambda: any(look()[:2]), PATIENCE * self.lag):
            self.warn("the connector has not read the log up to the position of now")
        return self._until(lambda: look()[0], self.lag)

    def _mysql_sent(self) -> bool:
        """False: MySQL shows what it sent, and never what the connector produced."""

        def look() -> tuple[bool, int]:
            ((sent, threads),) = self.session.read_rows(_THREADS)
            return bool(sent), int(threads)

        if not look()[1]:
            self.warn(
                "no thread that sends the binary log is in sight (PROCESS privilege): it is unknown how far the connector is"
            )
        elif not self._until(lambda: look()[0], PATIENCE * self.lag):
            self.warn("the connector has not read the binary log up to the position of now")
        return False

    def _has_read(self, ends: Positions) -> bool:
        read = self.read()
        return read is None or all(read.get(place, 0) >= end for place, end in ends.items())

    @staticmethod
    def _until(is_true: Callable[[], bool], seconds: float) -> bool:
        end = monotonic() + seconds
        while not is_true():
            if monotonic() >= end:
                return False
            sleep(min(LOOK_SECONDS, max(0.0, end - monotonic())))
        return True


_POSTGRES_COLUMNS: Final = """
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
_MYSQL_COLUMNS: Final = """
    SELECT c.table_schema, c.table_name, c.column_name, c.column_type, s.seq_in_index, c.table_schema = database()
    FROM information_schema.columns c
    JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
    LEFT JOIN information_schema.statistics s ON s.table_schema = c.table_schema AND s.table_name = c.table_name
      AND s.index_name = 'PRIMARY' AND s.column_name = c.column_name
    WHERE t.table_type = 'BASE TABLE'
      AND c.table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')
    ORDER BY 1, 2, c.ordinal_position
"""


def read_source_tables(session: "SourceSession") -> list[SourceTable]:
    """All tables that the user sees."""
    found: dict[tuple[str, str], dict[str, tuple[str, int | None]]] = {}
    nearby: set[str] = set()
    for schema, table, column, kind, place, near in session.read_rows(
        _MYSQL_COLUMNS if session.mysql else _POSTGRES_COLUMNS
    ):
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
    ends = [one for one in tables if f".{entity.topic}".endswith(f".{topic_name(str(one))}")]
    return ends[0] if len(ends) == 1 else _named(entity.name, tables)


def _named(name: str, tables: Sequence[SourceTable]) -> SourceTable | None:
    return next((one for one in tables if name == str(one) or (one.nearby and name == one.name)), None)


def topic_name(name: str) -> str:
    """The name as Debezium writes it in a topic."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in name)


_POSTGRES_COLLATIONS: Final = """
    SELECT n.nspname, c.relname, a.attname, coalesce(element.typname, base.typname, t.typname), co.collname,
           coalesce(to_jsonb(co) ->> 'colllocale', to_jsonb(co) ->> 'colliculocale', to_jsonb(co) ->> 'collcollate')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_type base ON base.oid = t.typbasetype
    LEFT JOIN pg_type element ON element.oid = coalesce(base.typelem, t.typelem)
      AND coalesce(base.typcategory, t.typcategory) = 'A'
    LEFT JOIN pg_collation co ON co.oid = a.attcollation AND NOT co.collisdeterministic
    WHERE c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
      AND (co.oid IS NOT NULL OR coalesce(element.typname, base.typname, t.typname) IN ('citext', 'bpchar'))
"""
_MYSQL_COLLATIONS: Final = """
    SELECT table_schema, table_name, column_name, collation_name FROM information_schema.columns
    WHERE collation_name IS NOT NULL AND table_schema NOT IN ('mysql', 'sys', 'performance_schema', 'information_schema')
"""
_ACCENTS: Final = "letters with and without accents, as é and e, and expansions, as ß and ss"
_EXPANSIONS: Final = "expansions, as ß and ss"


class ColumnEquality(NamedTuple):
    """How a column compares its text: by a collation, as citext, or as char(n)."""

    compare: Compare
    """What the collation does with case and with spaces at the end."""
    collation: str
    """Its name, or the type that decides."""
    beyond: str = ""
    """What else the collation makes equal, and no word of `compare` says."""


AS_IT_IS: Final = ColumnEquality((), "by code points")
Equalities = Mapping[tuple[str, str, str], ColumnEquality]
"""(schema, table, column) -> how the column compares. A column that is not in it compares by code points."""


def read_equalities(session: "SourceSession") -> Equalities:
    """Of all columns that the user sees."""
    if session.mysql:
        rows = session.read_rows(_MYSQL_COLLATIONS)
        return {(schema, table, column): of_mysql(collation) for schema, table, column, collation in rows}
    return {
        (schema, table, column): of_postgres(kind, collation, locale or "")
        for schema, table, column, kind, collation, locale in session.read_rows(_POSTGRES_COLLATIONS)
    }


def of_mysql(collation: str) -> ColumnEquality:
    """Of a collation of MySQL or MariaDB, whose name says it: `utf8mb4_0900_as_ci`, `utf8mb4_uca1400_nopad_ai_ci`."""
    parts = {*collation.lower().split("_")}
    ci, accents = "ci" in parts, "ai" in parts or ("ci" in parts and "as" not in parts)
    words: list[CompareWord] = ["ci"] if ci else []
    if collation != "binary" and not parts & {"nopad", "0900"}:
        words.append("trimmed")
    return ColumnEquality(tuple(words), collation, _ACCENTS if accents else _EXPANSIONS * ci)


def of_postgres(kind: str, collation: str | None, locale: str) -> ColumnEquality:
    """Of a type of PostgreSQL and of a nondeterministic collation with its ICU locale, `und-u-ks-level2`; None: any other
    collation, which compares code points."""
    words: tuple[CompareWord, ...] = ("trimmed",) if kind == "bpchar" else ("ci",) if kind == "citext" else ()
    if collation is None:
        return ColumnEquality(words, {"bpchar": "char(n)"}.get(kind, kind))
    asked = locale.lower()
    strength = re.search(r"ks-level(\d)|colstrength=(primary|secondary)", asked)
    level = {"primary": "1", "secondary": "2"}.get(strength[2], strength[1]) if strength else "3"
    keeps_case = re.search(r"kc(?!-false)|colcaselevel=yes", asked) is not None
    ci = level in ("1", "2") and not keeps_case
    beyond = [{"1": _ACCENTS, "2": _EXPANSIONS}.get(level, "other code points of one letter")]
    if re.search("ka-shifted|colalternate=shifted", asked):
        beyond.append("texts with and without punctuation")
    found: Compare = (*(("ci",) if ci and "ci" not in words else ()), *words)
    return ColumnEquality(found, collation, " and ".join(beyond))


_SERVER: Final = """
    SELECT current_setting('server_version_num')::int, current_setting('wal_level'),
           coalesce(current_setting('max_slot_wal_keep_size', true), '-1')
"""
_ALL_SLOTS: Final = """
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
_COLUMN_FACTS: Final = """
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

_RIGHTS: Final = """
    SELECT current_user, current_database(), pg_is_in_recovery(),
           (SELECT r.rolsuper OR r.rolreplication FROM pg_roles r WHERE r.rolname = current_user)
             OR EXISTS (SELECT FROM pg_roles g WHERE g.rolname = 'rds_replication' AND pg_has_role(g.oid, 'member')),
           has_database_privilege(current_database(), 'CREATE'),
           current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
           current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication),
           (SELECT array_agg(t.schemaname || '.' || t.tablename) FROM pg_publication_tables t WHERE t.pubname = :name),
           EXISTS (SELECT FROM pg_publication p WHERE p.pubname = :name),
           (SELECT coalesce(s.active_pid, 0) FROM pg_replication_slots s WHERE s.slot_name = :name)
"""
_TABLE_RIGHTS: Final = """
    SELECT n.nspname, c.relname, has_schema_privilege(n.oid, 'USAGE'), has_table_privilege(c.oid, 'SELECT'),
           pg_has_role(c.relowner, 'USAGE')
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')
"""


class PostgresRights(NamedTuple):
    """What the user of Debezium may do, and the slot and the publication of its connector, which have one name."""

    user: str
    database: str
    standby: bool
    replicates: bool
    creates: bool
    """In the database."""
    free_slots: int
    free_senders: int
    published: Sequence[str] | None
    """`schema.name` of the tables of the publication; None: it has none."""
    publication: bool
    """There is one."""
    reader: int | None
    """The process that reads the slot, 0: nobody; None: there is no slot."""
    tables: Mapping[str, tuple[bool, bool, bool]] = {}
    """`schema.name` -> whether the user may use the schema, read the table, and owns it."""


def read_postgres_rights(session: "SourceSession", name: str) -> PostgresRights:
    """The rights of the session's user. `name`: of the slot and of the publication."""
    (row,) = session.read_rows(_RIGHTS, {"name": name})
    tables = {f"{schema}.{table}": tuple(rights) for schema, table, *rights in session.read_rows(_TABLE_RIGHTS)}
    return PostgresRights(*row)._replace(tables=tables)


def read_mysql_grants(session: "SourceSession") -> str:
    """What the session's user may do, as MySQL and MariaDB write it."""
    return "; ".join(str(row[0]) for row in session.read_rows("SHOW GRANTS")).upper()


class ReplicationSlot(NamedTuple):
    """A logical slot of the database."""

    name: str
    active: bool
    wal_status: str
    kept: str
    """How much log the slot keeps, as text for people."""


class ColumnFacts(NamedTuple):
    """A column of PostgreSQL."""

    not_null: bool
    generated: bool
    """Its stored value is an expression."""
    has_default: bool
    has_nulls: bool
    """The statistics of the server saw a null."""
    left_out_by: Sequence[str]
    """The publications of its table that do not publish it."""


class TableFacts(NamedTuple):
    """A table of PostgreSQL."""

    schema: str
    name: str
    partitioned: bool
    unlogged: bool
    identity: str
    """The letter of its replica identity (pg_class.relreplident)."""
    has_key: bool
    publications: Sequence[str]
    """Those that have the table."""
    not_via_root: Sequence[str]
    """All publications of the database that publish by partition."""
    without_all: Sequence[str]
    """All publications of the database that leave out a kind of change."""
    columns: Mapping[str, ColumnFacts] = {}


class PostgresFacts(NamedTuple):
    """The server, its slots, and its tables."""

    version: int
    """Such as 180001."""
    wal_level: str
    keeps: str
    """max_slot_wal_keep_size."""
    slots: Sequence[ReplicationSlot]
    tables: Mapping[str, TableFacts]
    """By `schema.name`."""


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
        slots=[ReplicationSlot(*row) for row in session.read_rows(_ALL_SLOTS)],
        tables={f"{one.schema}.{one.name}": one for one in tables},
    )


def _columns(session: "SourceSession", version: int) -> Mapping[tuple[str, str], Mapping[str, ColumnFacts]]:
    """The columns of each table. PostgreSQL has generated columns from 12 on, column lists from 15 on, and publishes generated
    columns from 18 on, if a publication says it."""
    generated = "a.attgenerated" if version >= 120000 else "''"
    listed = "a.attname = ANY(p.attnames)" if version >= 150000 else "true"
    published = listed if version >= 180000 else f"({generated} = '' AND {listed})"
    found: dict[tuple[str, str], dict[str, ColumnFacts]] = {}
    for schema, table, column, *facts in session.read_rows(
        _COLUMN_FACTS.format(generated=generated, published=published)
    ):
        found.setdefault((schema, table), {})[column] = ColumnFacts(*facts)
    return found


def read_mysql_facts(session: "SourceSession") -> MysqlFacts:
    """The facts of a MySQL or a MariaDB."""
    variables = {row[0]: str(row[1]) for row in session.read_rows(_VARIABLES)}
    return MysqlFacts(variables=variables, cascades=[CascadingKey(*row) for row in session.read_rows(_CASCADES)])


# Captured from Debezium 3.6.3 on PostgreSQL 15. Without REPLICA IDENTITY FULL, PostgreSQL does not log a large value (TOAST)
# that did not change. Debezium sends its placeholder for some types; it sends null for other arrays and for bits, and nobody can
# tell this null from a real one.
#
#   text, character varying, xml, json, jsonb, hstore, tsvector, bytea      the placeholder; bytea only by some settings
#   text[], character varying[], json[], jsonb[], uuid[], integer[],        the placeholder
#   bigint[]
#   bytea[], date[]                                                         the placeholder by some settings
#   other arrays, bit varying                                               null
ALWAYS: Final = "always"
_SENT: Final = frozenset({"text", "character varying", "json", "jsonb", "uuid", "integer", "bigint"})
"""The types whose arrays have a placeholder."""
_BY_SETTING: Final[Mapping[str, str]] = {
    "bytea": "binary.handling.mode base64 or base64-url-safe",
    "bytea[]": "binary.handling.mode base64, base64-url-safe or hex",
    "date[]": "time.precision.mode isostring",
}
_TYPE_ARGUMENTS: Final = re.compile(r"\([^()]*\)")


def unsent_as_null(kind: str) -> str:
    """When Debezium sends null for an unchanged large value of a type, as PostgreSQL writes it: `always`, or the settings of the
    connector; empty: never."""
    name = _TYPE_ARGUMENTS.sub("", kind)
    if name in _BY_SETTING:
        return _BY_SETTING[name]
    element = name.removesuffix("[]")
    return ALWAYS if name == "bit varying" or (element != name and element not in _SENT) else ""
