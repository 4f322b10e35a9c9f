"""Starting a part on a free port, and waiting until it answers."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

from processor.errors import PartError
from processor.local.program import Launch, Process, Program, tail

LOOPBACK = "127.0.0.1"
LOOK_SECONDS = 0.03
START_SECONDS = 60.0
ATTEMPTS = 3  # a free port may be taken between our look and the part's bind

Ready = Callable[[Program, Process], bool]


def free_port(wanted: int | None = None) -> int:
    """A loopback port that nobody listens on: `wanted`, if it is free."""
    for port in (wanted or 0, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise PartError("a port", "the system gives no loopback port", "close programs that hold many of them")


def opens(port: int) -> bool:
    """Whether something accepts connections at a loopback port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((LOOPBACK, port)) == 0


def start(build: Callable[[int], Program], launch: Launch, port: int | None, ready: Ready) -> tuple[Process, int]:
    """Build the program for a free port (`port`, if free), start it, and wait until it is `ready` at that port.

    Raises PartError, with the end of the part's log, when it ends or stays silent; nothing is left running then.
    """
    for attempt in range(1, ATTEMPTS + 1):
        chosen = free_port(port if attempt == 1 else None)
        program = build(chosen)
        process, trouble = _start_once(program, launch, chosen, ready)
        if not trouble:
            return process, chosen
        if "in use" not in said(program.log):
            break
    raise PartError(program.name, f"{trouble}; the end of its log:\n{tail(program.log)}", "see those lines")


def _start_once(program: Program, launch: Launch, port: int, ready: Ready) -> tuple[Process, str]:
    """The process, and what is wrong with it; if anything is, it has been stopped."""
    program.directory.mkdir(parents=True, exist_ok=True)
    program.log.unlink(missing_ok=True)
    process = launch(program)
    try:
        trouble = _wait(process, lambda: opens(port) and ready(program, process))
    except BaseException:
        process.stop()
        raise
    if trouble:
        process.stop()
    return process, trouble


def _wait(process: Process, answers: Callable[[], bool]) -> str:
    """Empty when the part answers, else what happened."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not process.alive():
            return "it ended at once"
        if answers():
            return ""
        time.sleep(LOOK_SECONDS)
    return f"it did not answer within {START_SECONDS:.0f} seconds"


def said(log: Path) -> str:
    """All that a part has written so far."""
    return log.read_text(errors="replace") if log.exists() else ""
