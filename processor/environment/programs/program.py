"""The program of one embedded part: its process, its endpoint, the open folder where it may have to work, and its start on a free
port.

The module of each embedded part builds a `Program` and gives it to a `Launch`: `processes.py` has one whose process ends with its
owner, and one whose process stays. Both start the process through `reaper.py`.

An open folder is where a program that root starts as another user may enter, when its own directory is closed to that user.
It is in the system's place for temporary files, under a name that nobody can guess. Any user may enter it, and only root may
write to it. The reaper removes the folder when the owner was killed; else the owner does, or `local down`.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from processor.errors import PartError

REAPER = Path(__file__).with_name("reaper.py")
POLL_SECONDS = 0.03
TAIL_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program of an embedded part."""

    name: str
    directory: Path
    argv: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Runs to its end before `argv` starts."""
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    """Ends the program and keeps its data whole."""
    drop_signal: int = signal.SIGKILL
    """Ends the program at once; its data is lost."""
    user: tuple[int, int] | None = None
    """The user and the group that run the program; None: ours."""
    open_folder: Path | None = None
    """Where the program works and has its data, because that user may not enter `directory`."""

    @property
    def log(self) -> Path:
        return self.directory / "log.txt"


class SecretUrl(str):
    """A URL with a password, which its representation hides: in tracebacks, and in the reports of failed tests."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(re.sub(r"(?<=:)[^:@/]+(?=@)", "***", str(self)))


class Process(Protocol):
    """A running program."""

    @property
    def pid(self) -> int: ...
    def alive(self) -> bool: ...
    def stop(self) -> None: ...


Launch = Callable[[Program], Process]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPart:
    """An embedded part that answers at `endpoint`: host:port for Kafka, a URL for the others."""

    name: str
    endpoint: str
    process: Process

    def alive(self) -> bool:
        return self.process.alive()

    def stop(self) -> None:
        """End the process and wait for its end. Does nothing if the process has ended."""
        self.process.stop()


def start_reaper(mode: str, program: Program, remove: Path | None = None) -> subprocess.Popen[str]:
    """Start the reaper (`mode`: owned or detached) that starts the program."""
    spec = {
        "argv": program.argv,
        "before": program.before,
        "directory": str(program.open_folder or program.directory),
        "log": str(program.log),
        "user": program.user,
        "drop_signal": int(program.drop_signal),
        "owner": os.getpid(),
        "remove": [str(path) for path in (remove, program.open_folder) if path],
    }
    program.directory.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(REAPER), mode, json.dumps(spec)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **program.env},
        start_new_session=True,  # Ctrl-C reaches the owner only, which then ends its parts in order
    )


def read_pid(reaper: subprocess.Popen[str], program: Program) -> int:
    """Wait until the reaper has started the program, and return the process id. Raises PartError if the start failed."""
    assert reaper.stdout is not None
    answer: dict[str, Any] = json.loads(reaper.stdout.readline() or '{"error": "its reaper did not start"}')
    if "pid" in answer:
        reaper.stdout.close()
        return int(answer["pid"])
    reaper.communicate()
    raise PartError(program.name, f"{answer['error']}\n{log_tail(program.log)}", "read the lines above")


def log_tail(log: Path) -> str:
    """The last lines of a log, for an error message: the log is removed with its directory."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-TAIL_LINES:])


PREFIX = "statestore-open-"
DATA = "data"
"""The name of a link in the part's directory. The link leads to the data in the open folder, and so finds the folder again."""


def is_open(path: Path) -> bool:
    """Whether any user may enter the directory: its own mode allows it, and the modes of all folders above it."""
    path = path.resolve()
    return all(folder.stat().st_mode & 0o001 for folder in (path, *path.parents))


def find_open_folder(directory: Path) -> Path | None:
    """The open folder of a part's directory; None where the part has its data in the directory, or has none.

    Another user may have planted the link. So only a folder of this user, with our prefix, counts as an open folder.
    """
    link = directory / DATA
    folder = link.readlink().parent if link.is_symlink() else None
    if folder is None or not folder.name.startswith(PREFIX) or not folder.is_dir():
        return None
    return folder if folder.lstat().st_uid == os.geteuid() else None


