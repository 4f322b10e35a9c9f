"""The one connection of a store: opened at the first request, and again after a failure.

Promises: a failure that may pass is tried again, after a random pause that grows. Threads take turns. A writer that stops in the
middle of a transaction blocks nobody for longer than a minute: the server ends that transaction. No message shows a password,
or the values of a row.

The parameters of a statement are one array a column, in the binary format of Postgres, for all rows together. psycopg's own
arrays take four times the CPU, because they look for the type of each element.
"""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from struct import Struct
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Format

from statestore.store import RETRIES, NoTable, StoreError, Terminal, Transient

_TEXT, _TEXTS, _NUMBER, _NUMBERS = 25, 1009, 20, 1016
"""The types text, text[], bigint and bigint[], by Postgres' own numbers."""
_HEAD: Final = Struct("!iIIii")
_LENGTH: Final = Struct("!i")
_INT64: Final = Struct("!iq")
_NULL: Final = _LENGTH.pack(-1)


class TextColumn(NamedTuple):
    """An array of texts, as Postgres reads it."""

    data: bytes


class NumberColumn(NamedTuple):
    """An array of numbers of 64 bits, as Postgres reads it."""

    data: bytes


def text_column(values: Sequence[str | None]) -> TextColumn:
    """A column of texts."""
    return byte_column([None if value is None else value.encode() for value in values])


def byte_column(values: Sequence[bytes | None]) -> TextColumn:
    """A column of texts in UTF-8."""
    pack = _LENGTH.pack
    parts = [_NULL if value is None else pack(len(value)) + value for value in values]
    return TextColumn(_array(_TEXT, parts))


def number_column(values: Sequence[int | None]) -> NumberColumn:
    """A column of numbers."""
    return NumberColumn(_array(_NUMBER, [_NULL if value is None else _INT64.pack(8, value) for value in values]))


def teach(connection: Connection[Any]) -> None:
    """Lets a connection take columns as parameters."""
    connection.adapters.register_dumper(TextColumn, _TextColumnDumper)
    connection.adapters.register_dumper(NumberColumn, _NumberColumnDumper)


def _array(kind: int, parts: Iterable[bytes]) -> bytes:
    elements = list(parts)
    return _HEAD.pack(1, 1, kind, len(elements), 1) + b"".join(elements)


class _TextColumnDumper(Dumper):
    format = Format.BINARY
    oid = _TEXTS

    def dump(self, obj: TextColumn) -> bytes:
        return obj.data


class _NumberColumnDumper(_TextColumnDumper):
    oid = _NUMBERS


OLDEST: Final = 14
"""The oldest PostgreSQL that works."""
ATTEMPTS: Final = 16
"""Of one request: they take about 20 s, and outlast a restart of the server."""
BACKOFF_S: Final = 0.02
BACKOFF_CAP_S: Final = 5.0
LIMITS: Final = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
"""Of a connection, unless the URL says otherwise: one whose network is cut is lost after some 20 s."""

_SETTINGS: Final = """
    SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
    SET enable_memoize = off; SET jit = off; SET plan_cache_mode = force_generic_plan;
    SET idle_in_transaction_session_timeout = '60s'; SET lock_timeout = '60s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply'
"""
"""Every statement has one right plan: the index, key by key. A table without statistics gets that plan too, and the server plans
each statement once. A commit that the server answers is on its disk, whatever the database, the role or the address set: a batch
ends only once."""
_T = TypeVar("_T")
_Connection = psycopg.Connection[Any]

logging.getLogger("psycopg").addHandler(
    logging.NullHandler()
)  # a lost connection is an error here, and no line on stderr


