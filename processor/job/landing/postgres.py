"""A table in Postgres as a target.

A transaction takes an advisory lock of its table. So a process that lost its partitions cannot write between two transactions of
the process that has them now, and a tombstone refuses every older message. A document that Postgres refuses, such as one with
U+0000 in a text, goes to a table of its own with the reason; the others of its batch land. All tables of a landing are in the
schema of its table, whatever else the search_path names: so two landings never share their notes.

TABLE                       a row for each document; indexes of chosen members, as generated columns
statestore_landing          a row for each TABLE: the id of the landing, and the topic that it holds
statestore_landing_offset   the offset of the next message in each partition
statestore_landing_deleted  the sequences of tombstones, by a hash of the key, for KEEP_DAYS
statestore_landing_refused  documents that Postgres refuses, by a hash of the key: no index limits what it takes

`incarnation` counts how often the topic was created again. A message of a later incarnation replaces each document of an
earlier one, since the sequences of a new topic may begin again.
"""

import os
import socket
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_hex
from threading import Timer
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from processor.errors import SettingError
from processor.job.landing.target import (
    LandedDocument,
    LandedMessage,
    LandedTopic,
    LandingError,
    LandingPlace,
    Moment,
    Opened,
    RefusedDocument,
    Target,
    TargetAway,
    TopicReplaced,
    is_created_again,
    located,
    write_latest,
)
from processor.language.product.document_type import document_schema
from statestore.postgres.session import LIMITS

KEEP_DAYS: Final = 7
"""So long a tombstone refuses older messages of its key, which come from a partition that another process reads late."""
NAME_BYTES: Final = 63
"""The longest name of a table or a column in Postgres."""

OWN_TABLES: Final = """
create table if not exists statestore_landing (
    table_name text primary key, product text not null, topic text not null, topic_id text not null,
    made_at timestamptz not null default now());
alter table statestore_landing
    add column if not exists id text not null default '', add column if not exists origin text not null default '',
    add column if not exists cluster text not null default '', add column if not exists incarnation int not null default 0,
    add column if not exists earlier boolean not null default false;
create table if not exists statestore_landing_offset (
    table_name text not null references statestore_landing on delete cascade, partition int not null,
    next_offset bigint not null, landed_at timestamptz not null default now(), primary key (table_name, partition));
create table if not exists statestore_landing_deleted (
    table_name text not null references statestore_landing on delete cascade, key_hash bytea not null,
    sequence bigint not null, deleted_at timestamptz not null default now(), primary key (table_name, key_hash));
create table if not exists statestore_landing_refused (
    table_name text not null references statestore_landing on delete cascade, key text not null,
    sequence bigint not null, reason text not null, document text not null,
    refused_at timestamptz not null default now());
alter table statestore_landing_refused drop constraint if exists statestore_landing_refused_pkey;
alter table statestore_landing_refused add column if not exists key_hash bytea;
update statestore_landing_refused set key_hash = sha256(convert_to(key, 'UTF8')) where key_hash is null;
alter table statestore_landing_refused add primary key (table_name, key_hash);
"""
"""Also brings the tables of an earlier release to this one."""

