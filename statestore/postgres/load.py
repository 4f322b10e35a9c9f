"""Loads the rows of an empty table in bulk: COPY into a table without indexes, which then takes the place of the empty one.

    1. `begin` drops what an earlier load left, and makes the table `loading` next to `items`.
    2. Each task adds its items in one transaction, under the fence of the run (`add`).
    3. `finish` makes the indexes. One transaction then copies the job's progress from `items`, drops that table, and gives its
       name to `loading`.

Promises: nobody reads a row before all rows are there. A load that breaks off changes nothing in `items`: the next one begins
again, and a job that does not load finds an empty table. Where the server committed a task whose answer was lost, `finish` drops
the second copy of its rows. Does not: keep the rights that others have on `items`; grant them again after a load.
"""

from collections.abc import Iterable, Sequence
from random import Random
from struct import Struct
from typing import Any, Final

import psycopg
from psycopg.sql import SQL, Identifier

from statestore.items import key_of_item
from statestore.postgres.session import ATTEMPTS, PostgresSession
from statestore.postgres.store import expiry
from statestore.postgres.table import (
    EXPIRY_INDEX,
    ITEMS,
    OPTIONS,
    RANGES,
    Statements,
    describe_table,
    index_of,
    is_unlogged,
    item_text,
    refusal,
    schema_name,
    shown_text,
    stored_key,
    table_name,
)
from statestore.store import FencingToken, Item, NoTable, Terminal
from statestore.table import MAX_SLOTS, slot_names

LOADING: Final = "loading"
MEMORY: Final = "256MB"
"""For each index that `finish` makes."""
_NAMES: Final = (*slot_names(MAX_SLOTS), *RANGES)
_HEAD: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"
_COUNT: Final = Struct("!h")
_LENGTH: Final = Struct("!i")
_NUMBER: Final = Struct("!iq")
_NULL: Final = _LENGTH.pack(-1)
_PORTION: Final = 5_000
"""Items that one message to the server has."""
_Connection = psycopg.Connection[Any]


