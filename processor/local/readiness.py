"""Start an embedded part on a free port, and wait until it answers."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

from processor.errors import PartError
from processor.local.program import POLL_SECONDS, Launch, Process, Program, log_tail

LOOPBACK = "127.0.0.1"
PORTS = range(10_000, 30_000)
"""The ports of parts: below those that systems give to clients, so that no client takes a port before its part."""
START_SECONDS = 120.0  # OpenSearch needs 10 s of an idle machine
START_ATTEMPTS = 3  # another program may take the free port before the part binds it

IsReady = Callable[[Program, Process], bool]


def free_port(wanted: int | None = None) -> int:
    """A free loopback port: `wanted` if it is free, else another one. Raises PartError."""
    for port in (*([wanted] if wanted else []), *random.SystemRandom().sample(PORTS, 100)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise PartError("a port", "the system gives no loopback port", "close programs that hold many of them")


def accepts_connections(port: int) -> bool:
    """Whether a program accepts connections at a loopback port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((LOOPBACK, port)) == 0


def start_and_wait(
    build: Callable[[int], Program], launch: Launch, port: int | None, is_ready: IsReady
) -> tuple[Process, int]:
    """Build the program for a free port, start it, and wait until it is ready. Returns the process and its port.

    The port is `port` if it is free, else another one. Raises PartError, with the end of the log, if the program ends or does not
    answer; no process of it runs then.
    """
    for attempt in range(1, START_ATTEMPTS + 1):
        chosen = free_port(port if attempt == 1 else None)
        program = build(chosen)
        process, problem = _start_once(program, launch, chosen, is_ready)
        if not problem:
            return process, chosen
        if "in use" not in log_text(program.log):
            break
    raise PartError(program.name, f"{problem}; its log ends with:\n{log_tail(program.log)}", "read these lines")


def _start_once(program: Program, launch: Launch, port: int, is_ready: IsReady) -> tuple[Process, str]:
    """The process and its problem; with a problem the process is stopped, without one the text is empty."""
    program.directory.mkdir(parents=True, exist_ok=True)
    program.log.unlink(missing_ok=True)
    process = launch(program)
    try:
        problem = _wait(process, lambda: accepts_connections(port) and is_ready(program, process))
    except BaseException:
        process.stop()
        raise
    if problem:
        process.stop()
    return process, problem


def _wait(process: Process, answers: Callable[[], bool]) -> str:
    """Empty when the part answers, else its problem."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not process.alive():
            return "it ended before it answered"
        if answers():
            return ""
        time.sleep(POLL_SECONDS)
    return f"it did not answer within {START_SECONDS:.0f} seconds"


def log_text(log: Path) -> str:
    """The text that a part has written to its log so far; empty without a log."""
    return log.read_text(errors="replace") if log.exists() else ""
