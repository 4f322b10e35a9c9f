"""A worker of Kafka Connect gets its connector, once it takes one; the password is in its environment only; and a connector that
stopped says why."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from processor.environment.programs import connect
from processor.environment.programs.connect import (
    BROKER_WORD,
    PASSWORD,
    PASSWORD_WORD,
    connector_problem,
    read_connector,
    start_connect,
    write_connector,
)
from processor.environment.programs.program import Program
from processor.errors import PartError

SECRET = "p=a s\\s#\n"
PROPERTIES = {
    "name": "shop",
    "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
    "database.password": PASSWORD_WORD,
    "history.servers": BROKER_WORD,
}


class Process:
    """A process that runs until it is stopped."""

    pid = 1

    def __init__(self) -> None:
        self.running = True

    def alive(self) -> bool:
        return self.running

    def stop(self) -> None:
        self.running = False


@contextmanager
def worker(*answers: tuple[int, object]) -> Iterator[tuple[int, list[Any]]]:
    """A REST interface that gives these answers in turn: its port, and what it was sent."""
    left, taken = list(answers), list[Any]()

    class Interface(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            taken.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.do_GET()

        def do_GET(self) -> None:
            status, body = left.pop(0)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Interface) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port, taken
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Process:
    """The process of a worker whose program is not started; its connector is in the directory."""
    made = Process()
    jars = tmp_path / "jars"
    jars.mkdir()
    for name in ("debezium-api.jar", "kafka-clients.jar"):
        (jars / name).touch()
    monkeypatch.setattr(connect, "connect_jars", lambda _: jars)
    monkeypatch.setattr(connect, "debezium_jars", lambda kind, _: jars if kind == "mariadb" else None)
    monkeypatch.setattr(connect, "find_java", lambda: "java")
    write_connector(tmp_path / "part", PROPERTIES, SECRET)
    return made


def started(port: int, process: Process, monkeypatch: pytest.MonkeyPatch) -> list[Program]:
    """Lets the start of a program answer at this port. Gives the programs."""
    programs: list[Program] = []

    def start(build: Any, *_: object) -> tuple[Process, int]:
        programs.append(build(port))
        return process, port

    monkeypatch.setattr(connect, "start_and_wait", start)
    return programs


def test_only_the_owner_reads_the_password_and_the_next_start_finds_it(tmp_path: Path) -> None:
    assert read_connector(tmp_path) is None
    for secret in ("first", SECRET):
        write_connector(tmp_path, PROPERTIES, secret)
    assert read_connector(tmp_path) == (PROPERTIES, SECRET)
    holders = [file for file in tmp_path.iterdir() if SECRET in file.read_text()]
    assert [file.stat().st_mode & 0o077 for file in holders] == [0]


def test_the_worker_takes_the_connector_and_the_password_is_in_its_environment_only(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = {"message": "the worker has not joined yet"}
    with worker((409, busy), (500, busy), (201, {})) as (port, taken):
        programs = started(port, process, monkeypatch)
        part = start_connect(tmp_path / "part", bootstrap="here:1")
    assert part.endpoint == f"http://127.0.0.1:{port}"
    sent = {**PROPERTIES, "history.servers": "here:1"}
    assert taken == [("/connectors/shop/config", sent)] * 3
    (program,) = programs
    assert program.env == {PASSWORD: SECRET}
    assert SECRET not in " ".join(program.argv)
    written = (tmp_path / "part" / "worker.properties").read_text()
    assert "bootstrap.servers=here:1\n" in written
    assert f"listeners=http://127.0.0.1:{port}\n" in written
    assert SECRET not in written
    assert [jar.name for jar in (tmp_path / "part" / "plugins" / "mariadb").iterdir()] == ["debezium-api.jar"]


def test_a_refused_connector_ends_the_worker_and_names_the_reason(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worker((400, {"message": "invalid:\nFATAL: password authentication failed"})) as (port, _):
        started(port, process, monkeypatch)
        with pytest.raises(PartError, match="refuses the connector: invalid: FATAL: password authentication failed"):
            start_connect(tmp_path / "part", bootstrap="here:1")
    assert not process.alive()


def test_a_worker_that_ends_shows_the_end_of_its_log(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "part" / "log.txt").write_text("no memory\n")
    process.stop()
    started(1, process, monkeypatch)
    with pytest.raises(PartError, match="it ended; its log ends with:\nno memory"):
        start_connect(tmp_path / "part", bootstrap="here:1")


def test_a_connector_that_stopped_says_the_first_cause() -> None:
    trace = "org.apache.kafka.ConnectException: first\n\tat x\nCaused by: PSQLException: slot is active\n\tat y"
    runs = {"state": "RUNNING"}
    answers = [
        (404, {}),
        (200, {"connector": runs, "tasks": []}),
        (200, {"connector": runs, "tasks": [{"state": "FAILED", "trace": trace}]}),
        (200, {"connector": {"state": "FAILED"}, "tasks": []}),
    ]
    with worker(*answers) as (port, _):
        found = [connector_problem(f"http://127.0.0.1:{port}", "shop") for _ in answers]
    assert found == ["", "", "PSQLException: slot is active", "it failed"]
    assert connector_problem("http://127.0.0.1:1", "shop") == ""