OWN_TABLE: Final = "statestore_landing"
NEWEST: Final = """
    select exists (select from pg_attribute
        where attrelid = to_regclass('statestore_landing') and attname = 'earlier' and not attisdropped)
"""
"""Whether the tables of landings are those of this release."""
SCHEMA: Final = """
    select coalesce((select nspname from pg_class join pg_namespace as schema on schema.oid = relnamespace
        where pg_class.oid = to_regclass(quote_ident(%s))), current_schema())
"""
STAY: Final = "select set_config('search_path', quote_ident(%s), false)"
ORIGIN: Final = """
    select concat_ws('/', system_identifier, (select oid from pg_database where datname = current_database()),
        to_regclass(quote_ident(%s))::oid) from pg_control_system()
"""
"""Differs in a copy of the table, such as a restored dump, which must not share the id of its landing."""
EXISTS: Final = "select to_regclass(quote_ident(%s)) is not null"
COLUMNS: Final = """
    select attname, format_type(atttypid, atttypmod), case when attgenerated = 's' then pg_get_expr(adbin, adrelid) else '' end
    from pg_attribute left join pg_attrdef on adrelid = attrelid and adnum = attnum
    where attrelid = to_regclass(quote_ident(%s)) and attnum > 0 and not attisdropped
"""
"""Each column with its type, and the expression of a generated one."""
FIND: Final = """
    select product, topic, topic_id, cluster, id, origin, incarnation, earlier from statestore_landing where table_name = %s
"""
BIND: Final = """
    insert into statestore_landing (table_name, product, topic, topic_id, cluster, id) values (%s, %s, %s, %s, %s, %s)
"""
NAME: Final = "update statestore_landing set id = %s, origin = %s, cluster = %s where table_name = %s"
REPLACE: Final = """
    update statestore_landing set topic_id = %s, incarnation = incarnation + 1, earlier = true where table_name = %s
"""
FORGET: Final = tuple(
    f"delete from statestore_landing_{name} where table_name = %s" for name in ("offset", "deleted", "refused")
)
FORGOTTEN: Final = "update statestore_landing set earlier = false where table_name = %s and incarnation = %s"
UNBIND: Final = "delete from statestore_landing where table_name = %s"
LOCK: Final = "select pg_advisory_xact_lock(hashtextextended('statestore landing ' || %s, 0))"
OFFSETS: Final = "select partition, next_offset from statestore_landing_offset where table_name = %s"
ADVANCE: Final = """
    insert into statestore_landing_offset as known (table_name, partition, next_offset)
    select %s, * from unnest(%s::int[], %s::bigint[])
    on conflict (table_name, partition) do update set next_offset = excluded.next_offset, landed_at = now()
    where known.next_offset < excluded.next_offset
"""
DELETED: Final = """
    select key_hash, sequence from statestore_landing_deleted where table_name = %s and key_hash = any(%s)
"""
NOTE_DELETED: Final = """
    insert into statestore_landing_deleted as known (table_name, key_hash, sequence)
    select %s, * from unnest(%s::bytea[], %s::bigint[])
    on conflict (table_name, key_hash) do update set sequence = excluded.sequence, deleted_at = now()
    where known.sequence < excluded.sequence
"""
FORGET_DELETED: Final = f"""
    delete from statestore_landing_deleted
    where table_name = %s and deleted_at < now() - interval '{KEEP_DAYS} days'
"""
NOTE_REFUSED: Final = """
    insert into statestore_landing_refused as known (table_name, key_hash, key, sequence, reason, document)
    values (%s, %s, %s, %s, %s, %s)
    on conflict (table_name, key_hash) do update
    set sequence = excluded.sequence, reason = excluded.reason, document = excluded.document, refused_at = now()
    where known.sequence < excluded.sequence
"""
END_REFUSED: Final = """
    delete from statestore_landing_refused as known
    using unnest(%s::bytea[], %s::bigint[]) as landed (key_hash, sequence)
    where known.table_name = %s and known.key_hash = landed.key_hash and known.sequence <= landed.sequence
"""
REFUSED: Final = """
    select key, sequence, reason, key_hash from statestore_landing_refused where table_name = %s order by key, key_hash
"""
COUNT_REFUSED: Final = "select count(*) from statestore_landing_refused where table_name = %s"