def make_open_folder(part: str, fill: Callable[[Path], None]) -> Path:
    """Makes a folder that any user may enter, and fills it; an error removes it again. Raises PartError."""
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_temporary_place(part)))
    try:
        folder.chmod(0o755)
        fill(folder)
    except BaseException:
        remove_folder(folder)
        raise
    return folder


def share(directory: Path) -> None:
    """Lets any user read the files of a directory, and run its programs."""
    for folder, _, files in os.walk(directory):
        for path in (Path(folder), *(Path(folder, name) for name in files)):
            if not path.is_symlink():
                mode = path.stat().st_mode
                path.chmod(mode | (0o555 if mode & 0o100 else 0o444))


def remove_folder(folder: Path | None) -> None:
    """Removes a folder, if there is one."""
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _temporary_place(part: str) -> Path:
    """The first place for temporary files that any user may enter, and where programs may run."""
    places = [Path(place).resolve() for place in (tempfile.gettempdir(), "/tmp", "/var/tmp") if Path(place).is_dir()]
    for place in places:
        if is_open(place) and not os.statvfs(place).f_flag & getattr(os, "ST_NOEXEC", 0):
            return place
    names = ", ".join(map(str, dict.fromkeys(places)))
    cure = "open one of them to all users, or start as another user than root"
    raise PartError(part, f"root starts it as another user, and that user can run no program in {names}", cure)


LOOPBACK = "127.0.0.1"
PORTS = range(10_000, 30_000)
"""The ports of parts: below those that systems give to clients, so that no client takes a port before its part."""
START_SECONDS = 120.0  # OpenSearch needs 10 s of an idle machine
START_ATTEMPTS = 3  # another program may take the free port before the part binds it

IsReady = Callable[[Program, Process], bool]


def free_port(wanted: int | None = None) -> int:
    """A free loopback port: `wanted` if it is free, else another one. Raises PartError."""
    for port in (*([wanted] if wanted else []), *random.SystemRandom().sample(PORTS, 100)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise PartError("a port", "the system gives no loopback port", "close programs that hold many of them")


def accepts_connections(port: int) -> bool:
    """Whether a program accepts connections at a loopback port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((LOOPBACK, port)) == 0


def start_and_wait(
    build: Callable[[int], Program], launch: Launch, port: int | None, is_ready: IsReady
) -> tuple[Process, int]:
    """Build the program for a free port, start it, and wait until it is ready. Returns the process and its port.

    The port is `port` if it is free, else another one. Raises PartError, with the end of the log, if the program ends or does not
    answer; no process of it runs then.
    """
    for attempt in range(1, START_ATTEMPTS + 1):
        chosen = free_port(port if attempt == 1 else None)
        program = build(chosen)
        process, problem = _start_once(program, launch, chosen, is_ready)
        if not problem:
            return process, chosen
        if "in use" not in log_text(program.log):
            break
    raise PartError(program.name, f"{problem}; its log ends with:\n{log_tail(program.log)}", "read these lines")


def _start_once(program: Program, launch: Launch, port: int, is_ready: IsReady) -> tuple[Process, str]:
    """The process and its problem; with a problem the process is stopped, without one the text is empty."""
    program.directory.mkdir(parents=True, exist_ok=True)
    program.log.unlink(missing_ok=True)
    process = launch(program)
    try:
        problem = _wait(process, lambda: accepts_connections(port) and is_ready(program, process))
    except BaseException:
        process.stop()
        raise
    if problem:
        process.stop()
    return process, problem


def _wait(process: Process, answers: Callable[[], bool]) -> str:
    """Empty when the part answers, else its problem."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not process.alive():
            return "it ended before it answered"
        if answers():
            return ""
        time.sleep(POLL_SECONDS)
    return f"it did not answer within {START_SECONDS:.0f} seconds"


def log_text(log: Path) -> str:
    """The text that a part has written to its log so far; empty without a log."""
    return log.read_text(errors="replace") if log.exists() else ""
