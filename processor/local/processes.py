"""Owned processes: they end with their owner, which may end by `close`, by an exception or by kill -9."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from pathlib import Path
from types import TracebackType

from processor.errors import PartError
from processor.local.open_folder import remove_folder
from processor.local.program import Program, read_pid, start_reaper


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
