"""The registry's schema: creates it, or brings it to this release, which is the sum of `registry/migrations`. Looks at it for a
person who checks a set-up, also where there is no registry, or one of another release. Makes the roles of the registry.

A migration names in `readable_by` the last revisions of the earlier releases that can work with the schema as it leaves it. The
comment of the table `alembic_version` holds them. So an operator may go back to such a release, which leaves the schema as it is.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, func, insert, select, text

from registry.errors import RegistryError, UnknownRevision
from registry.migrations.first_rules import DERIVED, EDITED
from registry.model import MAX_SLOTS, RegistryState
from registry.repository.rows import announce
from registry.tables import meta
from registry.tables import slots as slots_table

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
    """The revisions that this release can read or migrate."""
    return frozenset(script.revision for script in ScriptDirectory(str(_MIGRATIONS)).walk_revisions())


def head_revision() -> str:
    """The revision that this release migrates to."""
    return str(ScriptDirectory(str(_MIGRATIONS)).get_current_head())


def _unknown_revision(schema: str, why: object) -> UnknownRevision:
    return UnknownRevision(
        f"another release of statestore migrated schema {schema}: install that release, or use another schema; a "
        f"registry from before the first release cannot be migrated ({why})"
    )


def is_readable(connection: Connection, schema: str) -> bool:
    """Whether a newer release has migrated the schema, and this release can work with it."""
    comment = "SELECT coalesce(obj_description(to_regclass(:versions)::oid, 'pg_class'), '')"
    found: str = connection.scalars(text(comment), {"versions": f'"{schema}".alembic_version'}).one()
    return ScriptDirectory(str(_MIGRATIONS)).get_current_head() in found.removeprefix(_READABLE_BY).split()


def _upgrade(connection: Connection, schema: str) -> None:
    if is_readable(connection, schema):
        return
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
