"""Connections to the registry's schema, and the schema itself. Errors of Postgres become errors of the registry.

The schema is the sum of `registry/migrations`: a start creates it, or brings it to this release. `state` looks at it for a person
who checks a set-up, also where there is no registry, or one of another release.

A migration names in `readable_by` the last revisions of the earlier releases that can work with the schema as it leaves it. The
comment of the table `alembic_version` holds them. So an operator may go back to such a release, which leaves the schema as it is.
"""

import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from pathlib import Path
from threading import Timer
from typing import Any, Final, Self
from weakref import WeakSet

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event, exc, func, insert, make_url, select, text

from registry.errors import (
    RegistryBusy,
    RegistryError,
    RegistryMissing,
    RegistryRefused,
    RegistryUnreachable,
    RoleNotGranted,
    UnknownRevision,
)
from registry.migrations.first_rules import DERIVED, EDITED
from registry.model import MAX_SLOTS, RegistryState, json_text
from registry.repository.rows import announce
from registry.tables import meta
from registry.tables import slots as slots_table

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


ROLES: Final = ("reader", "job", "operator", "lander")
"""The roles, each with the rights of its work. The owner is the user who migrates. Each role is a group without login, named
after the schema, which an administrator grants to users. The rules of the schema hold for every role. Only the owner may change
the schema, its triggers and its functions."""

_ALL: Final = "INSERT, UPDATE, DELETE"
_OPERATOR: Final = {
    **dict.fromkeys(EDITED, _ALL),
    "replay_requests": "INSERT, UPDATE",
    "replay_letters": "INSERT",
    "dead_letters": "INSERT, UPDATE",
    "landings": _ALL,
}
_JOB: Final = {
    "assignments": "UPDATE, DELETE",
    "joins": "DELETE",
    "access_paths": "UPDATE",
    "products": _ALL,
    "product_joins": _ALL,
    "waiting_products": "DELETE",
    "epochs": "INSERT",
    "leases": "INSERT, UPDATE",
    "attempts": "INSERT, UPDATE",
    "entity_statistics": _ALL,
    "join_statistics": _ALL,
    "walk_progress": _ALL,
    "replay_requests": "INSERT, UPDATE",
    "replay_letters": "INSERT, UPDATE",
    "dead_letters": _ALL,
}
_LANDER: Final = {"landings": _ALL}
_EDITOR: Final = {"meta": "UPDATE", "history": "INSERT", **dict.fromkeys(DERIVED, "INSERT, UPDATE")}
"""The rights of everybody who edits: the version, and the tables that triggers write."""


def role_statements(schema: str) -> list[str]:
    """The statements that create the roles of a schema, or bring their rights to this release."""
    tables = f'ALL TABLES IN SCHEMA "{schema}"'
    names = ", ".join(f'"{schema}_{role}"' for role in ROLES)
    statements = [_create(f"{schema}_{role}") for role in ROLES]
    statements += [f"REVOKE ALL ON {tables} FROM {names}", f"GRANT SELECT ON {tables} TO {names}"]
    statements.append(f'GRANT USAGE ON SCHEMA "{schema}" TO {names}')
    for role, rights in (("job", _JOB | _EDITOR), ("operator", _OPERATOR | _EDITOR), ("lander", _LANDER)):
        statements += [f'GRANT {right} ON "{schema}".{table} TO "{schema}_{role}"' for table, right in rights.items()]
    return statements


def job_rights() -> list[tuple[str, str]]:
    """The rights of a job: (table, right)."""
    return _rights(_JOB | _EDITOR)


def operator_rights() -> list[tuple[str, str]]:
    """The rights of an operator: (table, right)."""
    return _rights(_OPERATOR | _EDITOR)


def _rights(of: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(table, right) for table, rights in of.items() for right in ("SELECT", *rights.split(", "))]


def _create(role: str) -> str:
    return f'DO $$ BEGIN CREATE ROLE "{role}"; EXCEPTION WHEN duplicate_object THEN NULL; END $$'


_MIGRATIONS: Final = Path(__file__).parent.parent / "migrations"
_READABLE_BY: Final = "also for releases that end with revision "


def migrate(connection: Connection, schema: str, slots: int) -> None:
    """Migrates within the caller's transaction. Other migrations of the same schema wait for its end. `slots` counts for a new
    registry only.

    Raises:
        RegistryError: `slots` is not 1 to 20.
        UnknownRevision: another release migrated the schema, and this one does not know its revision.
    """
    if not 1 <= slots <= MAX_SLOTS:
        raise RegistryError(f"{slots} slots: a table has 1 to {MAX_SLOTS} indexes")
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"statestore migrate {schema}", 0))))
    if not connection.scalar(text("SELECT to_regnamespace(:schema)"), {"schema": f'"{schema}"'}):
        connection.execute(text(f'CREATE SCHEMA "{schema}"'))
    _upgrade(connection, schema)
    if connection.scalar(select(meta.c.one)) is None:
        announce(connection)
        connection.execute(insert(slots_table), [{"slot": slot} for slot in range(1, slots + 1)])
        connection.execute(insert(meta))


