"""Makes, checks, alters and describes a table: a schema of its own, `state_<table>`, with the tables `items` and `fences`.

    items     pk, sk, gsi_1 .. gsi_20, gsi_sk, gsi_sk_17 .. gsi_sk_20, ttl, and the item as JSON: first what indexes show, then
              the rest, which Postgres stores out of line where it is wide. A slot is there when its index is.
    fences    the generation of the newest run

The fence is the right of the newest run to write. Both tables have the same form: logged, or unlogged, which is faster, and empty
after a crash of the server. So a crash that takes the items takes the fence too, and no run writes into the emptied table.

An update that leaves slots and `ttl` as they are changes no index (a HOT update), if the page of the row has room. So pages are
filled to 80 %, and autovacuum comes after 2 % of changed rows, not after 20 %.

And the SQL of reads and writes. Each statement takes one array a column, so its text does not depend on the number of rows. Every
comparison of a key names the collation "C", as the columns do: the order of bytes. Each text is made once per table. Items and
keys are text in the table. A reader gets an item that equals the written one.

    shown   JSON of the attributes that indexes show of an item, for an item in an index
    item    JSON of its other attributes. A text, a boolean, a null and a number of 64 bits are themselves; any other value has
            DynamoDB's JSON, `{"N": "1.5"}`. So no value has two readings, and numbers stay exact.
    key     itself, with U+0000 as U+0001 U+0001 and U+0001 as U+0001 U+0002: Postgres takes no U+0000, and the order of keys
            stays the same.
"""

import re
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

import orjson
import psycopg
from psycopg.sql import SQL, Composed, Identifier

from statestore.items import check_format, key_of_item
from statestore.keys import index_row
from statestore.store import FencedWrite, FencingToken, Item, NoTable, Query, ReportIndex, TableDescription, Terminal
from statestore.table import MAX_SLOTS, ROW, SHOWN, TTL, TableState, TableUsage, range_name, slot_names, too_few
from statestore.values import decode, encode

ITEMS: Final = "items"
FENCES: Final = "fences"
SLOTS: Final = [name.lower() for name in slot_names(MAX_SLOTS)]
"""The columns of all slots. A table has all of them from the start; a slot is there when its index is."""
RANGES: Final = tuple(dict.fromkeys(map(range_name, slot_names(MAX_SLOTS))))
"""The attributes that are range keys of indexes."""
_RANGES: Final = [name.lower() for name in RANGES]
_KEY: Final = {"pk": "text", "sk": "text"}
_OTHERS: Final = {**dict.fromkeys([*SLOTS, *_RANGES], "text"), "ttl": "bigint", "shown": "text", "item": "text"}
_SAME_KEY: Final = SQL('t.pk = r.pk COLLATE "C" AND t.sk = r.sk COLLATE "C"')


def schema_name(table: str) -> str:
    """The schema of a table's rows and fences."""
    return f"state_{table}"


