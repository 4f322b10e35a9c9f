"""A command in a process of its own, and the processes below it: which of them asks, and which executor it belongs to."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.faulty.proxy import Request

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


@contextmanager
def running(words: list[str], log: Path, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a group of its own, whose end nothing of it outlives; its stderr goes to a file."""
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=stderr, start_new_session=True, env={**os.environ, **environment}
        )
    family: list[psutil.Process] = []
    try:
        yield process
        with suppress(psutil.NoSuchProcess):
            family = psutil.Process(process.pid).children(recursive=True)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        _, left = psutil.wait_procs(family, timeout=30)
        for orphan in left:
            orphan.kill()


def asker(request: Request, process: subprocess.Popen[bytes]) -> psutil.Process:
    """The process, of those below `process`, that made a request: it holds the other end of the connection."""
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if any(c.laddr.port == request.port for c in child.net_connections("tcp")):
                return child
    raise LookupError(f"no process below {process.pid} has a connection from port {request.port}")


def executor_of(worker: psutil.Process) -> psutil.Process:
    """The Spark executor that a Python worker belongs to."""
    return next(parent for parent in worker.parents() if EXECUTOR in parent.cmdline())
