"""Captures what Canal and Maxwell write of a MariaDB server: `python -m tests.capture.mysql_connectors LIBRARIES`.

`LIBRARIES` has the folders `canal` (com.alibaba.otter:canal.server 1.1.7) and `maxwell` (com.zendesk:maxwell 1.22.6), each with
the jars that `mvn dependency:copy-dependencies` finds. Canal's server runs in `CanalRecorder.java`, over its own
classes. This Maxwell needs a class of Java 14 or older, of which the script makes an empty one.

Neither knows MariaDB's annotations of statements, so the server writes none. Canal reads a table's definition when it reads the
first row, so the script renames and drops tables last.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.capture.mariadb_types import COLUMNS, SPECIAL, create_table
from tests.capture.servers import mariadb

DATA = Path(__file__).parents[1] / "data"
RECORDER = Path(__file__).with_name("CanalRecorder.java")
MIRROR = (
    "package jdk.nashorn.api.scripting; public class ScriptObjectMirror extends java.util.HashMap<String, Object> {}"
)
BEGIN = (
    "set global binlog_annotate_row_events=off", "create database shop", "create database maxwell", "use shop",
    create_table().rstrip(";"),
)  # fmt: skip
READABLE = tuple(
    f"alter table maxwell.{table} convert to character set utf8mb4" for table in ("bootstrap", "heartbeats")
)
CHANGES = (
    "use shop",
    "create table item (id int primary key, name varchar(20))",
    "create table pair (a int, b varchar(9), note text, primary key (a, b))",
    f"insert into sample values (1, {', '.join(value for _, _, value in COLUMNS)})",
    "insert into sample (id) values (2)",
    *(f"insert into sample (id, `{name}`) values ({n}, {value})" for n, (name, value) in enumerate(SPECIAL[:4], 10)),
    "insert into item values (1, 'a'), (2, 'b'), (3, 'c')",
    "update item set name = concat(name, 'x')",
    "update item set id = id + 1 order by id desc",
    "insert into item values (2, 'x'), (2, 'y'), (9, 'z') on duplicate key update name = concat(values(name), '!'), id = id + 10",
    "insert into item values (50, 'p'), (50, 'q'), (50, 'r') on duplicate key update name = values(name)",
    "begin",
    "insert into item values (20, 't')",
    "insert into pair values (1, 'x', 'n')",
    "update item set name = null where id = 20",
    "commit",
    "delete from item where id > 2",
)
EVOLVED = ("use shop", "alter table item add column more int default 5", "insert into item (id) values (70)")
GONE = ("use shop", "truncate table item", "rename table pair to pairs", "drop table pairs")
BOOTSTRAP = (
    "create table shop.boot (id int primary key, v text)",
    "insert into shop.boot values (1, 'b'), (2, null)",
    "insert into maxwell.bootstrap (database_name, table_name) values ('shop', 'boot')",
)
SECONDS = 12
"""Between two steps, so that both have read the step before."""


def main(libraries: Path) -> None:
    """Writes the records of both to `tests/data`."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        mirror = Path(folder) / "jdk" / "nashorn" / "api" / "scripting" / "ScriptObjectMirror.java"
        mirror.parent.mkdir(parents=True)
        mirror.write_text(MIRROR)
        subprocess.run(["javac", "-d", folder, str(mirror)], check=True)
        with mariadb(Path(folder) / "server") as port:
            _run(port, BEGIN)
            canal = ("-cp", f"{libraries}/canal/*", str(RECORDER), str(port), str(DATA / "canal" / "records.jsonl"))
            maxwell = ("-cp", f"{libraries}/maxwell/*:{folder}", "com.zendesk.maxwell.Maxwell", *_maxwell(port))
            running = [subprocess.Popen(["java", *words]) for words in (canal, maxwell)]
            for statements in (READABLE, CHANGES, EVOLVED, GONE, BOOTSTRAP, ()):
                time.sleep(2 * SECONDS if statements is READABLE else SECONDS)
                _run(port, statements)
            for one in running:
                one.terminate()
                one.wait()


def _maxwell(port: int) -> tuple[str, ...]:
    place = ("--host=127.0.0.1", f"--port={port}", "--user=debezium", "--password=debezium")
    shown = (
        "--output_ddl=true",
        "--output_xoffset=true",
        "--output_primary_keys=true",
        "--output_primary_key_columns=true",
    )
    file = f"--output_file={DATA / 'maxwell' / 'records.jsonl'}"
    return (
        *place,
        *shown,
        "--producer=file",
        file,
        "--filter=exclude: *.*, include: shop.*, include: maxwell.bootstrap",
    )


def _run(port: int, statements: tuple[str, ...]) -> None:
    words = ["mariadb", "--default-character-set=utf8mb4", "-h127.0.0.1", f"-P{port}", "-udebezium", "-pdebezium"]
    subprocess.run(words, input="".join(f"{one};\n" for one in statements), text=True, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
