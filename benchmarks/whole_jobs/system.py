"""A system that runs a whole job: its processes, the topics of an embedded broker, and state that survives the processes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import psutil

from benchmarks.job import below, descendants, seconds_of
from processor.errors import StatestoreError

Files = Mapping[str, str]
"""A directory of definitions: name -> text."""


class System(Protocol):
    """A system with an empty state. `ordered`: its lists have the product's order."""

    title: str
    ordered: bool
    servers: str
    """The address of the broker."""

    def start(self, files: Files) -> None:
        """Starts the job. A start after `kill` goes on with the state that is there."""

    def add(self, files: Files) -> None:
        """Adds the products that `files` has more than before, while the job runs."""

    def kill(self) -> None:
        """Ends all processes of the job by SIGKILL. What stores its state and its topics stays."""

    def state_bytes(self) -> int:
        """The bytes of the state on the disk, without the topics."""

    def check(self) -> None:
        """Raises StatestoreError with the last words of the job, if the job has ended by itself."""


def cpu_seconds() -> float:
    """CPU seconds of all processes below this one, with their ended children, without the broker."""
    brokers = {pid for pid in descendants() if _is_broker(pid)}
    return seconds_of(descendants() - below(brokers))


def _is_broker(pid: int) -> bool:
    try:
        return "kafka.Kafka" in psutil.Process(pid).cmdline()
    except psutil.Error:  # it has ended, or nobody has collected it
        return False


def check_alive(ended: int | None, log: Path) -> None:
    """Raises StatestoreError with the end of the log, if there is an exit status."""
    if ended is not None:
        words = log.read_text(encoding="utf-8", errors="replace")[-4000:]
        raise StatestoreError(f"the job ended by itself with {ended}; its log ends with:\n{words}")
