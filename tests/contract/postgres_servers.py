"""Postgres servers of several releases for the tests of the store, and what an operator does there."""

import os
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from processor.environment.programs import servers
from processor.environment.programs.servers import start_postgres


@contextmanager
def running_postgres(programs: Path | None = None, more: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a server, inside the block: of these programs, else of the embedded ones. `more`: its settings."""
    with TemporaryDirectory(prefix="statestore-postgres-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)  # under root the server is another user
        with pytest.MonkeyPatch.context() as patched:
            if programs is not None:
                patched.setattr(servers, "_binaries", lambda: programs)
            part = start_postgres(Path(directory), more=more)
        try:
            yield str.__str__(part.endpoint)
        finally:
            part.stop()


@contextmanager
def crashing_postgres() -> Iterator[tuple[str, Callable[..., None]]]:
    """The address of a server, inside the block, and how to crash it: it ends at once, as with `pg_ctl stop -m immediate`, and
    starts again at the same address. A crash takes what happens meanwhile."""
    with TemporaryDirectory(prefix="statestore-postgres-", ignore_cleanup_errors=True) as directory:
        Path(directory).chmod(0o755)  # under root the server is another user
        parts = [start_postgres(Path(directory))]
        url = str.__str__(parts[0].endpoint)

        def crash(meanwhile: Callable[[], None] = lambda: None) -> None:
            os.kill(parts[-1].process.pid, signal.SIGQUIT)
            while parts[-1].alive():
                sleep(0.02)
            meanwhile()
            parts.append(start_postgres(Path(directory), port=urlsplit(url).port))
            assert str.__str__(parts[-1].endpoint) == url

        try:
            yield url, crash
        finally:
            for part in reversed(parts):  # the end of a part may remove the data
                part.stop()


def execute(url: str, statement: str, values: list[Any] | None = None) -> list[tuple[Any, ...]]:
    """What an operator's psql gets for a statement."""
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.encode(), values)
        return cursor.fetchall() if cursor.description else []