class PostgresSession:
    """A connection to the server at `url` (`postgresql://user@host:port/database`; PG* variables fill in missing parts).
    `attempts`: of one request, with the first. `requests`, `spent`: as a `Store` counts them. Raises Terminal for an address that
    is no URL of Postgres."""

    def __init__(self, url: str, *, attempts: int, random: Random) -> None:
        self.requests: Counter[str] = Counter()
        self.spent: Counter[str] = Counter()
        self._address = _address(url)
        self._attempts, self._random = attempts, random
        self._connection: _Connection | None = None
        self._lock = Lock()

    def send(self, counted: Mapping[str, int], where: str, work: Callable[[_Connection], _T]) -> _T:
        """Does the work of some requests, again after a failure that may pass. `counted`: how many of each name; `where`: the
        table and the request, for errors. Raises Transient, Terminal, and the errors of the work itself."""
        with self._lock:
            attempt = 1
            while True:
                self.requests.update(counted)
                try:
                    return work(self._connected(where))
                except psycopg.Error as error:
                    self._drop()
                    found = failure(where, error)
                    if attempt == self._attempts or not isinstance(found, Transient):
                        raise found from error
                except BaseException:
                    self._drop()  # the server ends the transaction with the connection
                    raise
                self.spent.update({RETRIES + name: n for name, n in counted.items()})
                time.sleep(self._random.uniform(0, min(BACKOFF_CAP_S, BACKOFF_S * 2**attempt)))
                attempt += 1

    def close(self) -> None:
        """Closes the connection. A later request opens another one."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self, where: str) -> _Connection:
        if self._connection is None:
            self._connection = psycopg.connect(self._address, autocommit=True, prepare_threshold=0)
            version, encoding = _server(self._connection)
            if version < OLDEST:
                raise Terminal(f"{where}: the server is PostgreSQL {version}: {OLDEST} or newer is necessary")
            if encoding != "UTF8":
                raise Terminal(f"{where}: the database has the encoding {encoding}: give a database in UTF8")
            self._connection.execute(_SETTINGS, prepare=False)
            teach(self._connection)
        return self._connection


def _server(connection: _Connection) -> tuple[int, str | None]:
    """The major version of the server, and the encoding of the database."""
    return connection.info.server_version // 10_000, connection.info.parameter_status("server_encoding")


def _address(url: str) -> str:
    """The address as libpq takes it."""
    kind, _, rest = url.partition("://")
    if kind not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise Terminal("the store's address is no URL of Postgres: give postgresql://user@host:port/database")
    plain = f"postgresql://{rest}"
    try:
        given = conninfo_to_dict(plain)
        own = {name: limit for name, limit in LIMITS.items() if name not in given}
        return make_conninfo(plain, **own, client_encoding="utf8", application_name="statestore")
    except psycopg.Error:  # its message may hold the password
        raise Terminal("the store's address is wrong: give postgresql://user@host:port/database") from None


_PASSING: Final = ("08", "40", "53", "57P", "57014", "55P03", "25006", "25P03", "23505", "58")
"""The beginnings of the codes after which another attempt may succeed: a lost connection, a deadlock, a server that starts or
stops, a standby, a lack of memory or connections, a lock that another writer holds, a row that another writer made, an
error of the machine."""
_STARTING: Final = re.compile(
    r"starting up|shutting down|recovery|too many|connection slots|not (yet |currently )?accepting|terminating connection"
)
"""In such a failure: the server starts or stops, or has too much to do."""
_REFUSED: Final = re.compile(r"FATAL:|connection option")
"""In a failure to connect, which has no code: the server refuses the user or the database, or libpq a part of the address."""
_NO_TABLE: Final = ("42P01", "3F000")
_CURES: Final = {
    **dict.fromkeys(_NO_TABLE, "create it, or set the table's name and the store's address"),
    "42501": "grant this user the schema and its tables",
}


def failure(where: str, error: psycopg.Error) -> StoreError:
    """The error that a caller of the store gets. `where`: the table, the request and its key."""
    code = error.sqlstate or ""
    message = error.diag.message_primary or " ".join(str(error).split())
    if code.startswith(_PASSING) or "recovery" in message:
        return Transient(f"{where}: {message}: try again")
    if code:
        cure = _CURES.get(code, "trying again does not help: see the cause")
        kind = NoTable if code in _NO_TABLE else Terminal
        return kind(f"{where}: {message}: {cure}")
    if isinstance(error, psycopg.OperationalError):
        if _REFUSED.search(message) and not _STARTING.search(message):
            return Terminal(f"{where}: {message}: correct the store's address or its user")
        return Transient(f"{where}: {message}: try again; is the store's address right and reachable?")
    return Terminal(f"{where}: {message}: correct the store's address")
