"""Migrated schemas of registries: one real migration, and its statements again for each other schema. Alembic and SQLAlchemy
then work once, which takes most of the time of a migration."""

import uuid
from collections.abc import Callable
from typing import Any

import psycopg
from sqlalchemy import Engine, event

from registry.repository import Registry


def schema_maker(url: str, slots: int) -> Callable[[str], None]:
    """Migrates a schema, drops it, and returns a function that makes the same schema under another name."""
    recorded, statements = f"recorded_{uuid.uuid4().hex}", list[str]()

    def record(_: object, cursor: Any, statement: str, parameters: Any, __: object, many: bool) -> None:
        quoting = psycopg.ClientCursor(cursor.connection)
        statements.extend(quoting.mogrify(statement, one) for one in (parameters if many else [parameters]))

    event.listen(Engine, "before_cursor_execute", record)
    try:
        with Registry(url, recorded) as registry:
            registry.migrate(slots)
    finally:
        event.remove(Engine, "before_cursor_execute", record)
        drop_schema(url, recorded)

    def make(schema: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute(f"SET LOCAL search_path TO {schema}")
            connection.execute(";".join(statements).replace(recorded, schema))

    return make


def drop_schema(url: str, schema: str) -> None:
    """Drops a schema with all that is in it, if there is one."""
    with psycopg.connect(url) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