_TABLE: Final = sql.SQL("""
    create table {table} (
        key jsonb primary key, document jsonb not null, sequence bigint not null, product_version int not null,
        published_at timestamptz not null, incarnation int not null default 0)
""")
_WIDEN: Final = sql.SQL("alter table {table} add column if not exists incarnation int not null default 0")
_COLUMN: Final = sql.SQL("alter table {table} add column {column} {kind} generated always as ({member}) stored")
_DROP: Final = sql.SQL("alter table {table} drop column if exists {column}")
_INDEX: Final = sql.SQL("create index on {table} ({column})")
_UPSERT: Final = sql.SQL("""
    insert into {table} as known (key, document, sequence, product_version, published_at, incarnation)
    select key::jsonb, document::jsonb, sequence, version, to_timestamp(published_at / 1000.0), %s
    from unnest(%s::text[], %s::text[], %s::bigint[], %s::int[], %s::bigint[])
        as landed (key, document, sequence, version, published_at)
    on conflict (key) do update
    set document = excluded.document, sequence = excluded.sequence, product_version = excluded.product_version,
        published_at = excluded.published_at, incarnation = excluded.incarnation
    where (known.incarnation, known.sequence) < (excluded.incarnation, excluded.sequence)
""")
_DELETE: Final = sql.SQL("""
    delete from {table} as known using unnest(%s::text[], %s::bigint[]) as gone (key, sequence)
    where known.key = gone.key::jsonb and (known.incarnation, known.sequence) < (%s, gone.sequence)
""")
_DOCUMENTS: Final = sql.SQL("select key::text, document::text, sequence from {table}")
_FORGET_EARLIER: Final = sql.SQL("""
    delete from {table} where ctid = any(array(select ctid from {table} where incarnation < %s limit 50000))
""")
_VALUES: Final = {
    "integer": ("bigint", "number", "{0} between -9223372036854775808 and 9223372036854775807 and {0} = trunc({0})"),
    "number": ("numeric", "number", ""),
    "boolean": ("boolean", "boolean", ""),
}
"""The type of a generated column, the type of a JSON value that it shows, and a condition on the number, by the type in the
product's JSON Schema. All other members are text."""
OWN_COLUMNS: Final = frozenset(
    [
        *("key", "document", "sequence", "product_version", "published_at", "incarnation"),
        *("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"),
    ]
)
"""The names that no other column of the table can have."""


