"""`local up --source` on a database of one's own: real Debezium reads it, the documents follow an UPDATE, `verify` compares them
with a SELECT, and `local down` leaves nothing in the source."""

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import TextIO

import psycopg
import pytest
from sqlalchemy import create_engine

from processor.environment.programs.servers import start_postgres
from tests.capture.servers import mariadb
from tests.support.required import required_program

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")]
DEADLINE = 400.0
PASSWORD = "pa ss'#=\\é%"
TABLES = """
create table author (id int primary key, name varchar(20) not null, born date);
create table book (id int primary key, author_id int, title varchar(40), price decimal(8,2),
  foreign key (author_id) references author (id));
insert into author values (1, 'Ada', '1815-12-10'), (2, 'Bob', null);
insert into book values (10, 1, 'Notes', 12.50), (11, 1, 'Letters', 3);
"""
DRAFTED = ("author_document.yaml", "entities.yaml")


class Shown:
    """The lines of a command that runs."""

    def __init__(self, run: "subprocess.Popen[str]") -> None:
        self.lines, self._new, self._run = list[str](), Queue[str](), run
        for stream in (run.stdout, run.stderr):
            assert stream is not None
            Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: TextIO) -> None:
        for line in stream:
            self._new.put(line)

    def wait_for(self, *words: str) -> str:
        """The next line that has all these words."""
        end = monotonic() + DEADLINE
        while monotonic() < end:
            try:
                line = self._new.get(timeout=1)
            except Empty:
                assert self._run.poll() is None, self.lines
                continue
            print(line, end="")
            self.lines.append(line)
            if all(word in line for word in words):
                return line
        raise AssertionError(f"no line with {words}: {self.lines}")


@contextmanager
def running(statestore: list[str], folder: Path, *flags: str) -> Iterator[Shown]:
    """The command in a folder; Ctrl-C ends it, with status 0."""
    command = [*statestore, "local", "up", *flags]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        try:
            shown = Shown(run)
            yield shown
            run.send_signal(signal.SIGINT)
            shown.wait_for("the job ends")
            assert run.wait(DEADLINE) == 0
        finally:
            run.kill()


@pytest.fixture
def folder(statestore: list[str]) -> Iterator[Path]:
    """Where the command works. Its parts end with the test."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)
        subprocess.run([*statestore, "local", "down"], cwd=name, check=False)


def test_documents_follow_an_update_of_ones_own_postgres(
    statestore: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start_postgres(folder / "mine", more={"wal_level": "logical"})
    try:
        admin = server.endpoint.replace("+psycopg", "")
        own = admin.removesuffix("/postgres") + "/books"
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("create database books")
            connection.execute(f"create role me login replication password '{PASSWORD.replace(chr(39), chr(39) * 2)}'")
            connection.execute("grant create on database books to me")
        with psycopg.connect(own, autocommit=True) as connection:
            connection.execute("grant all on schema public to me; set role me")
            connection.execute(TABLES.encode())
        source = f"postgresql://me@{admin.rpartition('@')[2].removesuffix('/postgres')}/books"
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
        with running(statestore, folder, "--source", source) as shown:
            shown.wait_for("doc    author_document", '{"id":1}')
            for entry in Path("/proc").glob("[0-9]*/cmdline"):
                assert PASSWORD.encode() not in entry.read_bytes()
            with psycopg.connect(own, autocommit=True) as connection:
                connection.execute("update book set title = 'Sketches', price = 1.10 where id = 11")
            assert '"price":1.1' in shown.wait_for("doc    author_document", "Sketches")
            verify = [*statestore, "verify", "--embedded", "--source", source, "--lag", "2"]
            done = subprocess.run(verify, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done
            assert "book (public.book): 2 rows there, 2 here: no difference" in done.stdout
        assert sorted(path.name for path in (folder / "books").glob("*.yaml")) == [*DRAFTED]
        with running(statestore, folder, "--source", source) as shown:  # over the same parts and the same state
            with psycopg.connect(own, autocommit=True) as connection:
                connection.execute("insert into author values (3, 'Eve', null)")
            assert '"name":"Eve"' in shown.wait_for("doc    author_document", '{"id":3}')
            assert not [line for line in shown.lines if '{"id":1}' in line]
        texts = [path.read_bytes() for path in folder.rglob("log.txt") if path.is_file()]
        assert texts
        assert not [text for text in texts if PASSWORD.encode() in text]
        subprocess.run([*statestore, "local", "down"], cwd=folder, check=True)
        with psycopg.connect(own) as connection:
            left = "select slot_name::text from pg_replication_slots union all select pubname from pg_publication"
            assert connection.execute(left).fetchall() == []
        assert not (folder / ".statestore" / "local" / "debezium").exists()
    finally:
        server.stop()


def test_documents_follow_an_update_of_ones_own_mariadb(
    statestore: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    required_program("mariadbd", "apt-get install -y mariadb-server")
    with mariadb(folder / "server", announced="10.11.11-MariaDB-log") as port:
        address = f"mysql+pymysql://debezium:debezium@127.0.0.1:{port}"
        engine = create_engine(address, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for statement in ("create database books", "use books", *TABLES.strip().rstrip(";").split(";")):
                connection.exec_driver_sql(statement)
            monkeypatch.setenv("MINE", "debezium")
            source = (f"mysql://debezium@127.0.0.1:{port}/books", "--password", "env:MINE")
            with running(statestore, folder, "--source", *source) as shown:
                shown.wait_for("doc    author_document", '{"id":1}')
                connection.exec_driver_sql("update book set title = 'Sketches' where id = 11")
                shown.wait_for("doc    author_document", "Sketches")
                verify = [*statestore, "verify", "--embedded", "--source", *source, "--lag", "2"]
                done = subprocess.run(verify, cwd=folder, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done
        engine.dispose()
