"""The program of one embedded part: its process, its endpoint, the open folder where it may have to work, and its start on a free
port.

`servers.py` builds a `Program` and gives it to a `Launch`, which starts the process through `reaper.py`. Owned processes end with
their owner, which may end by `close`, by an exception or by kill -9. Detached processes stay when the command that started them
ends, and a later command finds them in the state file.

An open folder is where a program that root starts as another user may enter, when its own directory is closed to that user.
It is in the system's place for temporary files, under a random name. Any user may enter it, and only root may
write to it. The reaper removes the folder when the owner was killed; else the owner does, or `local down`.

The state file has the process and the endpoint of each shared part. Only its owner can read the file, because the endpoint of
Postgres has a password. A launch writes its process at once, without an endpoint. So after an interrupted command the next
command still knows every process.
"""

from __future__ import annotations

import contextlib
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
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from threading import Lock
from types import TracebackType
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


class OwnedProcess:
    """A process that its reaper ends when this process ends. Its data may be lost."""

    def __init__(self, pid: int, reaper: subprocess.Popen[str], open_folder: Path | None) -> None:
        self.pid = pid
        self._reaper = reaper
        self._open_folder = open_folder

    def alive(self) -> bool:
        return self._reaper.poll() is None

    def stop(self) -> None:
        _release(self._reaper)
        _wait_for(self._reaper, self._open_folder)


class Owner:
    """The owner of processes. `close` ends every process that the owner launched.

    If the owner dies before `close`, the reapers end the processes and delete the directory `remove`.
    """

    def __init__(self, remove: Path | None = None) -> None:
        self._remove = remove
        self._lock = threading.Lock()
        self._reapers: list[tuple[subprocess.Popen[str], Path | None]] = []
        self._closed = False

    def launch(self, program: Program) -> OwnedProcess:
        """Start a program; its process ends with this owner. Raises PartError."""
        with self._lock:  # no thread would end a process that is launched after close
            if self._closed:
                remove_folder(program.open_folder)
                raise PartError(program.name, "its owner is being closed", "start it again")
            reaper = start_reaper("owned", program, self._remove)
            self._reapers.append((reaper, program.open_folder))
        return OwnedProcess(read_pid(reaper, program), reaper, program.open_folder)

    def close(self) -> None:
        """End all processes at the same time, and wait for the last one."""
        with self._lock:
            self._closed = True
            for reaper, _ in self._reapers:
                _release(reaper)
        for reaper, open_folder in self._reapers:
            _wait_for(reaper, open_folder)

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def start_owned(program: Program) -> OwnedProcess:
    """Start a program that ends with this process."""
    owner = Owner()
    try:
        return owner.launch(program)
    except PartError:
        owner.close()
        raise


def _release(reaper: subprocess.Popen[str]) -> None:
    """Make the reaper end its process: one byte. The input stays open, for a closed input says that its owner is gone."""
    if reaper.stdin and not reaper.stdin.closed:
        with contextlib.suppress(BrokenPipeError):  # the reaper has ended
            os.write(reaper.stdin.fileno(), b"x")


def _wait_for(reaper: subprocess.Popen[str], open_folder: Path | None) -> None:
    """Wait for the end of a released reaper, and remove what its process leaves."""
    reaper.wait()
    if reaper.stdin:
        reaper.stdin.close()
    remove_folder(open_folder)


STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DetachedProcess:
    """A process without an owner. Its id and its start time identify it."""

    pid: int
    started: str
    stop_signal: int

    def alive(self) -> bool:
        return started_at(self.pid) == self.started

    def stop(self) -> None:
        self._end(self.stop_signal, os.kill)
        self._end(signal.SIGKILL, os.killpg)

    def _end(self, number: int, send: Callable[[int, int], None]) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                send(self.pid, number)
        while self.alive() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)


def start_detached(program: Program) -> DetachedProcess:
    """Start a program that stays when this process ends. Raises PartError."""
    reaper = start_reaper("detached", program)
    pid = read_pid(reaper, program)
    reaper.wait()
    if reaper.stdin:
        reaper.stdin.close()
    return DetachedProcess(pid=pid, started=started_at(pid) or "", stop_signal=program.stop_signal)


def started_at(pid: int) -> str | None:
    """The start time of the process as the system writes it. None if the process ended, whether or not its parent collected it.

    The id alone does not identify a process, because the system uses ids again; the id and the start time do.
    """
    if Path("/proc/self/stat").exists():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        ended = fields[0] in "ZX" and int(fields[17]) <= 1  # a process holds its ports until its last thread ends
        return None if ended else fields[19]
    listing = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = listing.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()


LOCAL_DIR = Path(".statestore/local")
"""The directory of the shared parts, if no other is given; relative to the working directory."""
STATE_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartProcess:
    """The process of one part; its endpoint is None until the part answers."""

    process: DetachedProcess
    endpoint: str | None

    @property
    def port(self) -> int | None:
        """The port of the endpoint, which is a URL or host:port."""
        return int(self.endpoint.removesuffix("/postgres").rpartition(":")[2]) if self.endpoint else None


class PartsState:
    """The processes by part name. Every change is on disk when its method returns. Raises PartError for an unreadable file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._stopping = False
        self._parts = _read_state(path)

    @property
    def parts(self) -> dict[str, PartProcess]:
        return dict(self._parts)

    def launch(self, part: str) -> Launch:
        """A launch that starts a detached process and writes it to the file."""

        def launch(program: Program) -> DetachedProcess:
            process = start_detached(program)
            with self._lock:
                before = self._parts.get(part)
                self._put(part, PartProcess(process=process, endpoint=before.endpoint if before else None))
                if self._stopping:
                    process.stop()
            return process

        return launch

    def set_endpoint(self, part: str, endpoint: str) -> None:
        """Write the endpoint of a launched part."""
        with self._lock:
            self._put(part, replace(self._parts[part], endpoint=endpoint))

    def stop(self, names: Iterable[str]) -> None:
        """Stop these parts, and every part that is launched later."""
        with self._lock:
            self._stopping = True
            for part in set(names) & set(self._parts):
                self._parts[part].process.stop()

    def clear(self) -> None:
        """Forget all parts."""
        self._parts = {}
        self._path.unlink(missing_ok=True)

    def _put(self, part: str, process: PartProcess) -> None:
        self._parts[part] = process
        parts = {name: asdict(known.process) | {"endpoint": known.endpoint} for name, known in self._parts.items()}
        new_file = self._path.with_suffix(".new")
        new_file.unlink(missing_ok=True)
        new_file.touch(mode=0o600)
        new_file.write_text(json.dumps({"version": STATE_VERSION, "parts": parts}, indent=2) + "\n")
        new_file.replace(self._path)


def _read_state(path: Path) -> dict[str, PartProcess]:
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text())
        return {name: _part_process(fields) for name, fields in content["parts"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        cure = "end their processes by hand and remove the file"
        raise PartError("The state file of the embedded parts", f"{path} cannot be read ({error!r})", cure) from error


def _part_process(fields: dict[str, object]) -> PartProcess:
    process = DetachedProcess(
        pid=int(str(fields["pid"])), started=str(fields["started"]), stop_signal=int(str(fields["stop_signal"]))
    )
    endpoint = fields["endpoint"]
    return PartProcess(process=process, endpoint=None if endpoint is None else SecretUrl(endpoint))