class DocumentTable:
    """The statements of one table of documents. `table`: its name."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.create, self.widen, self.upsert, self.delete, self.documents, self.forget_earlier = (
            statement.format(table=sql.Identifier(table))
            for statement in (_TABLE, _WIDEN, _UPSERT, _DELETE, _DOCUMENTS, _FORGET_EARLIER)
        )

    def index(self, member: str, kind: str) -> list[sql.Composed]:
        """The statements that give a member of the document a column and an index, in place of a column of an earlier type.
        `kind`: its type in JSON Schema. The column is null for a value of another type, so that it refuses no document."""
        names: Mapping[str, sql.Composable] = {"table": sql.Identifier(self._table), "column": sql.Identifier(member)}
        column = _COLUMN.format(**names, kind=sql.SQL(column_type(kind)), member=_value(member, kind))
        return [_DROP.format(**names), column, _INDEX.format(**names)]


def column_type(kind: str) -> str:
    """The type of the column of a member. `kind`: its type in JSON Schema."""
    return _VALUES[kind][0] if kind in _VALUES else "text"


def is_current(kind: str, type_: str, expression: str) -> bool:
    """Whether a column of this type, generated by this expression, is the one of a member of this kind."""
    return type_ == column_type(kind) and ("jsonb_typeof" in expression) == (kind in _VALUES)


def _value(member: str, kind: str) -> sql.Composable:
    text = sql.SQL("document ->> {}").format(sql.Literal(member))
    if kind not in _VALUES:
        return text
    type_, of, condition = _VALUES[kind]
    shown = sql.SQL("({})::{}").format(text, sql.SQL(type_))
    if condition:  # numbers first: a cast to bigint refuses others
        number = sql.SQL("({})::numeric").format(text)
        shown = sql.SQL("case when " + condition.replace("{0}", "{number}") + " then {shown} end").format(
            number=number, shown=sql.SQL("({})::bigint").format(number)
        )
    return sql.SQL("case when jsonb_typeof(document -> {}) = {} then {} end").format(
        sql.Literal(member), sql.Literal(of), shown
    )


ANSWER_SECONDS: Final = 60.0
"""The longest time of a transaction that lands a batch. A frozen server keeps its connections and never answers."""
REFUSALS: Final = (
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,  # JSON that is nested too deep
    psycopg.errors.CardinalityViolation,  # two texts of the same key: each lands alone
)
"""The errors of a statement whose cause is a value of a document."""
CURE: Final = "drop the table"
_AWAY: Final = ("08", "53", "57", "25006", "40", "58", "55P03")
"""The beginnings of the codes after which a later try may succeed."""
_T = TypeVar("_T")
Connection = psycopg.Connection[Any]


class _Bound(NamedTuple):
    """A row of `statestore_landing`."""

    topic: LandedTopic
    id: str
    origin: str
    incarnation: int
    earlier: bool


class PostgresTarget:
    """A table at `url` (`postgresql://user@host:port/database`; PG* variables fill in missing parts). `indexes`: members of the
    document that get a column and an index, with their types in JSON Schema by this `version` of the product; 0: unknown. Raises
    LandingError for an address that is no URL of Postgres, and for a name that no table can have."""

    def __init__(self, url: str, table: str, indexes: Mapping[str, str], version: int = 0) -> None:
        if not table or len(table.encode()) > NAME_BYTES or "\0" in table:
            raise LandingError(f"--into {table!r} cannot name a table: give 1 to {NAME_BYTES} bytes")
        self._address, self._table, self._indexes = _address(url), table, indexes
        self._version = version if indexes else 0
        self._statements = DocumentTable(table)
        self._connection: Connection | None = None
        self._schema = ""
        self._bound: _Bound | None = None

    @property
    def place(self) -> str:
        known = conninfo_to_dict(self._address)
        host = str(known.get("host") or os.environ.get("PGHOST", "localhost"))
        port = known.get("port") or os.environ.get("PGPORT", "5432")
        name = f"{self._schema}.{self._table}" if self._schema else self._table
        database = known.get("dbname") or os.environ.get("PGDATABASE", "")
        return located(f"table {name} at {host}:{port}/{database}", host)

    def open(self, topic: LandedTopic, *, new_id: bool = False) -> Opened:
        self._bound = self._send(lambda connection: self._open(connection, topic, new_id))
        return Opened(self._bound.id, self._bound.earlier)

    def check(self, topic: LandedTopic) -> str:
        def check(connection: Connection) -> str:
            if not (_exists(connection, OWN_TABLE) and _exists(connection, self._table)):
                raise LandingError(f"{self.place} holds no documents yet: run `statestore land` without --verify first")
            if connection.execute(NEWEST).fetchone() != (True,):
                raise LandingError(f"an earlier release landed in {self.place}: start `statestore land` once")
            bound = self._found(connection)
            if is_created_again(self.place, bound.topic, topic, CURE):
                raise LandingError(
                    f"{self.place} holds an earlier topic {topic.name}, which was created again: start `statestore land`, "
                    "which begins it"
                )
            return bound.id

        return self._send(check)

    def offsets(self, partitions: Collection[int]) -> Mapping[int, int]:
        found = self._send(lambda connection: dict(connection.execute(OFFSETS, [self._table]).fetchall()))
        return {partition: found[partition] for partition in partitions if partition in found}

    def land(self, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        return self._send(lambda connection: self._land(connection, messages, ends))

    def show(self) -> str:
        return ""  # readers see each transaction

    def forget_earlier(self) -> int:
        assert self._bound is not None
        incarnation, count = self._bound.incarnation, 0
        while more := self._send(
            lambda connection: connection.execute(self._statements.forget_earlier, [incarnation]).rowcount
        ):
            count += more
        self._send(lambda connection: connection.execute(FORGOTTEN, [self._table, incarnation]))
        return count

    def refused(self) -> int:
        rows = self._send(lambda connection: connection.execute(COUNT_REFUSED, [self._table]).fetchall())
        return int(rows[0][0])

    def moment(self) -> Moment:
        with self._errors():
            connection = self._connected()
            connection.execute("begin isolation level repeatable read read only")
            offsets = dict(connection.execute(OFFSETS, [self._table]).fetchall())
            refused = [RefusedDocument(*row) for row in connection.execute(REFUSED, [self._table])]
        return Moment(offsets, self._documents(connection), refused)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _documents(self, connection: Connection) -> Iterator[LandedDocument]:
        with self._errors(), connection.cursor("documents") as cursor:
            yield from (LandedDocument(*row) for row in cursor.execute(self._statements.documents))
            connection.execute("commit")

    def _open(self, connection: Connection, topic: LandedTopic, new_id: bool) -> _Bound:
        connection.execute(LOCK, [""])  # two processes that make the same tables would refuse each other
        # a user without the right to create tables may find them
        if connection.execute(NEWEST).fetchone() != (True,):
            connection.execute(OWN_TABLES)
        if not _exists(connection, self._table):  # a person may have dropped the table: its offsets go, too
            connection.execute(UNBIND, [self._table])
            connection.execute(BIND, [self._table, *topic, token_hex(8)])
            connection.execute(self._statements.create)
        connection.execute(LOCK, [self._table])
        bound = self._found(connection)
        if is_created_again(self.place, bound.topic, topic, CURE):
            for statement in FORGET:
                connection.execute(statement, [self._table])
            connection.execute(REPLACE, [topic.id, self._table])
        ((origin,),) = connection.execute(ORIGIN, [self._table]).fetchall()
        is_copy = bound.origin not in ("", origin)  # such as a restored dump: another landing
        id_ = token_hex(8) if new_id or is_copy or not bound.id else bound.id
        if (bound.id, bound.origin, bound.topic.cluster) != (id_, origin, topic.cluster):
            connection.execute(NAME, [id_, origin, topic.cluster, self._table])
        self._index(connection)
        connection.execute(FORGET_DELETED, [self._table])
        return self._found(connection)

    def _index(self, connection: Connection) -> None:
        """Gives the table the columns that it lacks, and those whose members have another type now."""
        columns = {name: rest for name, *rest in connection.execute(COLUMNS, [self._table])}
        if "incarnation" not in columns:
            connection.execute(self._statements.widen)
        for member, kind in self._indexes.items():
            if member in columns and not columns[member][1]:
                raise LandingError(
                    f"{self.place} has a column {member} that no landing made: drop it, or leave out --index {member}"
                )
            if member not in columns or not is_current(kind, *columns[member]):
                for statement in self._statements.index(member, kind):
                    connection.execute(statement)

    def _found(self, connection: Connection) -> _Bound:
        row = connection.execute(FIND, [self._table]).fetchone()
        if row is None:
            raise LandingError(f"{self.place} is there, and no landing made it: choose another --into")
        return _Bound(LandedTopic(*row[:4]), *row[4:])

    def _land(self, connection: Connection, messages: Sequence[LandedMessage], ends: Mapping[int, int]) -> Counter[str]:
        connection.execute(LOCK, [self._table])
        bound = self._bound = self._still_bound(connection)
        known = dict(connection.execute(OFFSETS, [self._table]).fetchall())
        new = [message for message in messages if message.offset >= known.get(message.partition, 0)]
        counts = Counter[str]()
        refused = write_latest(new, lambda latest: self._write(connection, bound.incarnation, latest, counts))
        for message, reason in refused:
            key, why, document = map(_storable, (message.key, reason, message.document or ""))
            note = [self._table, message.key_hash, key, message.sequence, why, document]
            connection.execute(NOTE_REFUSED, note)
        partitions = sorted(ends)
        connection.execute(ADVANCE, [self._table, partitions, [ends[partition] for partition in partitions]])
        counts["refused"] = len({message.key for message, _ in refused})
        counts["superseded"] = len(messages) - sum(counts.values())
        counts["later"] = sum(message.version > self._version > 0 for message in messages)
        return counts

    def _still_bound(self, connection: Connection) -> _Bound:
        """What the table is bound to now: another process may have found another topic, or made the table again."""
        bound = self._found(connection)
        if self._bound is None or (bound.topic.id, bound.id) == (self._bound.topic.id, self._bound.id):
            return bound
        raise TopicReplaced(f"another process of the landing has found another topic {bound.topic.name}")

    def _write(
        self, connection: Connection, incarnation: int, messages: Sequence[LandedMessage], counts: Counter[str]
    ) -> list[tuple[LandedMessage, str]]:
        """Writes one message of each root. Returns those that Postgres refuses, with the reason."""
        hashes = [message.key_hash for message in messages]
        gone = dict(connection.execute(DELETED, [self._table, hashes]).fetchall())
        documents = [m for m in messages if m.document is not None and m.sequence > gone.get(m.key_hash, -1)]
        tombstones = [m for m in messages if m.document is None]
        refused = self._divide(connection, documents, partial(self._upsert, incarnation), counts, "landed")
        self._divide(connection, tombstones, partial(self._delete, incarnation), counts, "deleted")
        deleted = [[m.key_hash for m in tombstones], [m.sequence for m in tombstones]]
        connection.execute(NOTE_DELETED, [self._table, *deleted])
        connection.execute(END_REFUSED, [hashes, [m.sequence for m in messages], self._table])
        return refused

    def _divide(
        self,
        connection: Connection,
        messages: Sequence[LandedMessage],
        write: Callable[[Connection, Sequence[LandedMessage]], int],
        counts: Counter[str],
        name: str,
    ) -> list[tuple[LandedMessage, str]]:
        """Writes the messages together, or each half alone where Postgres refuses a value. Returns the refused ones."""
        if not messages:
            return []
        try:
            with connection.transaction():
                counts[name] += write(connection, messages)
            return []
        except REFUSALS as error:
            if len(messages) == 1:
                return [(messages[0], " ".join(str(error.diag.message_detail or error).split()))]
        middle = len(messages) // 2
        halves = (messages[:middle], messages[middle:])
        return [refused for half in halves for refused in self._divide(connection, half, write, counts, name)]

    def _upsert(self, incarnation: int, connection: Connection, messages: Sequence[LandedMessage]) -> int:
        columns = zip(*((m.key, m.document, m.sequence, m.version, m.published_at) for m in messages), strict=True)
        return connection.execute(self._statements.upsert, [incarnation, *map(list, columns)]).rowcount

    def _delete(self, incarnation: int, connection: Connection, messages: Sequence[LandedMessage]) -> int:
        given = [[m.key for m in messages], [m.sequence for m in messages], incarnation]
        return connection.execute(self._statements.delete, given).rowcount

    def _send(self, work: Callable[[Connection], _T]) -> _T:
        """Does the work in one transaction."""
        with self._errors():
            connection = self._connected()
            timer = Timer(ANSWER_SECONDS, _cut, [connection])
            timer.daemon = True
            timer.start()
            try:
                with connection.transaction():
                    return work(connection)
            finally:
                timer.cancel()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = psycopg.connect(self._address, autocommit=True)
            self._connection.execute("set idle_in_transaction_session_timeout = '60s'")
            ((schema,),) = self._connection.execute(SCHEMA, [self._table]).fetchall()
            if schema is None:
                raise LandingError(
                    f"{self.place}: the search_path names no schema that exists: make it, or correct --to"
                )
            self._schema = schema
            self._connection.execute(STAY, [schema])
        return self._connection

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            self.close()
            code, message = error.sqlstate or "", error.diag.message_primary or " ".join(str(error).split())
            if code.startswith(_AWAY) or (not code and isinstance(error, psycopg.OperationalError)):
                cure = "start that Postgres, or correct --to; nothing is lost"
                raise TargetAway(f"{self.place} takes no documents: {message}", part="target", cure=cure) from error
            raise LandingError(f"{self.place} refuses the landing: {message}") from error


def _exists(connection: Connection, table: str) -> bool:
    return connection.execute(EXISTS, [table]).fetchone() == (True,)


def _storable(text: str) -> str:
    """A text that a column of Postgres can hold."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}").encode(errors="replace").decode()


