"""The embedded DynamoDB APIs, both in memory only: moto (the default) and DynamoDB Local.

moto starts in a second and is slow beyond 2,000 items: each query copies and sorts the whole table. DynamoDB Local
is a JVM, checks more, and stays fast; it listens on every interface, since it has no setting for another.
Clients need a region and any credentials.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

from processor.errors import PartError
from processor.local.answer import LOOPBACK, start
from processor.local.cache import Progress
from processor.local.jars import dynamodb_local_jars, silent
from processor.local.java import find_java
from processor.local.kept import keep
from processor.local.program import Launch, Part, Process, Program

MOTO = "DynamoDB (moto)"
LOCAL = "DynamoDB Local"
MOTO_SERVER = "import sys, moto.server; sys.setrecursionlimit(10_000); moto.server.main(sys.argv[1:])"
"""moto's parser recurses once an attribute, so that a write of more than about 150 passes Python's usual limit."""
SERVER = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"


def start_moto(directory: Path, *, launch: Launch = keep, port: int | None = None) -> Part:
    """Start a moto server on `port`, if it is free, else on another; `endpoint` is its URL. Raises PartError."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise PartError(MOTO, "the package moto[server] is not installed", "pip install 'statestore[local]'")

    def build(chosen: int) -> Program:
        argv = (sys.executable, "-c", MOTO_SERVER, "-H", LOOPBACK, "-p", str(chosen))
        return Program(name=MOTO, directory=directory, argv=argv, stop_signal=signal.SIGKILL)

    process, chosen = start(build, launch, port, _ready)
    return Part(name=MOTO, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def start_dynamodb_local(
    directory: Path, *, launch: Launch = keep, port: int | None = None, progress: Progress = silent
) -> Part:
    """Start DynamoDB Local on `port`, if it is free, else on another; `endpoint` is its URL. Raises PartError."""
    jars = dynamodb_local_jars(progress)

    def build(chosen: int) -> Program:
        java = (find_java(), "-Xmx512m", f"-Dsqlite4java.library.path={jars}", "-cp", f"{jars}/*")
        argv = (*java, SERVER, "-inMemory", "-disableTelemetry", "-port", str(chosen))
        return Program(name=LOCAL, directory=directory, argv=argv, stop_signal=signal.SIGKILL)

    process, chosen = start(build, launch, port, _ready)
    return Part(name=LOCAL, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def _ready(_: Program, __: Process) -> bool:
    return True  # both open their port when they can answer
