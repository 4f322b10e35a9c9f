"""A MariaDB as the source of a live run, in place of its Postgres, read by Debezium's connector for MariaDB.

Its database has the name `public`, so topics and definitions are those of Postgres. Needs `mariadbd`, `mariadb-install-db` and
PyMySQL.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pymysql  # type: ignore[import-untyped]

from processor.tools.demo.live import CHOICES, PREFIX, LiveParts
from processor.tools.source.live_source import MARIADB, connector_properties
from tests.capture.servers import mariadb

NAME, LOGIN = "public", "debezium"
"""The database; its user, who is also the password."""
TABLES = ("orders", "line", "payment", "shipment", "receipt")


@contextmanager
def mariadb_source(parts: LiveParts) -> Iterator[Callable[[], None]]:
    """Lets the parts use a new MariaDB. Gives a function that copies its rows to Postgres, where a comparison looks for them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chmod(folder, 0o755)  # for the user of the server
        with mariadb(folder / "maria", announced="10.11.11-MariaDB-log") as port:
            parts.create_source(1)
            parts.server = f"mysql://{LOGIN}:{LOGIN}@127.0.0.1:{port}"
            address = f"mysql://{LOGIN}@127.0.0.1:{port}/{NAME}"
            parts.connector = connector_properties(address, PREFIX, (), kind=MARIADB) | CHOICES
            parts.connector |= {"database.include.list": NAME}
            parts.password = LOGIN
            with _connect(port) as connection, connection.cursor() as cursor:
                cursor.execute(f"create database {NAME}")
            yield lambda: _copy(port, parts.source)


def _connect(port: int, database: str | None = None) -> Any:
    return pymysql.connect(host="127.0.0.1", port=port, user=LOGIN, password=LOGIN, database=database)


def _copy(port: int, target: str) -> None:
    """Makes the tables of Postgres equal to those of MariaDB."""
    url = target.replace("postgresql+psycopg://", "postgresql://", 1)
    with _connect(port, NAME) as source, psycopg.connect(url) as copy:
        for table in TABLES:
            with source.cursor() as rows:
                rows.execute(f"select * from {table}")
                copy.execute(f"truncate {table}".encode())
                places = ", ".join(["%s"] * len(rows.description))
                copy.cursor().executemany(f"insert into {table} values ({places})".encode(), list(rows.fetchall()))