class Statements:
    """The statements over one table."""

    def __init__(self, table: str) -> None:
        self._items = Identifier(schema_name(table), ITEMS)
        fences = Identifier(schema_name(table), FENCES)
        keys, rows = _rows(_KEY), _rows(_KEY | _OTHERS)
        get = SQL("SELECT t.item, t.shown FROM {} JOIN {} AS t ON {}").format(keys, self._items, _SAME_KEY)
        changes = SQL(", ").join(SQL("{0} = r.{0}").format(Identifier(name)) for name in _OTHERS)
        self.get = get.as_bytes()
        self.lock = SQL("{} ORDER BY t.pk, t.sk FOR UPDATE OF t").format(get).as_bytes()
        self.insert = (
            SQL("INSERT INTO {} ({}) SELECT * FROM {}").format(self._items, _names(_KEY | _OTHERS), rows).as_bytes()
        )
        self.update = (
            SQL("UPDATE {} AS t SET {} FROM {} WHERE {}").format(self._items, changes, rows, _SAME_KEY).as_bytes()
        )
        self.delete = SQL("DELETE FROM {} AS t USING {} WHERE {}").format(self._items, keys, _SAME_KEY).as_bytes()
        self.expire = (
            SQL(
                "DELETE FROM {0} WHERE ctid = ANY (ARRAY("
                "SELECT ctid FROM {0} WHERE ttl <= %s ORDER BY ttl LIMIT %s FOR UPDATE SKIP LOCKED))"
            )
            .format(self._items)
            .as_bytes()
        )
        self.hold = SQL("SELECT 1 FROM {} WHERE name = %s AND generation = %s FOR SHARE").format(fences).as_bytes()
        self.take = (
            SQL(
                "INSERT INTO {} AS held (name, generation) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE "
                "SET generation = excluded.generation WHERE held.generation <= excluded.generation RETURNING 1"
            )
            .format(fences)
            .as_bytes()
        )
        self.fences = SQL("SELECT 1 FROM {} LIMIT 1").format(fences).as_bytes()
        self.drop_others = SQL("DELETE FROM {} WHERE name <> %s").format(fences).as_bytes()
        self.scan = (
            SQL('SELECT item, shown FROM {} WHERE (pk, sk) > (%s COLLATE "C", %s COLLATE "C") ORDER BY pk, sk LIMIT %s')
            .format(self._items)
            .as_bytes()
        )
        self.read = cache(self._read)

    def _read(self, slot: str | None) -> bytes:
        """The reads of one index, or of partitions of the table: a row for each item, with the number of its read, in order. An
        index shows only a part of an item, so the server leaves a wide rest alone."""
        value, name, texts = "pk", "sk", ["item", "shown"]
        if slot is not None:
            value, name, texts = slot.lower(), range_name(slot).lower(), ["shown"]
            texts += [name] if name != ROW.lower() else []
        statement = SQL(
            "SELECT q.n, {texts} FROM unnest(%b::text[], %b::text[], %b::text[], %b::bigint[]) WITH ORDINALITY "
            "AS q (value, first, last, most, n) CROSS JOIN LATERAL (SELECT {columns} FROM {items} "
            'WHERE {value} = q.value COLLATE "C" AND {name} >= q.first COLLATE "C" '
            'AND {name} <= coalesce(q.last, repeat(chr(1114111), 257)) COLLATE "C" '
            "ORDER BY {name} LIMIT q.most) AS t ORDER BY q.n, t.{name}"
        )
        columns = SQL(", ").join(map(Identifier, dict.fromkeys([name, *texts])))
        texts_ = SQL(", ").join(map(Identifier, texts))
        return statement.format(
            items=self._items, value=Identifier(value), name=Identifier(name), columns=columns, texts=texts_
        ).as_bytes()


def _names(columns: dict[str, str]) -> Composed:
    return SQL(", ").join(map(Identifier, columns))


def _rows(columns: dict[str, str]) -> Composed:
    """The rows of a statement, from one array a column. Postgres fills a shorter array up with nulls."""
    arrays = SQL(", ").join(SQL("%b::{}[]").format(SQL(kind)) for kind in columns.values())
    return SQL("unnest({}) AS r ({})").format(arrays, _names(columns))


NEXT: Final = "\x01"
"""Behind a stored key: the first text after this key."""

_THEMSELVES: Final = frozenset((str, bool, type(None)))
INT64: Final = 1 << 63
_SHOWN: Final = ("PK", "SK", *SHOWN)


def shown_text(item: Item) -> bytes | None:
    """The JSON of what indexes show of an item, in UTF-8; None for an item in no index."""
    return _text({name: item[name] for name in _SHOWN if name in item}) if ROW in item else None


def item_text(item: Item) -> bytes:
    """The JSON of the rest of an item, in UTF-8."""
    return _text({name: value for name, value in item.items() if name not in _SHOWN} if ROW in item else item)


def _text(item: Item) -> bytes:
    if not _THEMSELVES.issuperset(map(type, item.values())):
        item = {name: value if _is_itself(value) else encode(value) for name, value in item.items()}
    return orjson.dumps(item, default=_base64)


