"""Creates the registry's schema, or brings it to this release: the sum of `registry/migrations`.

A migration names in `readable_by` the last revisions of the earlier releases that can work with the schema as it leaves it. The
comment of the table `alembic_version` holds them. So an operator may go back to such a release, which leaves the schema as it is.
"""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, func, insert, select, text

from registry.errors import RegistryError, UnknownRevision
from registry.model import MAX_SLOTS
from registry.repository.rows import announce
from registry.tables import meta
from registry.tables import slots as slots_table

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
