"""Looks at a registry for a person who checks a set-up: also at a schema without a registry, and at one of another release."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, text

from registry.migrations.roles import job_rights, operator_rights
from registry.registry_state import RegistryState
from registry.repository.migrate import head_revision, is_readable, known_revisions

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
