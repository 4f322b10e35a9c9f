"""Kept processes: they end with their owner, be it by close, by an exception, or by kill -9."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import TracebackType

from processor.errors import PartError
from processor.local.program import Program, program_of, start_keeper


class Kept:
    """A process that its keeper ends with us. Its data is taken to be thrown away."""

    def __init__(self, pid: int, keeper: subprocess.Popen[str]) -> None:
        self.pid = pid
        self._keeper = keeper

    def alive(self) -> bool:
        return self._keeper.poll() is None

    def stop(self) -> None:
        _release(self._keeper)
        self._keeper.wait()


class Owner:
    """The owner of kept processes: whatever it launched ends when it is closed, `remove` when it dies unclosed."""

    def __init__(self, remove: Path | None = None) -> None:
        self._remove = remove
        self._lock = threading.Lock()
        self._keepers: list[subprocess.Popen[str]] = []
        self._closed = False

    def launch(self, program: Program) -> Kept:
        """Start a program; its process ends with this owner. Raises PartError."""
        with self._lock:  # a launch that comes after close would be kept by nobody
            if self._closed:
                raise PartError(program.name, "its owner is being closed", "start it again")
            keeper = start_keeper("keep", program, self._remove)
            self._keepers.append(keeper)
        return Kept(program_of(keeper, program), keeper)

    def close(self) -> None:
        """End everything, at the same time, and wait for all of it."""
        with self._lock:
            self._closed = True
            for keeper in self._keepers:
                _release(keeper)
        for keeper in self._keepers:
            keeper.wait()

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def keep(program: Program) -> Kept:
    """Start a program that ends with this process."""
    keeper = start_keeper("keep", program)
    return Kept(program_of(keeper, program), keeper)


def _release(keeper: subprocess.Popen[str]) -> None:
    """Tell a keeper to end its process."""
    if keeper.stdin and not keeper.stdin.closed:
        keeper.stdin.close()
