"""The settings of a command; the process below it that sent a request, and the executor of that process."""

import json
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil

from processor.environment.settings.settings import Settings, setting_flags
from tests.faulty.proxy import Request

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"


def write_settings(settings: Settings, file: Path) -> list[str]:
    """Writes a settings file for a command, and next to it the registry's address with its password; returns its arguments."""
    secret = file.with_suffix(".registry")
    secret.write_text(settings.registry)
    shown = replace(settings, registry=f"file:{secret.absolute()}")
    file.write_text("".join(f"{name} = {json.dumps(getattr(shown, name))}\n" for name, _ in setting_flags()))
    return ["--settings", str(file)]


def sender_of(request: Request, process: subprocess.Popen[bytes]) -> psutil.Process:
    """The process below `process` that sent a request: it has the other end of the connection. Raises LookupError if none has.

    Both ports count: the system may give one local port to two connections that go to different servers.
    """
    ends = (request.port, request.proxy_port)
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.Error):
            if any(c.raddr and (c.laddr.port, c.raddr.port) == ends for c in child.net_connections("tcp")):
                return child
    raise LookupError(f"no process below {process.pid} has a connection from port {request.port}")


def executor_of(worker: psutil.Process) -> psutil.Process:
    """The Spark executor of a Python worker."""
    return next(parent for parent in worker.parents() if EXECUTOR in parent.cmdline())
