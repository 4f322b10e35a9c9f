"""Creates the registry's schema, or brings it to this release: the sum of `registry/migrations`."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, func, insert, select, text

from registry.errors import RegistryError, UnknownRevision
from registry.model import MAX_SLOTS
from registry.repository.write import announce
from registry.tables import meta
from registry.tables import slots as slots_table

_MIGRATIONS: Final = Path(__file__).parent.parent / "migrations"


def migrate(connection: Connection, schema: str, slots: int) -> None:
    """Migrates within the caller's transaction. Other migrations of the same schema wait for its end. `slots` counts for a new
    registry only.

    Raises:
        RegistryError: `slots` is not 1 to 20.
        UnknownRevision: another release migrated the schema, and this one does not know its revision.
    """
    if not 1 <= slots <= MAX_SLOTS:
        raise RegistryError(f"{slots} slots: a DynamoDB table has 1 to {MAX_SLOTS} indexes")
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
        if stored not in known:
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


def _upgrade(connection: Connection, schema: str) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise _unknown_revision(schema, error) from error
