"""Detached processes: they stay when the command that started them ends, and a later command finds them again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from processor.local.program import POLL_SECONDS, Program, read_pid, start_reaper

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
