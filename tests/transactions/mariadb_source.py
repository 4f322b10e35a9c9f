"""A MariaDB as the source of a live run, in place of its Postgres, read by Debezium's connector for MySQL.

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

from processor.tools.demo.live import LiveParts
from tests.capture.servers import mariadb

NAME, LOGIN = "public", "debezium"
"""The database; its user, who is also the password."""
TABLES = ("orders", "line", "payment", "shipment", "receipt")
HISTORY = "schema.history.internal"
ONLY_POSTGRES = ("plugin.name", "publication.autocreate.mode", "database.dbname")
"""Debezium for MySQL refuses them."""


@contextmanager
def mariadb_source(parts: LiveParts) -> Iterator[Callable[[], None]]:
    """Lets the parts use a new MariaDB. Gives a function that copies its rows to Postgres, where a comparison looks for them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chmod(folder, 0o755)  # for the user of the server
        with mariadb(folder / "maria") as port:
            parts.create_source(1)
            parts.server = f"mysql://{LOGIN}:{LOGIN}@127.0.0.1:{port}"
            parts.connector = _properties(parts.connector, port, folder / "history")
            with _connect(port) as connection, connection.cursor() as cursor:
                cursor.execute(f"create database {NAME}")
            yield lambda: _copy(port, parts.source)


def _properties(of_postgres: dict[str, str], port: int, history: Path) -> dict[str, str]:
    return {name: value for name, value in of_postgres.items() if name not in ONLY_POSTGRES} | {
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "database.hostname": "127.0.0.1",
        "database.port": str(port),
        "database.user": LOGIN,
        "database.password": LOGIN,
        "database.server.id": "1001",
        "database.ssl.mode": "disabled",
        "database.include.list": NAME,
        "include.schema.changes": "false",
        HISTORY: "io.debezium.storage.file.history.FileSchemaHistory",
        f"{HISTORY}.store.only.captured.tables.ddl": "true",
        f"{HISTORY}.file.filename": str(history),
    }


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