def check_revision(connection: Connection, schema: str) -> None:
    """Raises UnknownRevision for a registry that another release migrated. Accepts a schema without a registry, and one of an
    older release."""
    versions = f'"{schema}".alembic_version'
    readable = "SELECT coalesce(has_table_privilege(to_regclass(:versions)::oid, 'SELECT'), false)"
    if not connection.scalar(text(readable), {"versions": versions}):
        return
    known = known_revisions()
    for stored in connection.scalars(text(f"SELECT version_num FROM {versions}")):
        if stored not in known and not is_readable(connection, schema):
            raise _unknown_revision(schema, f"its revision is '{stored}'")


def known_revisions() -> frozenset[str]:
    """The revisions that this release can read or migrate: the names of its migrations, without the `v`. Only a migration imports
    alembic, which is slow."""
    return frozenset(file.stem[1:] for file in (_MIGRATIONS / "versions").glob("v*.py"))


def head_revision() -> str:
    """The revision that this release migrates to."""
    return max(known_revisions())


def _unknown_revision(schema: str, why: object) -> UnknownRevision:
    return UnknownRevision(
        f"another release of statestore migrated schema {schema}: install that release, or use another schema; a "
        f"registry from before the first release cannot be migrated ({why})"
    )


def is_readable(connection: Connection, schema: str) -> bool:
    """Whether a newer release has migrated the schema, and this release can work with it."""
    comment = "SELECT coalesce(obj_description(to_regclass(:versions)::oid, 'pg_class'), '')"
    found: str = connection.scalars(text(comment), {"versions": f'"{schema}".alembic_version'}).one()
    return head_revision() in found.removeprefix(_READABLE_BY).split()


def _upgrade(connection: Connection, schema: str) -> None:
    if is_readable(connection, schema):
        return
    from alembic import command
    from alembic.config import Config
    from alembic.migration import MigrationContext
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    before = MigrationContext.configure(connection).get_current_revision()
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise _unknown_revision(schema, error) from error
    head = ScriptDirectory(str(_MIGRATIONS)).get_revision("head")
    if head.revision != before:
        comment = _READABLE_BY + " ".join(head.module.readable_by)
        connection.execute(text(f"COMMENT ON TABLE alembic_version IS '{comment}'"))


_SERVER: Final = """
    SELECT extract(epoch FROM clock_timestamp())::float8 AS now, current_user::text AS user,
      coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS tls,
      has_database_privilege(current_database(), 'CREATE') AS may_create,
      to_regclass(:versions) IS NOT NULL AS exists,
      current_setting('server_version_num')::int / 10000 AS release
"""
_LACKS: Final = """
    SELECT wanted.right || ' on ' || wanted.name FROM unnest(:rights ::text[], :names ::text[]) AS wanted("right", name)
    WHERE NOT coalesce(has_table_privilege(to_regclass(format('%I.%I', :schema ::text, wanted.name))::oid, wanted.right), true)
"""
"""A table that is missing belongs to an older revision, which the next migration changes."""


def look(connection: Connection, schema: str) -> RegistryState:
    """The state of a schema and of the user's rights there. Writes nothing."""
    connection.execute(text("SET TRANSACTION READ ONLY"))
    versions = f'"{schema}".alembic_version'
    server = connection.execute(text(_SERVER), {"versions": versions}).mappings().one()
    if not server["exists"]:
        return RegistryState(**server)
    if not connection.scalar(text("SELECT has_table_privilege(to_regclass(:v)::oid, 'SELECT')"), {"v": versions}):
        return RegistryState(**server, missing=("SELECT on all tables",))
    revision = connection.scalar(text(f"SELECT version_num FROM {versions}")) or ""
    return RegistryState(
        **server,
        revision=revision,
        known=revision in known_revisions() or is_readable(connection, schema),
        current=revision == head_revision(),
        missing=_lacks(connection, schema, job_rights()),
    )


def may_edit(connection: Connection, schema: str) -> bool:
    """Whether the user of the connection has all rights of an operator."""
    return not _lacks(connection, schema, operator_rights())


def _lacks(connection: Connection, schema: str, wanted: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Those of these rights, as (table, right), that the user of the connection lacks."""
    rights, names = [right for _, right in wanted], [name for name, _ in wanted]
    return tuple(connection.scalars(text(_LACKS), {"schema": schema, "rights": rights, "names": names}))