def read_item(text: str, shown: str | None) -> Item:
    """The item of its texts. Raises NewerFormat for an item of a newer release."""
    return _item(orjson.loads(text) if shown is None else orjson.loads(shown) | orjson.loads(text))


def read_shown(text: str, query: Query, name: str | None = None) -> Item:
    """What an index shows of an item, for a query that found it. `name`: the stored one in an index with a range key of its own.
    Raises NewerFormat for an item of a newer release."""
    item = _item(orjson.loads(text))
    named = index_row(key_of_item(item)) if name is None else _key_of_stored(name)
    return {**item, query.slot: query.value, range_name(query.slot): named}


def _item(item: dict[str, Any]) -> Item:
    if dict in map(type, item.values()):
        item = {name: decode(value) if type(value) is dict else value for name, value in item.items()}
    check_format(item)
    return item


def stored_key(key: str) -> str:
    """A key, or a part of it, as its column holds it."""
    if "\x00" in key or "\x01" in key:
        return key.replace("\x01", "\x01\x02").replace("\x00", "\x01\x01")
    return key


def _key_of_stored(text: str) -> str:
    return text.replace("\x01\x01", "\x00").replace("\x01\x02", "\x01") if "\x01" in text else text


def _is_itself(value: Any) -> bool:
    return type(value) in _THEMSELVES or (type(value) is int and -INT64 <= value < INT64)


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


_Connection = psycopg.Connection[Any]
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{3,57}")
_TEXT: Final = 'text COLLATE "C"'
OPTIONS: Final = (
    "fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1, "
    "autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0"
)
EXPIRY_INDEX: Final = "CREATE INDEX ON {} (ttl) WHERE ttl IS NOT NULL"
_COLUMNS: Final = [
    *[("pk", _TEXT, True), ("sk", _TEXT, True)],
    *[(slot, _TEXT, False) for slot in SLOTS],
    *[(name, _TEXT, False) for name in _RANGES],
    *[("ttl", "bigint", False), ("shown", "text", False), ("item", "text", True)],
]
"""Name, type, and whether a row must have it."""


def table_name(name: str) -> str:
    """The name itself. Raises Terminal for a name that does not fit into the name of a schema."""
    if not _NAME.fullmatch(name):
        raise Terminal(f"{name!r} cannot name a table: give 3 to 57 letters, digits, '_', '-' or '.'")
    return name


def create_table(connection: _Connection, table: str, slots: int, *, unlogged: bool) -> str | None:
    """Creates the table with its indexes unless it exists. Gives an existing table of the other form the wanted one, and says so
    in a line; else returns None. Raises Terminal, with the differences, when the existing table has other columns or fewer
    indexes, and when this user may not change its form; the errors of psycopg."""
    schema, names = schema_name(table), slot_names(slots)
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", [schema])  # another start may create it now
        if describe_table(connection, table) is None:
            _make(connection, schema, unlogged=unlogged)
            for name in names:
                connection.execute(index_of(schema, name))
    _check(connection, table, slots)
    return _give_form(connection, table, unlogged=unlogged)


def add_slots(connection: _Connection, table: str, slots: int, progress: ReportIndex) -> None:
    """Adds the indexes that the table lacks, without a lock on its rows. Makes an index again that an earlier call left invalid.
    Raises Terminal when the table does not fit, and for a user who does not own it; the errors of psycopg."""
    if describe_table(connection, table) is None:
        raise NoTable(f"there is no table {table}: create it")
    schema, valid = schema_name(table), _indexes(connection, table)
    _check(connection, table, 0)
    for name in slot_names(slots):
        if not valid.get(_index_name(name)):
            progress(f"index {name}: CREATING")
            drop = SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(Identifier(schema, _index_name(name)))
            try:
                connection.execute(drop, prepare=False)
                connection.execute(index_of(schema, name, " CONCURRENTLY"), prepare=False)
            except psycopg.errors.InsufficientPrivilege:
                raise Terminal(
                    f"table {table} lacks the index {name}, and this user does not own the table: give `statestore add-slots` "
                    "with its owner in --store-url"
                ) from None
            progress(f"index {name}: ACTIVE")


