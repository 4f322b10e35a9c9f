"""Starts a PostgreSQL or MariaDB server of the machine for captures, in a folder of its own. Under root it runs as `nobody`."""

import os
import pwd
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE = 120.0
READY = ("ready to accept connections", "ready for connections")


@contextmanager
def postgres(programs: Path, folder: Path) -> Iterator[int]:
    """A server with `wal_level=logical` that trusts every local user; gives its port."""
    _own(folder)
    data, port = folder / "data", _free_port()
    login = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    subprocess.run([programs / "initdb", "-D", data, *login], check=True, user=_user(), stdout=subprocess.DEVNULL)
    settings = {
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": "",
        "wal_level": "logical",
        "fsync": "off",
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    with _serve([str(programs / "postgres"), "-D", str(data), *words], folder / "log", signal.SIGINT):
        yield port


@contextmanager
def mariadb(folder: Path, announced: str = "5.7.19") -> Iterator[int]:
    """A server with a row-based binary log, whose user `debezium` (password `debezium`) may do anything; gives its port.
    `announced`: its version as clients see it. MariaDB 10 would be too new for the statements of Debezium for MySQL 8."""
    _own(folder)
    data, port = folder / "data", _free_port()
    setup = folder / "setup.sql"
    setup.write_text("create user debezium identified by 'debezium';\ngrant all on *.* to debezium;\n")
    subprocess.run(
        [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
        ],
        check=True,
        user=_user(),
        stdout=subprocess.DEVNULL,
    )
    settings = {
        "datadir": data,
        "port": port,
        "bind-address": "127.0.0.1",
        "socket": folder / "socket",
        "pid-file": folder / "pid",
        "server-id": 1,
        "log-bin": "binlog",
        "binlog-format": "ROW",
        "binlog-row-image": "FULL",
        "default-time-zone": "+00:00",
        "character-set-server": "utf8mb4",
        "init-file": setup,
        "sql-mode": "",
        "version": announced,
    }
    words = [f"--{name}={value}" for name, value in settings.items()]
    with _serve(["mariadbd", "--no-defaults", *words], folder / "log"):
        yield port


@contextmanager
def _serve(argv: list[str], log: Path, stop: signal.Signals = signal.SIGTERM) -> Iterator[None]:
    with open(log, "wb") as output:
        server = subprocess.Popen(argv, user=_user(), stdout=output, stderr=output)
    try:
        end = time.monotonic() + DEADLINE
        while not any(words in log.read_text(errors="replace") for words in READY):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server does not start: {log.read_text(errors='replace')[-2000:]}")
            time.sleep(0.1)
        yield
    finally:
        server.send_signal(stop)
        server.wait(DEADLINE)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _user() -> str | None:
    return "nobody" if os.geteuid() == 0 else None


def _own(folder: Path) -> None:
    folder.mkdir()
    if name := _user():
        user = pwd.getpwnam(name)
        os.chown(folder, user.pw_uid, user.pw_gid)
