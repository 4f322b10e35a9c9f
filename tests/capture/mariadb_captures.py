"""The captures from MariaDB, by Debezium's connector for MySQL."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from processor.values.record import Record
from tests.capture.engine import END, Recording, engine_properties, running
from tests.capture.mariadb_types import MODES, create_table, insert_sample, insert_special


class MariaDatabase:
    """An empty database `shop` for one capture, and the properties of its connector."""

    def __init__(self, port: int, name: str, folder: Path) -> None:
        self.port, self.name, self.folder, self.number = port, name, folder, 1 + len(list(folder.iterdir()))
        self._client = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port}", "-udebezium", "-pdebezium"]
        self._client += ["--default-character-set=utf8mb4"]
        subprocess.run([*self._client, "-e", "drop database if exists shop; create database shop"], check=True)
        self.run("create table marker (id varchar(20) primary key)")

    def run(self, *statements: str) -> None:
        """Runs statements in one session."""
        subprocess.run([*self._client, "shop"], input=";\n".join(statements), text=True, check=True)

    @contextmanager
    def engine(self, settings: Mapping[str, str], *, schemas: bool = False) -> Iterator[Recording]:
        """Debezium on this database; at the end of the block it waits for the marker of the end."""
        history = "schema.history.internal"
        properties = engine_properties(self.name, self.folder, schemas=schemas) | {
            "connector.class": "io.debezium.connector.mysql.MySqlConnector",
            "database.port": str(self.port),
            "database.user": "debezium",
            "database.password": "debezium",
            "database.server.id": str(1000 + self.number),
            "database.ssl.mode": "disabled",
            "database.include.list": "shop",
            history: "io.debezium.storage.file.history.FileSchemaHistory",
            f"{history}.store.only.captured.tables.ddl": "true",
            f"{history}.file.filename": str(self.folder / f"{self.name}.history"),
            **settings,
        }
        self.run("insert into marker values ('snapshot')")
        with running(properties) as recording:
            recording.wait_for('"id":"snapshot"')
            yield recording
            self.run(f"insert into marker values ('{END}')")
            recording.wait_for(END)


def capture_maria_types(port: int, folder: Path, mode: str, schemas: bool) -> list[Record]:
    """Each type under one time.precision.mode: a snapshot row, a streamed row, and the special values."""
    database = MariaDatabase(port, f"types_{mode}_{schemas}".lower(), folder)
    database.run(create_table(), insert_sample(1))
    with database.engine(MODES[mode] | {"include.schema.changes": "false"}, schemas=schemas) as recording:
        database.run(insert_sample(2), *insert_special(3))
    return [record for record in recording.records if record.topic == "app.shop.sample"]


def capture_schema_changes(port: int, folder: Path) -> list[Record]:
    """A table that changes, with the records of the topic of schema changes."""
    database = MariaDatabase(port, "changes", folder)
    database.run("create table items (id int primary key, qty int)", "insert into items values (1, 10)")
    with database.engine({}) as recording:
        database.run("alter table items add column note text", "insert into items values (2, 20, 'new')")
        database.run("update items set id = 3 where id = 1", "delete from items where id = 2")
    return recording.records
