"""The captures from PostgreSQL: which statements run, and under which settings of Debezium."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from processor.values.record import Record
from tests.capture.engine import END, Recording, engine_properties, running
from tests.capture.postgres_types import MODES, create_table, insert_sample, insert_special

Captured = tuple[list[Record], dict[str, list[dict[str, Any]]]]
"""The records, and the rows of each table when the last record was sent."""

NO_SETTINGS: Mapping[str, str] = {}
UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
HISTORY = """
create table users (id int primary key, name text, balance numeric(12,2), bio text);
alter table users alter column bio set storage external;
create table orders (id bigint primary key, user_id int, note text);
create table labels (id text primary key, note text);
insert into users values (1, 'Ann', 12.34, repeat('long ', 600)), (2, 'Bob', null, null), (3, 'Cem', 1, 'short');
insert into orders values (10, 1, 'first'), (11, 1, 'second'), (12, 2, 'third'), (13, 3, null);
insert into labels values ('octocat', 'a'), ('42', 'b'), ('true', 'c'), ('a b', 'd')
"""
STREAM = (
    "update users set name = 'Ann B' where id = 1",  # its bio is not read
    "begin; update users set name = 'x' where id = 2; update users set name = 'Bob C', balance = 7 where id = 2; commit",
    "insert into users values (4, 'Dea', 0, repeat('other ', 500))",
    "begin; update users set id = 5 where id = 3; update orders set user_id = 5 where user_id = 3; commit",
    "update users set id = 6, name = 'Dea F' where id = 4",  # a new key, and a bio that is not read
    "update orders set id = 20, user_id = 2 where id = 11",
    "delete from orders where id = 12",
    "begin; delete from users where id = 2; insert into users values (2, 'again', 1.5, 'new'); commit",
    "update users set bio = null where id = 6",
    "insert into orders values (21, 9, 'no user'), (22, 5, 'last')",
    "delete from users where id = 5",
    "update labels set id = 'hubot' where id = 'a b'",
    "delete from labels where id = '42'",
)
EVOLUTION = (
    "insert into items values (2, 20, 'b', 'old')",
    "alter table items add column colour text default 'red'",
    "insert into items values (3, 30, 'c', 'old', 'blue')",
    "alter table items drop column note",
    "insert into items values (4, 40, 'd', 'green')",
    "alter table items rename column code to label",
    "insert into items values (5, 50, 'e', 'green')",
    "alter table items alter column qty type bigint",
    "insert into items values (6, 9223372036854775807, 'f', 'green')",
    "alter table items alter column qty type text using 'n' || qty",
    "insert into items values (7, 'many', 'g', 'green')",
    "alter table items alter column label type text",
    "update items set label = 'changed' where id = 1",
    "alter table items alter column qty type numeric(8,2) using 7.5",
    "insert into items values (8, 8, 'h', 'green')",
    "update items set label = 'again' where id = 2",
)
SIGNAL = "create table signals (id varchar(42) primary key, type varchar(32) not null, data varchar(2048))"
EXECUTE = """
insert into signals values ('one', 'execute-snapshot', '{"data-collections": ["public.users"], "type": "incremental"}')
"""
INCREMENTAL = {"signal.data.collection": "public.signals", "incremental.snapshot.chunk.size": "2"}


class Database:
    """A database of its own for one capture, and the properties of its connector."""

    def __init__(self, port: int, name: str, folder: Path) -> None:
        self.address = f"host=127.0.0.1 port={port} user=postgres dbname="
        self.name, self.port, self.folder = f"capture_{name}".replace("-", "_"), port, folder
        with psycopg.connect(f"{self.address}postgres", autocommit=True) as server:
            server.execute(f"create database {self.name}".encode())
        self.session = psycopg.connect(f"{self.address}{self.name}", autocommit=True)
        self.run("create table marker (id text primary key)")

    def run(self, *statements: str) -> None:
        """Runs statements; each commits by itself, unless it says `begin` and `commit`."""
        for statement in statements:
            self.session.execute(statement.encode())

    @contextmanager
    def engine(
        self, settings: Mapping[str, str] = NO_SETTINGS, *, schemas: bool = False, text_keys: bool = False
    ) -> Iterator[Recording]:
        """Debezium on this database; at the end of the block it waits for the marker of the end."""
        properties = engine_properties(self.name, self.folder, schemas=schemas) | {
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "plugin.name": "pgoutput",
            "slot.name": self.name,
            "slot.drop.on.stop": "true",
            "publication.name": self.name,
            "database.port": str(self.port),
            "database.user": "postgres",
            "database.password": "postgres",
            "database.dbname": self.name,
            **settings,
        }
        with running(properties, text_keys=text_keys) as recording:
            recording.wait_until(self._is_streaming, "replication slot in use")
            yield recording
            self.run(f"insert into marker values ('{END}')")
            recording.wait_for(END)

    def _is_streaming(self) -> bool:
        slots = "select 1 from pg_replication_slots where active and slot_name = %s"
        return bool(self.session.execute(slots, [self.name]).fetchall())

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table as they are now."""
        found = self.session.execute(f"select row_to_json(t)::text from {table} t order by id".encode()).fetchall()
        return [json.loads(text) for (text,) in found]


