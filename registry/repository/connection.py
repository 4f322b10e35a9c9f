"""Connections to the registry's schema, and Postgres's errors in the registry's words."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, make_url, text

from registry.errors import RegistryBusy, RegistryError, RegistryMissing, RegistryRefused, RegistryUnreachable
from registry.spelling import json_text

CONNECT_SECONDS: Final = 10
"""How long a connection may take, unless the URL says otherwise."""

LOCK_SECONDS: Final = 30
"""How long an edit waits for another edit."""

_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Database:
    """One engine, whose connections find the registry's tables by their bare names."""

    def __init__(self, url: str, schema: str) -> None:
        """Does not connect yet.

        Args:
            url: `postgresql://...`; what it leaves out comes from the PG* environment, as in psql.
            schema: a lower-case Postgres identifier.

        Raises:
            RegistryError: not such a URL or schema.
        """
        if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
            raise RegistryError(
                f"registry schema {schema!r}: use lower-case letters, digits and _, at most 63, no pg_ first"
            )
        self.schema = schema
        self.url = _url(url)
        self.engine = _engine(self.url, schema)

    @contextmanager
    def transaction(self, *, lock_seconds: int = LOCK_SECONDS) -> Iterator[Connection]:
        """A transaction, committed at the end.

        Raises:
            RegistryUnreachable, RegistryMissing, RegistryBusy, RegistryRefused: by what Postgres says.
        """
        with self._in_words(), self.engine.begin() as connection:
            connection.execute(text("SELECT set_config('lock_timeout', :wait, true)"), {"wait": f"{lock_seconds}s"})
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read-only transaction that sees one moment. Raises as `transaction` does."""
        with self._in_words(), self.engine.connect() as connection:
            seen = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
            with seen.begin():
                yield seen

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except exc.DBAPIError as error:
            raise self._translated(error) from error

    def _translated(self, error: exc.DBAPIError) -> Exception:
        what = error.orig if isinstance(error.orig, psycopg.Error) else psycopg.Error()
        said = str(what).strip().partition("\nCONTEXT:")[0].partition("\nLINE ")[0]
        match what:
            case (
                psycopg.errors.UndefinedTable() | psycopg.errors.InvalidSchemaName() | psycopg.errors.UndefinedColumn()
            ):
                return RegistryMissing(
                    f"schema {self.schema} of {_place(self.url)} holds no registry, or an older one: run "
                    f"`statestore apply` ({said})"
                )
            case psycopg.errors.LockNotAvailable() | psycopg.errors.DeadlockDetected():
                return RegistryBusy(
                    f"another edit holds the registry in schema {self.schema} of {_place(self.url)}: end it, then "
                    "try again"
                )
            case psycopg.IntegrityError():
                return RegistryRefused(said)
            case psycopg.OperationalError() if what.sqlstate is None or what.sqlstate.startswith(
                ("08", "28", "3D", "57P")
            ):
                return RegistryUnreachable(f"no connection to the registry at {_place(self.url)}: {said}")
            case _:
                return error


def _url(url: str) -> URL:
    try:
        parsed = make_url(url)
    except exc.ArgumentError:
        # The text may hold a password, also in the error that is not chained here.
        raise RegistryError("the registry's address is no URL: write postgresql://user@host:port/database") from None
    if parsed.drivername not in ("postgresql", "postgres", "postgresql+psycopg"):
        raise RegistryError(f"the registry is kept in Postgres, not in {parsed.drivername}: write postgresql://...")
    return parsed.set(drivername="postgresql+psycopg")


def _engine(url: URL, schema: str) -> Engine:
    limit = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_SECONDS}
    engine = create_engine(
        url, pool_size=2, max_overflow=3, pool_pre_ping=True, connect_args=limit, json_serializer=json_text
    )

    # First of all listeners, so that SQLAlchemy itself learns the schema as the connection's default. Not by the
    # start-up packet's `options`, which poolers refuse.
    @event.listens_for(engine, "connect", insert=True)
    def lead_to_schema(connection: Any, _record: Any) -> None:
        connection.autocommit = True
        connection.execute(f'SET search_path TO "{schema}"')
        connection.autocommit = False

    return engine


def _place(url: URL) -> str:
    """Host, port and database, without user and password; what the URL leaves out as libpq fills it in."""
    host = url.host or url.query.get("host") or os.environ.get("PGHOST") or "localhost"
    port = url.port or url.query.get("port") or os.environ.get("PGPORT") or 5432
    database = url.database or os.environ.get("PGDATABASE") or url.username or "the user's database"
    return f"{host}:{port}/{database}"
