"""Connections to the registry's schema; errors of Postgres become errors of the registry."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from copy import copy
from threading import Timer
from typing import Any, Final, Self
from weakref import WeakSet

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url, text

from registry.errors import (
    RegistryBusy,
    RegistryError,
    RegistryMissing,
    RegistryRefused,
    RegistryUnreachable,
    RoleNotGranted,
)
from registry.model import json_text
from registry.repository.schema import check_revision

CONNECT_SECONDS: Final = 10
"""The time that a connection may take, unless the URL has another."""

KEEPALIVE: Final = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
"""A connection whose network is cut is lost after some 20 s, unless the URL says otherwise."""

LOCK_SECONDS: Final = 30
"""The time that an edit waits for another edit."""

_WAIT_FOR_COMMITS: Final = """
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply'
"""
"""A commit that the server answers is on its disk, whatever the database, the role or the address set."""
ANSWER_SECONDS = 45.0
"""The longest time of a transaction. A frozen server keeps its connections and never answers: a job would wait in silence."""

UNREACHABLE: Final = ("08", "28", "3D", "57P")
"""The beginnings of the codes of a server that does not let this user in now: a lost connection, a server that starts or stops, a
wrong user or database."""

PASSING: Final = ("25006", "25P03", "40", "53", "57014", "58")
"""Those after which a later try may succeed: a standby or a server that fails over, a transaction that lasted too long or met
another one, a lack of memory, disk or connections, an error of the machine."""

ENCODING: Final = "UTF8"

_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Database:
    """One engine, whose connections find the registry's tables by their bare names."""

    def __init__(self, url: str, schema: str) -> None:
        """Does not connect yet.

        Args:
            url: `postgresql://...`; parts that it leaves out come from the PG* environment, as in psql.
            schema: a lower-case Postgres identifier.

        Raises:
            RegistryError: `url` is no Postgres URL, or `schema` no lower-case identifier.
        """
        if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
            raise RegistryError(
                f"registry schema {schema!r}: use lower-case letters, digits and _, at most 63, no pg_ first"
            )
        self.schema = schema
        self.url = _url(url)
        self._connections = WeakSet[Any]()
        self.engine = _engine(self.url, schema, self._connections)
        self._checked = False
        self._role = ""

    def acting_as(self, role: str) -> Self:
        """The same connections, each of whose transactions has the rights of this role of the registry, and no others."""
        other = copy(self)
        other._role = f"{self.schema}_{role}"
        return other

    @contextmanager
    def transaction(self, *, lock_seconds: int = LOCK_SECONDS, migrates: bool = False) -> Iterator[Connection]:
        """A transaction that commits at the end. `migrates`: it checks the revision of the registry itself.

        Raises:
            RoleNotGranted: the user of the connection may not act as the role.
            UnknownRevision: another release migrated the registry.
            RegistryUnreachable, RegistryMissing, RegistryBusy, RegistryRefused: the error of Postgres.
        """
        with self._translated_errors(), self.engine.begin() as connection:
            self._take_role(connection)
            connection.execute(text("SELECT set_config('lock_timeout', :wait, true)"), {"wait": f"{lock_seconds}s"})
            if not migrates:
                self._check_revision(connection)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction that sees one moment. Raises as `transaction` does."""
        with self._translated_errors(), self.engine.connect() as connection:
            seen = connection.execution_options(isolation_level="REPEATABLE READ")
            with seen.begin():
                # SQLAlchemy's own option would let later writes of this connection begin READ WRITE, whatever the server says
                seen.execute(text("SET TRANSACTION READ ONLY"))
                self._take_role(seen)
                self._check_revision(seen)
                yield seen

    def _take_role(self, connection: Connection) -> None:
        """Takes the role until the transaction ends. The pool gets the connection back without it."""
        if self._role:
            try:
                connection.execute(text("SELECT set_config('role', :role, true)"), {"role": self._role})
            except (exc.DataError, exc.ProgrammingError) as error:  # there is no such role, or the user has no grant
                raise RoleNotGranted(self._role, str(error.orig)) from error

    def _check_revision(self, connection: Connection) -> None:
        """Checks the revision once, before the first request: a newer registry may hold what this release cannot read."""
        if not self._checked:
            check_revision(connection, self.schema)
            self._checked = True

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        timer = Timer(ANSWER_SECONDS, self._cut)
        timer.daemon = True
        timer.start()
        try:
            yield
        except exc.DBAPIError as error:
            cause = error.orig if isinstance(error.orig, psycopg.Error) else psycopg.OperationalError(str(error.orig))
            raise self._translated(cause) from error
        except psycopg.Error as error:  # while a new connection is set up
            raise self._translated(error) from error
        except exc.InvalidRequestError as error:  # the server went away while the pool looked for a connection
            raise self._translated(psycopg.OperationalError(str(error))) from error
        finally:
            timer.cancel()

    def _cut(self) -> None:
        """Cuts the connections: the requests that wait for an answer fail."""
        for connection in list(self._connections):
            with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as shared:
                shared.shutdown(socket.SHUT_RDWR)

    def _translated(self, cause: psycopg.Error) -> Exception:
        message = str(cause).strip().partition("\nCONTEXT:")[0].partition("\nLINE ")[0]
        match cause:
            case (
                psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName() | psycopg.errors.UndefinedColumn()
            ):
                return RegistryMissing(
                    f"schema {self.schema} of {_place(self.url)} holds no registry, or an older one: run "
                    "`statestore apply`, or `statestore rebuild-registry` where a job has stored rows by the registry that was "
                    f"there ({message})"
                )
            case psycopg.errors.LockNotAvailable() | psycopg.errors.DeadlockDetected():
                return RegistryBusy(
                    f"another edit holds the registry in schema {self.schema} of {_place(self.url)}: end it, then "
                    "try again"
                )
            case psycopg.IntegrityError():
                return RegistryRefused(message)
            case psycopg.OperationalError() | psycopg.InterfaceError() if cause.sqlstate is None:
                return self._unreachable("no connection to the registry", message)
            case _ if (cause.sqlstate or "").startswith(UNREACHABLE):
                return self._unreachable("no connection to the registry", message)
            case _ if (cause.sqlstate or "").startswith(PASSING) or "recovery" in message:
                return self._unreachable("the registry takes no work now", message)
            case psycopg.ProgrammingError() if cause.sqlstate is None:  # libpq refuses the address: an unknown option
                return RegistryError(f"the registry's address {_place(self.url)} is wrong: {message}")
            case _:
                return RegistryError(f"Postgres at {_place(self.url)} refused a request of the registry: {message}")

    def _unreachable(self, what: str, message: str) -> RegistryUnreachable:
        return RegistryUnreachable(
            f"{what} at {_place(self.url)} (--registry): {' '.join(message.split())}; no state is lost: start that Postgres, or "
            "correct --registry"
        )


def _url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):  # ValueError: the port is not a number
        # The text may hold a password, and so may the original error: `from None` drops that error.
        raise RegistryError("the registry's address is no URL: give postgresql://user@host:port/database") from None
    if parsed.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise RegistryError(f"the registry is in Postgres, not in {parsed.drivername}: give postgresql://...")
    return parsed.set(drivername="postgresql+psycopg")


def _engine(url: URL, schema: str, connections: WeakSet[Any]) -> Engine:
    limits = {**KEEPALIVE, "connect_timeout": CONNECT_SECONDS}
    given = {name: value for name, value in limits.items() if name not in url.query} | {"client_encoding": "utf8"}
    engine = create_engine(
        url, pool_size=2, max_overflow=3, pool_pre_ping=True, connect_args=given, json_serializer=json_text
    )

    # This listener runs first, so that SQLAlchemy itself takes the schema for the connection's default. The `options` of the
    # start-up packet could set it too, but poolers refuse them.
    @event.listens_for(engine, "connect", insert=True)
    def lead_to_schema(connection: Any, _record: Any) -> None:
        connections.add(connection)
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in (ENCODING, None):  # a pooler may not say
            connection.close()
            raise RegistryError(
                f"the registry's database {_place(url)} (--registry) has the encoding {encoding}, and cannot hold every "
                f"text: give a database in {ENCODING} (CREATE DATABASE ... ENCODING '{ENCODING}' TEMPLATE template0)"
            )
        connection.autocommit = True
        connection.execute(f'SET search_path TO "{schema}"')
        connection.execute(_WAIT_FOR_COMMITS)
        connection.autocommit = False

    return engine


def addresses_of(url: URL) -> list[tuple[str, int]]:
    """Each host with its port, as libpq finds them in the URL and in the environment."""
    hosts = url.query.get("host") or url.host or os.environ.get("PGHOST") or "localhost"
    ports = url.query.get("port") or url.port or os.environ.get("PGPORT") or 5432
    names = [name for one in ([hosts] if isinstance(hosts, str) else hosts) for name in one.split(",")]
    found: list[tuple[str, int]] = []
    for n, name in enumerate(names):
        host, _, own = name.partition(":") if name.count(":") == 1 else (name, "", "")
        listed = str(ports if isinstance(ports, str | int) else ",".join(ports)).split(",")
        found.append((host, int(own or listed[min(n, len(listed) - 1)] or 5432)))
    return found


def registry_place(url: str) -> str:
    """Host, port and database in the address of a registry, as errors name them. Raises RegistryError for no address."""
    return _place(_url(url))


def _place(url: URL) -> str:
    """Host, port and database, without user and password. Missing parts have the values that libpq takes."""
    host = url.host or url.query.get("host") or os.environ.get("PGHOST") or "localhost"
    port = url.port or url.query.get("port") or os.environ.get("PGPORT") or 5432
    database = url.database or os.environ.get("PGDATABASE") or url.username or "the user's database"
    return f"{host}:{port}/{database}"
