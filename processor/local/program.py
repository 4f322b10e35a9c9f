"""The program, the process and the endpoint of one embedded part.

The module of each embedded part builds a `Program` and gives it to a `Launch`. `owned_process` starts a process that ends
with its owner, however the owner ends. `detached_process` starts a process that stays. Both start the process through
`reaper.py`.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
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
    """The program of an embedded part.

    `before` runs to its end before `argv` starts. `stop_signal` ends the program and keeps its data whole; `drop_signal`
    ends the program at once, and its data is lost. `user`: the user that runs the program, None for ours. `open_folder`: where
    the program works and has its data, because that user may not enter `directory`.
    """

    name: str
    directory: Path
    argv: tuple[str, ...]
    before: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    drop_signal: int = signal.SIGKILL
    user: tuple[int, int] | None = None
    open_folder: Path | None = None

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
