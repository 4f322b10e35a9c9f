"""The tables of a landing in Postgres.

TABLE                       a row for each document; indexes of chosen members, as generated columns
statestore_landing          a row for each TABLE: the topic that it holds
statestore_landing_offset   the offset of the next message in each partition
statestore_landing_deleted  the sequences of tombstones, by a hash of the key, for KEEP_DAYS
statestore_landing_refused  documents that Postgres refuses
"""

from collections.abc import Mapping
from typing import Final

from psycopg import sql

KEEP_DAYS: Final = 7
"""So long a tombstone refuses older messages of its key, which come from a partition that another process reads late."""

OWN_TABLES: Final = """
create table if not exists statestore_landing (
    table_name text primary key, product text not null, topic text not null, topic_id text not null,
    made_at timestamptz not null default now());
create table if not exists statestore_landing_offset (
    table_name text not null references statestore_landing on delete cascade, partition int not null,
    next_offset bigint not null, landed_at timestamptz not null default now(), primary key (table_name, partition));
create table if not exists statestore_landing_deleted (
    table_name text not null references statestore_landing on delete cascade, key_hash bytea not null,
    sequence bigint not null, deleted_at timestamptz not null default now(), primary key (table_name, key_hash));
create table if not exists statestore_landing_refused (
    table_name text not null references statestore_landing on delete cascade, key text not null,
    sequence bigint not null, reason text not null, document text not null,
    refused_at timestamptz not null default now(), primary key (table_name, key));
"""

OWN_TABLE: Final = "statestore_landing"
EXISTS: Final = "select to_regclass(quote_ident(%s)) is not null"
COLUMNS: Final = """
    select attname from pg_attribute where attrelid = to_regclass(quote_ident(%s)) and attnum > 0 and not attisdropped
"""
FIND: Final = "select product, topic, topic_id from statestore_landing where table_name = %s"
BIND: Final = "insert into statestore_landing (table_name, product, topic, topic_id) values (%s, %s, %s, %s)"
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
    insert into statestore_landing_refused as known (table_name, key, sequence, reason, document)
    values (%s, %s, %s, %s, %s)
    on conflict (table_name, key) do update
    set sequence = excluded.sequence, reason = excluded.reason, document = excluded.document, refused_at = now()
    where known.sequence < excluded.sequence
"""
END_REFUSED: Final = """
    delete from statestore_landing_refused as known
    using unnest(%s::text[], %s::bigint[]) as landed (key, sequence)
    where known.table_name = %s and known.key = landed.key and known.sequence <= landed.sequence
"""
REFUSED: Final = "select key, sequence, reason from statestore_landing_refused where table_name = %s order by key"
COUNT_REFUSED: Final = "select count(*) from statestore_landing_refused where table_name = %s"

_TABLE: Final = sql.SQL("""
    create table {table} (
        key jsonb primary key, document jsonb not null, sequence bigint not null, product_version int not null,
        published_at timestamptz not null)
""")
_COLUMN: Final = sql.SQL("alter table {table} add column {column} {kind} generated always as ({member}) stored")
_INDEX: Final = sql.SQL("create index if not exists {index} on {table} ({column})")
_UPSERT: Final = sql.SQL("""
    insert into {table} as known (key, document, sequence, product_version, published_at)
    select key::jsonb, document::jsonb, sequence, version, to_timestamp(published_at / 1000.0)
    from unnest(%s::text[], %s::text[], %s::bigint[], %s::int[], %s::bigint[])
        as landed (key, document, sequence, version, published_at)
    on conflict (key) do update
    set document = excluded.document, sequence = excluded.sequence, product_version = excluded.product_version,
        published_at = excluded.published_at
    where known.sequence < excluded.sequence
""")
_DELETE: Final = sql.SQL("""
    delete from {table} as known using unnest(%s::text[], %s::bigint[]) as gone (key, sequence)
    where known.key = gone.key::jsonb and known.sequence < gone.sequence
""")
_DOCUMENTS: Final = sql.SQL("select key::text, document::text, sequence from {table}")
_KINDS: Final = {"integer": "bigint", "number": "numeric", "boolean": "boolean"}
"""The type of a generated column, by the type in the product's JSON Schema. All other members are text."""


class DocumentTable:
    """The statements of one table of documents. `table`: its name."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.create, self.upsert, self.delete, self.documents = (
            statement.format(table=sql.Identifier(table)) for statement in (_TABLE, _UPSERT, _DELETE, _DOCUMENTS)
        )

    def index(self, member: str, kind: str) -> list[sql.Composed]:
        """The statements that give a member of the document a column and an index. `kind`: its type in JSON Schema."""
        text = sql.SQL("document ->> {}").format(sql.Literal(member))
        value = sql.SQL("({})::{}").format(text, sql.SQL(_KINDS[kind])) if kind in _KINDS else text
        names: Mapping[str, sql.Composable] = {"table": sql.Identifier(self._table), "column": sql.Identifier(member)}
        column = _COLUMN.format(**names, kind=sql.SQL(_KINDS.get(kind, "text")), member=value)
        return [column, _INDEX.format(**names, index=sql.Identifier(f"{self._table}_{member}"))]