def capture_types(port: int, folder: Path, mode: str, schemas: bool, flattened: bool = False) -> list[Record]:
    """Each type under one time.precision.mode: a snapshot row, a streamed row, and the special values."""
    database = Database(port, f"types_{mode}_{schemas}_{flattened}".lower(), folder)
    database.run(create_table(), insert_sample(1))
    with database.engine(MODES[mode] | (UNWRAP if flattened else {}), schemas=schemas) as recording:
        database.run(insert_sample(2), *insert_special(3))
    return [record for record in recording.records if record.topic == "app.public.sample"]


def capture_history(
    port: int,
    folder: Path,
    *,
    name: str,
    settings: Mapping[str, str] = NO_SETTINGS,
    schemas: bool = False,
    text_keys: bool = False,
    full: bool = False,
) -> Captured:
    """Changes of three tables, and their rows at the end. `full`: with REPLICA IDENTITY FULL."""
    database = Database(port, name, folder)
    database.run(HISTORY)
    for table in ("users", "orders", "labels") if full else ():
        database.run(f"alter table {table} replica identity full")
    with database.engine(settings, schemas=schemas, text_keys=text_keys) as recording:
        database.run(*STREAM)
    return recording.records, {table: database.rows(table) for table in ("users", "orders", "labels")}


def capture_events(port: int, folder: Path) -> Captured:
    """All that is no change of a row: signals, the windows of an incremental snapshot, transactions, heartbeats, logical
    messages, a truncate."""
    database = Database(port, "events", folder)
    database.run(HISTORY, SIGNAL, "create table scratch (id int primary key)")
    settings = {
        "provide.transaction.metadata": "true",
        "heartbeat.interval.ms": "100",
        "skipped.operations": "none",
    }
    with database.engine(settings | INCREMENTAL) as recording:
        database.run("insert into scratch values (1), (2)", "truncate scratch")
        database.run("select pg_logical_emit_message(true, 'audit', 'in a transaction')")
        database.run("select pg_logical_emit_message(false, 'audit', 'alone')")
        database.run(EXECUTE)
        recording.wait_for('"snapshot":"incremental"', 3)
        database.run("update users set name = 'after' where id = 3")
        recording.wait_for_topic("__debezium-heartbeat.app")
    return recording.records, {"users": database.rows("users")}


def capture_toast(port: int, folder: Path, *, full: bool) -> Captured:
    """Rows that exist before the connector, and a row that changes its key: the first record of their key lacks the bio, until a
    full row comes, or an incremental snapshot. `full`: with REPLICA IDENTITY FULL."""
    database = Database(port, f"toast_{full}".lower(), folder)
    database.run(HISTORY, SIGNAL, "insert into users values (7, 'Eve', 1, repeat('third ', 500))")
    if full:
        database.run("alter table users replica identity full")
    with database.engine({"snapshot.mode": "no_data"} | INCREMENTAL) as recording:
        database.run("update users set name = 'Ann T' where id = 1", "update users set name = 'Eve T' where id = 7")
        database.run("update users set bio = repeat('fresh ', 500) where id = 7")
        database.run(
            "insert into users values (8, 'Fay', 1, repeat('fourth ', 500))", "update users set id = 9 where id = 8"
        )
        database.run("insert into marker values ('unhealed')")
        recording.wait_for("unhealed")
        database.run(EXECUTE)
        recording.wait_for('"snapshot":"incremental"', 5)
    return recording.records, {"users": database.rows("users")}


def capture_evolution(port: int, folder: Path, *, schemas: bool) -> Captured:
    """A table whose columns come, go, and change their names and types while rows come."""
    database = Database(port, f"evolution_{schemas}".lower(), folder)
    database.run("create table items (id int primary key, qty int, code varchar(5), note text)")
    database.run("insert into items values (1, 10, 'a', 'old')")
    with database.engine(schemas=schemas) as recording:
        database.run(*EVOLUTION)
    return recording.records, {"items": database.rows("items")}
