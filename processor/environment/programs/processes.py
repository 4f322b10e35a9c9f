"""The processes of embedded parts. Owned processes end with their owner, which may end by `close`, by an exception or by kill -9.
Detached processes stay when the command that started them ends, and a later command finds them in the state file.

The state file has the process and the endpoint of each shared part. Only its owner can read the file, because the endpoint of
Postgres has a password. A launch writes its process at once, without an endpoint. So after an interrupted command the next
command still knows every process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from types import TracebackType

from processor.environment.programs.program import (
    POLL_SECONDS,
    Launch,
    Program,
    SecretUrl,
    read_pid,
    remove_folder,
    start_reaper,
)
from processor.errors import PartError


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
        with self._lock:  # nobody would end a process that is launched after close
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
