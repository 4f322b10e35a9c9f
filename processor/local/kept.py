"""Kept processes: they end with their owner, be it by close, by an exception, or by kill -9."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import TracebackType

from processor.errors import PartError
from processor.local.program import Program, run_keeper


class Kept:
    """A process that its keeper ends with us. Its data is taken to be thrown away."""

    def __init__(self, pid: int, keeper: subprocess.Popen[str]) -> None:
        self.pid = pid
        self._keeper = keeper

    def alive(self) -> bool:
        return self._keeper.poll() is None

    def release(self) -> None:
        """Tell the keeper to end the process; `stop` also waits."""
        if self._keeper.stdin and not self._keeper.stdin.closed:
            self._keeper.stdin.close()

    def stop(self) -> None:
        self.release()
        self._keeper.wait()


class Owner:
    """The owner of kept processes: whatever it launched ends when it is closed, `remove` when it dies unclosed."""

    def __init__(self, remove: Path | None = None) -> None:
        self._remove = remove
        self._lock = threading.Lock()
        self._kept: list[Kept] = []
        self._closed = False

    def launch(self, program: Program) -> Kept:
        with self._lock:  # a launch that comes after close would be kept by nobody
            if self._closed:
                raise PartError(program.name, "its owner is being closed", "start it again")
            kept = Kept(*run_keeper("keep", program, self._remove))
            self._kept.append(kept)
            return kept

    def close(self) -> None:
        """End everything, at the same time, and wait for all of it."""
        with self._lock:
            self._closed = True
            for kept in self._kept:
                kept.release()
        for kept in self._kept:
            kept.stop()

    def __enter__(self) -> Owner:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def keep(program: Program) -> Kept:
    """Start a program that ends with this process."""
    return Kept(*run_keeper("keep", program, None))
