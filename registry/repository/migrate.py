"""Makes the registry's schema, or brings it to this release: the sum of `registry/migrations`."""

from pathlib import Path
from typing import Final

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection, func, insert, select, text

from registry.errors import RegistryError, RegistryTooNew, SlotsDiffer
from registry.tables import meta
from registry.tables import slots as slots_table

_MIGRATIONS: Final = Path(__file__).parent.parent / "migrations"


def migrate(connection: Connection, schema: str, slots: int) -> None:
    """Migrates within the caller's transaction; whoever migrates the same schema at the same time waits for it.

    Raises:
        RegistryError: not 1 to 20 slots.
        SlotsDiffer: the registry was made with another number.
        RegistryTooNew: the schema is of a later release.
    """
    if not 1 <= slots <= 20:
        raise RegistryError(f"{slots} slots: a DynamoDB table has 1 to 20 indexes")
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"statestore migrate {schema}", 0))))
    connection.execute(text(f'CREATE SCHEMA IF NOT EXISTS "{schema}"'))
    _upgrade(connection, schema)
    stored = connection.scalar(select(meta.c.slots))
    if stored is None:
        connection.execute(insert(slots_table), [{"slot": slot} for slot in range(1, slots + 1)])
        connection.execute(insert(meta).values(slots=slots))
    elif stored != slots:
        raise SlotsDiffer(stored, slots)


def _upgrade(connection: Connection, schema: str) -> None:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise RegistryTooNew(
            f"schema {schema} is of a newer statestore than this: install that release ({error})"
        ) from error