class PostgresLoader:
    """Loads the table at `url`. `fence`: of the run that loads. Connects at the first request."""

    def __init__(self, *, url: str, table: str, fence: FencingToken, attempts: int = ATTEMPTS) -> None:
        self.table = table_name(table)
        self._session = PostgresSession(url, attempts=attempts, random=Random())
        self._fence, self._statements = fence, Statements(table)
        self._schema = schema_name(table)
        self._loading = Identifier(self._schema, LOADING)

    def begin(self) -> None:
        """Makes an empty place for the rows."""

        def send(connection: _Connection) -> None:
            kind = SQL("UNLOGGED TABLE" if is_unlogged(connection, self.table) else "TABLE")
            with connection.transaction():
                self._hold(connection)
                connection.execute(SQL("DROP TABLE IF EXISTS {}").format(self._loading))
                make = SQL("CREATE {} {} (LIKE {}) WITH ({})")
                items = Identifier(self._schema, ITEMS)
                connection.execute(make.format(kind, self._loading, items, SQL(OPTIONS)), prepare=False)

        self._send("beginning a load", send)

    def add(self, items: Sequence[Item]) -> None:
        """Adds items that no other call has added, all or none."""
        found = frozenset[str]().union(
            *set(map(tuple, items))
        )  # the items of an entity have few different sets of names
        names = [name for name in _NAMES if name in found]
        columns = map(Identifier, ("pk", "sk", *map(str.lower, names), "ttl", "shown", "item"))
        copy_in = SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(self._loading, SQL(", ").join(columns))

        def send(connection: _Connection) -> None:
            with connection.transaction():
                self._hold(connection)
                with connection.cursor() as cursor, cursor.copy(copy_in) as copy:
                    copy.write(_HEAD)
                    for start in range(0, len(items), _PORTION):
                        copy.write(_rows(items[start : start + _PORTION], names))
                    copy.write(_END)

        if items:
            self._send("loading rows", send)

    def finish(self) -> None:
        """Makes the added items the table's. Raises Terminal where two of them have one key."""
        self._send("making the indexes of loaded rows", self._make_indexes)
        self._send("ending a load", self._swap)

    def close(self) -> None:
        """Closes the connection."""
        self._session.close()

    def _make_indexes(self, connection: _Connection) -> None:
        """Makes those that are missing: an earlier attempt may have made some. Each waits for the tasks that still add."""
        description = describe_table(connection, self.table)
        if description is None:
            raise NoTable(f"there is no table {self.table}: create it")
        if not self._is_loading(connection):  # an earlier attempt has ended the load
            return
        connection.execute(f"SET maintenance_work_mem = '{MEMORY}'", prepare=False)
        key = SQL("CREATE UNIQUE INDEX IF NOT EXISTS {} ON {} (pk, sk)").format(
            Identifier(f"{LOADING}_pkey"), self._loading
        )
        try:
            connection.execute(key, prepare=False)
        except psycopg.errors.UniqueViolation:
            connection.execute(self._drop_copies(), prepare=False)
            try:
                connection.execute(key, prepare=False)
            except psycopg.errors.UniqueViolation:
                raise Terminal(
                    f"table {self.table}: two Kafka keys name one row, so a load cannot say which change is the last: start "
                    "`statestore run` with this checkpoint, which reads the records in their order"
                ) from None
        for name in slot_names(description.slots):
            connection.execute(index_of(self._schema, name, " IF NOT EXISTS", LOADING), prepare=False)
        with connection.transaction():
            connection.execute(SQL("DROP INDEX IF EXISTS {}").format(self._index("ttl_idx")), prepare=False)
            connection.execute(SQL(EXPIRY_INDEX).format(self._loading), prepare=False)
        connection.execute(SQL("ANALYZE {}").format(self._loading), prepare=False)

    def _drop_copies(self) -> Any:
        """The statement that drops the second copy of each row."""
        return SQL(
            "DELETE FROM {0} WHERE ctid IN (SELECT ctid FROM (SELECT ctid, row_number() OVER "
            "(PARTITION BY pk, sk, shown, item) AS number FROM {0}) AS copies WHERE number > 1)"
        ).format(self._loading)

    def _swap(self, connection: _Connection) -> None:
        if not self._is_loading(connection):
            return
        items = Identifier(self._schema, ITEMS)
        slots = slot_names(describe_table(connection, self.table).slots)  # type: ignore[union-attr]
        with connection.transaction():
            self._hold(connection)
            connection.execute(SQL("LOCK TABLE {}, {}").format(items, self._loading), prepare=False)
            for statement in (
                SQL("INSERT INTO {} SELECT * FROM {}").format(self._loading, items),
                SQL("DROP TABLE {}").format(items),
                SQL("ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY USING INDEX {}").format(
                    self._loading, Identifier(f"{ITEMS}_pkey"), Identifier(f"{LOADING}_pkey")
                ),
                *(self._rename(name.lower()) for name in ("ttl_idx", *slots)),
                SQL("ALTER TABLE {} RENAME TO {}").format(self._loading, Identifier(ITEMS)),
            ):
                connection.execute(statement, prepare=False)

    def _rename(self, name: str) -> Any:
        return SQL("ALTER INDEX {} RENAME TO {}").format(self._index(name), Identifier(f"{ITEMS}_{name}"))

    def _index(self, name: str) -> Identifier:
        return Identifier(self._schema, f"{LOADING}_{name}")

    def _is_loading(self, connection: _Connection) -> bool:
        found = connection.execute("SELECT to_regclass(%s) IS NOT NULL", [self._loading.as_string()]).fetchone()
        return bool(found and found[0])

    def _hold(self, connection: _Connection) -> None:
        """Holds the fence until the transaction ends. Raises FencedWrite where a newer run has it."""
        if connection.execute(self._statements.hold, self._fence).fetchone() is None:
            raise refusal(connection, self._statements, self.table, self._fence)

    def _send(self, doing: str, work: Any) -> None:
        self._session.send({}, f"table {self.table}: {doing}", work)


def _rows(items: Sequence[Item], names: Iterable[str]) -> bytes:
    """The rows of some items in the binary format of COPY. `names`: of the slots and range keys among the columns.

    Read on 2026-11-27: https://www.postgresql.org/docs/current/sql-copy.html. Captured: the answer of the embedded server."""
    keys = [key_of_item(item) for item in items]
    columns = [
        [_text(stored_key(pk)) for pk, _ in keys],
        [_text(stored_key(sk)) for _, sk in keys],
        *(
            [_NULL if (value := item.get(name)) is None else _text(stored_key(value)) for item in items]
            for name in names
        ),
        [_NULL if (ttl := expiry(item)) is None else _NUMBER.pack(8, ttl) for item in items],
        [_NULL if (text := shown_text(item)) is None else _bytes(text) for item in items],
        [_bytes(item_text(item)) for item in items],
    ]
    count = _COUNT.pack(len(columns))
    return b"".join(count + b"".join(row) for row in zip(*columns, strict=True))


def _text(value: str) -> bytes:
    return _bytes(value.encode())


def _bytes(value: bytes) -> bytes:
    return _LENGTH.pack(len(value)) + value
