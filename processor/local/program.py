"""What a part is while it runs: a program, its process, and the endpoint at which it answers.

Each part's module builds a `Program` and hands it to a `Launch`: `kept.keep` and `kept.Owner.launch` start a process
that ends with its owner, however that ends; `left.leave` one that stays. Both start it through `keeper.py`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from processor.errors import PartError

KEEPER = Path(__file__).with_name("keeper.py")
TAIL_LINES = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run as a part. `stop_signal` ends it with its data whole, `drop_signal` at once, data thrown away."""

    name: str
    directory: Path
    argv: tuple[str, ...]
    before: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: int = signal.SIGTERM
    drop_signal: int = signal.SIGKILL
    user: tuple[int, int] | None = None
    reach: bool = False

    @property
    def log(self) -> Path:
        return self.directory / "log.txt"


class Process(Protocol):
    """A running program."""

    @property
    def pid(self) -> int: ...
    def alive(self) -> bool: ...
    def stop(self) -> None: ...


Launch = Callable[[Program], Process]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part that answers at `endpoint`: host:port for Kafka, a URL for the others."""

    name: str
    endpoint: str
    process: Process

    def alive(self) -> bool:
        return self.process.alive()

    def stop(self) -> None:
        """End the process and wait for it; nothing happens if it has ended."""
        self.process.stop()


def start_keeper(mode: str, program: Program, remove: Path | None = None) -> subprocess.Popen[str]:
    """Start the keeper (`mode`: keep or leave) that will start the program."""
    spec = {
        "argv": program.argv,
        "before": program.before,
        "directory": str(program.directory),
        "log": str(program.log),
        "user": program.user,
        "reach": program.reach,
        "drop_signal": int(program.drop_signal),
        "owner": os.getpid(),
        "remove": str(remove) if remove else None,
    }
    program.directory.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(KEEPER), mode, json.dumps(spec)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **program.env},
        start_new_session=True,  # Ctrl-C is for the owner, which then closes in order
    )


def program_of(keeper: subprocess.Popen[str], program: Program) -> int:
    """The process id of the program that a keeper has started, once it has. Raises PartError if it could not."""
    assert keeper.stdout is not None
    answer: dict[str, Any] = json.loads(keeper.stdout.readline() or '{"error": "its keeper did not start"}')
    if "pid" in answer:
        keeper.stdout.close()
        return int(answer["pid"])
    keeper.communicate()
    raise PartError(program.name, f"{answer['error']}\n{tail(program.log)}", "see the lines above")


def tail(log: Path) -> str:
    """The last lines of a part's log, for an error message: the log goes with its directory."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return "\n".join(lines[-TAIL_LINES:])