def describe_table(connection: _Connection, table: str) -> TableDescription | None:
    """The table as it is; None when there is none. Raises the errors of psycopg."""
    if not _columns(connection, table):
        return None
    valid = _indexes(connection, table)
    slots = next((n for n, name in enumerate(slot_names(MAX_SLOTS)) if not valid.get(_index_name(name))), MAX_SLOTS)
    return TableDescription(name=table, slots=slots, keys=("PK", "SK"), expires=True, items=_counted(connection, table))


def table_state(connection: _Connection, table: str) -> TableState | None:
    """The state of the table; None when there is none. Raises the errors of psycopg."""
    description = describe_table(connection, table)
    if description is None:
        return None
    indexes = {name: "ACTIVE" if valid else "INVALID" for name, valid in _indexes(connection, table).items()}
    return TableState(
        status="ACTIVE",
        slots=description.slots,
        misfits=tuple(misfits(connection, table, 0)),
        indexes=indexes,
        expires_by=TTL,
        on_demand=True,
        protected=False,
        recoverable=None,
        logged=not is_unlogged(connection, table),
        release=connection.info.server_version // 10_000,
    )


_USAGE: Final = """
    SELECT s.n_live_tup, s.n_tup_ins, s.n_tup_upd, s.n_tup_del, coalesce(s.idx_tup_fetch, 0) + coalesce(s.seq_tup_read, 0),
           pg_table_size(s.relid), pg_indexes_size(s.relid),
           (coalesce(io.heap_blks_read, 0) + coalesce(io.idx_blks_read, 0) + coalesce(io.toast_blks_read, 0)
            + coalesce(io.tidx_blks_read, 0)) * current_setting('block_size')::bigint,
           extract(epoch FROM (SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()))::float8
    FROM pg_stat_user_tables s JOIN pg_statio_user_tables io USING (relid)
    WHERE s.schemaname = %s AND s.relname = %s
"""
_STATEMENTS: Final = """
    SELECT sum(calls)::bigint, sum(total_exec_time)::float8 / 1000 FROM pg_stat_statements WHERE strpos(query, %s) > 0
"""


def table_usage(connection: _Connection, table: str) -> TableUsage | None:
    """What the server counts of the rows' table; None when there is none. The server counts no CPU of a table. The extension
    `pg_stat_statements` counts the time of statements, where the database has it. Raises the errors of psycopg.

    Read on 2026-11-27: https://www.postgresql.org/docs/current/monitoring-stats.html and .../pgstatstatements.html. Captured: the
    columns, from the embedded server.
    """
    schema = schema_name(table)
    row = connection.execute(_USAGE, (schema, ITEMS)).fetchone()
    if row is None:
        return None
    calls, seconds = None, None
    try:
        with connection.transaction():
            found = connection.execute(_STATEMENTS, (schema,)).fetchone()
        calls, seconds = found or (None, None)
    except psycopg.Error:  # the database has no such extension, or this user may not read it
        pass
    names = ("rows", "inserted", "updated", "deleted", "fetched", "bytes", "index_bytes", "read_bytes", "since")
    return TableUsage(**dict(zip(names, row, strict=True)), calls=calls, seconds=seconds)


def misfits(connection: _Connection, table: str, slots: int) -> list[str]:
    """The differences of an existing table from one with these slots, each with what to do. Raises the errors of psycopg."""
    found = _columns(connection, table)
    wrong = [
        f"its column {name} is {found.get(name, 'missing')}, not {kind}: give another table name"
        for name, kind, _ in _COLUMNS
        if found.get(name) != kind
    ]
    wrong += [f"it has a column {name}: give another table name" for name in sorted(found.keys() - _known(_COLUMNS))]
    if not _indexes(connection, table).get(f"{ITEMS}_pkey"):
        wrong.append("it lacks its primary key (pk, sk): give another table name")
    if connection.execute(
        "SELECT 1 FROM pg_partitioned_table WHERE partrelid = to_regclass(%s)", [_regclass(table)]
    ).fetchone():
        wrong.append("it is partitioned, which the store does not support: give another table name")
    description = describe_table(connection, table)
    if description is not None and description.slots < slots:
        wrong.append(too_few(description.slots, slots))
    return wrong


