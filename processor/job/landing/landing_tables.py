"""The tables of a landing in Postgres, all in the schema of TABLE.

TABLE                       a row for each document; indexes of chosen members, as generated columns
statestore_landing          a row for each TABLE: the id of the landing, and the topic that it holds
statestore_landing_offset   the offset of the next message in each partition
statestore_landing_deleted  the sequences of tombstones, by a hash of the key, for KEEP_DAYS
statestore_landing_refused  documents that Postgres refuses, by a hash of the key: no index limits what it takes

`incarnation` counts how often the topic was created again. A message of a later incarnation replaces each document of an
earlier one, since the sequences of a new topic may begin again.
"""

from collections.abc import Mapping
from typing import Final

from psycopg import sql

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
