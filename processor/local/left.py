"""Left processes: they stay when the command that started them has ended, and are found again by a later one."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from processor.local.program import Program, program_of, start_keeper

LOOK_SECONDS = 0.03
STOP_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A process without an owner, found again by id and start time."""

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
            time.sleep(LOOK_SECONDS)


def leave(program: Program) -> Left:
    """Start a program that stays when this process ends."""
    keeper = start_keeper("leave", program)
    pid = program_of(keeper, program)
    keeper.wait()
    if keeper.stdin:
        keeper.stdin.close()
    return Left(pid=pid, started=started_at(pid) or "", stop_signal=program.stop_signal)


def started_at(pid: int) -> str | None:
    """When the process started, as the system spells it; None if it is gone, or ended and not yet collected.

    Together with the id this names a process for good: ids are given again.
    """
    if Path("/proc/self/stat").exists():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        ended = fields[0] in "ZX" and int(fields[17]) <= 1  # while a thread of it still ends, it holds its ports
        return None if ended else fields[19]
    listing = subprocess.run(["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    state, _, started = listing.stdout.strip().partition(" ")
    return None if not state or state.startswith("Z") else started.strip()