def _make(connection: _Connection, schema: str, *, unlogged: bool) -> None:
    """Makes the tables, and their schema where there is none. Raises Terminal, with the statement that helps, for a user who may
    not; the errors of psycopg."""
    kind = SQL("UNLOGGED TABLE" if unlogged else "TABLE")
    items, fences = Identifier(schema, ITEMS), Identifier(schema, FENCES)
    columns = ", ".join(f"{name} {column}{' NOT NULL' if must else ''}" for name, column, must in _COLUMNS)
    exists = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", [schema]).fetchone()
    try:
        if not exists:
            # this needs a right on the whole database
            connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        connection.execute(
            SQL("CREATE {} {} ({}, PRIMARY KEY (pk, sk)) WITH ({})").format(kind, items, SQL(columns), SQL(OPTIONS))
        )
    except psycopg.errors.InsufficientPrivilege as error:
        cure = SQL("ALTER SCHEMA {} OWNER TO {}" if exists else "CREATE SCHEMA {} AUTHORIZATION {}")
        statement = cure.format(Identifier(schema), Identifier(connection.info.user)).as_string()
        raise Terminal(
            f"schema {schema}: {error.diag.message_primary}: let an administrator give the statement {statement}"
        ) from error
    connection.execute(SQL(EXPIRY_INDEX).format(items))
    connection.execute(
        SQL("CREATE {} {} (name text PRIMARY KEY, generation bigint NOT NULL)").format(kind, fences),
    )


def _give_form(connection: _Connection, table: str, *, unlogged: bool) -> str | None:
    """Makes both tables unlogged, or logged, and locks them in the order of a writer: fences, items. The server writes each row
    again, and no other session reads or writes the table meanwhile."""
    schema, form, other = schema_name(table), *(("unlogged", "logged") if unlogged else ("logged", "unlogged"))
    found = [name for name, is_unlogged in _unlogged(connection, schema).items() if is_unlogged != unlogged]
    changes = [SQL("ALTER TABLE {} SET {}").format(Identifier(schema, name), SQL(form.upper())) for name in found]
    if not changes:
        return None
    try:
        with connection.transaction():
            for change in changes:
                connection.execute(change)
    except psycopg.errors.InsufficientPrivilege:
        statements = "; ".join(change.as_string() for change in changes)
        raise Terminal(
            f"table {table} is {other}, the setting store_unlogged is {str(unlogged).lower()}, and this user does not own the "
            f"table: start once with its owner in --store-url, let the owner give `{statements}`, or correct the setting"
        ) from None
    meaning = "the server empties it when it crashes" if unlogged else "its rows outlast a crash of the server"
    return f"the table {table} is {form} now, as the setting store_unlogged says: {meaning}"


def is_unlogged(connection: _Connection, table: str) -> bool:
    """Whether the rows of an existing table are in an unlogged one."""
    return _unlogged(connection, schema_name(table))[ITEMS]


def _unlogged(connection: _Connection, schema: str) -> dict[str, bool]:
    """Whether each of the two tables is unlogged."""
    rows = connection.execute(
        "SELECT c.relname, c.relpersistence = 'u' FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = %s AND c.relname IN (%s, %s) ORDER BY 1",
        [schema, ITEMS, FENCES],
    )
    return dict(rows.fetchall())


def _check(connection: _Connection, table: str, slots: int) -> None:
    if wrong := misfits(connection, table, slots):
        raise Terminal(f"table {table} exists, but does not fit: " + "; ".join(wrong))