def _cut(connection: Connection) -> None:
    """Cuts a connection whose server does not answer: its request fails."""
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def _address(url: str) -> str:
    kind, _, rest = url.partition("://")
    plain = f"postgresql://{rest}"
    try:
        if kind not in ("postgresql", "postgres", "postgresql+psycopg"):
            raise psycopg.ProgrammingError
        given = conninfo_to_dict(plain)
        own = {name: limit for name, limit in LIMITS.items() if name not in given}
        return make_conninfo(plain, **own, client_encoding="utf8", application_name="statestore land")
    except psycopg.Error:  # its message may hold the password
        raise LandingError("--to is no address of Postgres: give postgresql://user@host:port/database") from None


def open_table(place: LandingPlace) -> Target:
    """The table at a place. Raises SettingError for a member that cannot have an index."""
    members = document_schema(place.product, place.entities)["properties"]
    for member in place.indexes:
        if member not in members:
            named = ", ".join(members)
            raise SettingError(f"--index {member}: documents of {place.product.name} have the members {named}")
        if member in OWN_COLUMNS:
            raise SettingError(
                f"--index {member}: each table of a landing has a column of this name; let the product show the member "
                "under another one, or make an index of your own on document"
            )
        if len(member.encode()) > NAME_BYTES:
            raise SettingError(
                f"--index {member}: a column in Postgres has a name of at most {NAME_BYTES} bytes; let the product show the "
                "member under a shorter one, or make an index of your own on document"
            )
    types = {member: members[member].get("type", "") for member in place.indexes}
    kinds = {name: type_ if isinstance(type_, str) else type_[0] for name, type_ in types.items()}
    return PostgresTarget(place.url, place.name, kinds, place.version)
