"""Postgres servers of several releases for the tests of the store, and what an operator does there."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest

from processor.local import postgres_server
from processor.local.postgres_server import start_postgres


@contextmanager
def running_postgres(programs: Path | None = None, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a server, inside the block: of these programs, else of the embedded ones. `more`: its settings."""
    with TemporaryDirectory(prefix="statestore-postgres-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)  # under root the server is another user
        with pytest.MonkeyPatch.context() as patched:
            if programs is not None:
                patched.setattr(postgres_server, "_binaries", lambda: programs)
            part = start_postgres(Path(directory), more=more)
        try:
            yield str.__str__(part.endpoint)
        finally:
            part.stop()


def execute(url: str, statement: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    """What an operator's psql gets for a statement."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []
