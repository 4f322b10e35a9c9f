"""The one connection of a store: opened at the first request, and again after a failure.

Promises: a failure that may pass is tried again, after a random pause that grows. Threads take turns. A writer that stops in the
middle of a transaction blocks nobody for longer than a minute: the server ends that transaction.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from threading import Lock
from typing import Any, Final, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from statestore.errors import Terminal, Transient
from statestore.postgres.parameters import teach
from statestore.postgres.server_failures import failure
from statestore.store import RETRIES

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