def _columns(connection: _Connection, table: str) -> dict[str, str]:
    """The type of each column of the items; empty without a table."""
    rows = connection.execute(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), c.collname FROM pg_attribute a "
        "LEFT JOIN pg_collation c ON c.oid = a.attcollation AND c.collname <> 'default' "
        "WHERE a.attrelid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped",
        [_regclass(table)],
    )
    return {name: f'{kind} COLLATE "{collation}"' if collation else kind for name, kind, collation in rows}


def _counted(connection: _Connection, table: str) -> int | None:
    """The items at the last ANALYZE or VACUUM; None before the first."""
    rows = connection.execute("SELECT reltuples FROM pg_class WHERE oid = to_regclass(%s)", [_regclass(table)])
    return next((int(count) for (count,) in rows if count >= 0), None)


def _indexes(connection: _Connection, table: str) -> dict[str, bool]:
    """The indexes of the items, and whether each is valid."""
    rows = connection.execute(
        "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
        "WHERE i.indrelid = to_regclass(%s)",
        [_regclass(table)],
    )
    return dict(rows.fetchall())


def _regclass(table: str) -> str:
    return Identifier(schema_name(table), ITEMS).as_string()


def index_of(schema: str, name: str, how: str = "", items: str = ITEMS) -> Any:
    """The statement that makes the index of a slot."""
    column = Identifier(name.lower())
    return SQL("CREATE INDEX{} {} ON {} ({}, {}) WHERE {} IS NOT NULL").format(
        SQL(how),
        Identifier(_index_name(name, items)),
        Identifier(schema, items),
        column,
        Identifier(range_name(name).lower()),
        column,
    )


def _index_name(slot: str, items: str = ITEMS) -> str:
    return f"{items}_{slot.lower()}"


def _known(columns: Iterable[tuple[str, str, bool]]) -> set[str]:
    return {name for name, _, _ in columns}


def take_fence(connection: psycopg.Connection[Any], statements: Statements, table: str, fence: FencingToken) -> None:
    """Gives the table to this run: waits for the transactions of all others. Raises FencedWrite where a newer run has it."""
    with connection.transaction():
        connection.execute(statements.drop_others, [fence.name])
        if connection.execute(statements.take, fence).fetchone() is None:
            raise _fenced(table, fence)


def refusal(connection: psycopg.Connection[Any], statements: Statements, table: str, fence: FencingToken) -> Terminal:
    """Why this run, which holds the table no more, may not write."""
    if connection.execute(statements.fences).fetchone() is not None:
        return _fenced(table, fence)
    return Terminal(
        f"table {table}: it has lost its rows, and the fence of this run: its server crashed, and the table is unlogged. This "
        "run writes nothing more. Build the state again from the topics: `statestore run --adopt` with a new --checkpoint"
    )


def _fenced(table: str, fence: FencingToken) -> FencedWrite:
    return FencedWrite(
        f"table {table}: a newer run than {fence.generation} took over: this run must stop and writes nothing"
    )


_ASK = """
    SELECT current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on',
      (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
      (SELECT count(*) FROM pg_stat_replication), (SELECT count(*) FROM pg_stat_replication WHERE sync_state IS NULL),
      (SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')),
      (SELECT max(CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), flush_lsn) END)::bigint
       FROM pg_stat_replication)
"""


class Durability(NamedTuple):
    """What a crash of the server, or a failover to its standby, leaves of the commits. The sessions of store and registry wait
    for each commit themselves, whatever `synchronous_commit` the database has. They cannot make up for the other settings, and
    not for a standby that takes commits later.

    The settings of a server, and its standbys. `waits`: the database's own `synchronous_commit`; `hidden`: the standbys of
    which this user may not see more; `synchronous`: those for which each commit waits; `behind`: the bytes that the farthest
    standby lacks, None where it is unknown."""

    fsync: bool
    full_page_writes: bool
    waits: str
    standbys: int = 0
    hidden: int = 0
    synchronous: int = 0
    behind: int | None = None


def read_durability(connection: psycopg.Connection[Any]) -> Durability:
    """Asks the server. Raises the errors of psycopg."""
    (found,) = connection.execute(_ASK).fetchall()
    return Durability(*found)
