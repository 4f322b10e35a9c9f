"""The operators' console over the shared parts, as a process on loopback: it takes their addresses when it starts."""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path
from typing import Final

from processor.errors import PartError
from processor.local.processes import start_owned
from processor.local.program import EmbeddedPart, Launch, Process, Program
from processor.local.readiness import LOOPBACK, start_and_wait

CONSOLE_NAME: Final = "the console"
CONSOLE_PORT: Final = 8290
"""The usual port of a console."""
PACKAGES: Final = ("uvicorn", "starlette", "jinja2")
VERB: Final = "import sys; from processor.cli.main import main; sys.exit(main())"


def start_console(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a console over the parts in the parent of `directory`, on `port`, else CONSOLE_PORT, if that is free; `endpoint` is
    its URL. Raises PartError."""
    if any(importlib.util.find_spec(package) is None for package in PACKAGES):
        raise PartError(CONSOLE_NAME, "its packages are not installed", "pip install 'statestore[console]'")

    def build(chosen: int) -> Program:
        parts = str(directory.resolve().parent)
        argv = (sys.executable, "-c", VERB, "console", "--embedded", "--local-dir", parts, "--port", str(chosen))
        return Program(name=CONSOLE_NAME, directory=directory, argv=argv, stop_signal=signal.SIGTERM)

    process, chosen = start_and_wait(build, launch, port or CONSOLE_PORT, _is_ready)
    return EmbeddedPart(name=CONSOLE_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def _is_ready(_: Program, __: Process) -> bool:
    return True  # the console opens its port only when it can answer
