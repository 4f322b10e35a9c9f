"""The embedded DynamoDB APIs, both in memory only: moto (the default) and DynamoDB Local.

moto starts in a second. It is slow beyond 2,000 items, because each query copies and sorts the whole table. DynamoDB Local is a
JVM, checks more, and stays fast. It listens on every network interface, because it has no setting for another one.
Clients need a region and any credentials.
"""

from __future__ import annotations

import importlib.util
import signal
import sys
from pathlib import Path

from processor.errors import PartError
from processor.local.cache import ShowProgress
from processor.local.downloads import dynamodb_local_jars, silent
from processor.local.java import JVM_OPTIONS, find_java
from processor.local.processes import start_owned
from processor.local.program import EmbeddedPart, Launch, Process, Program
from processor.local.readiness import LOOPBACK, start_and_wait

MOTO_NAME = "DynamoDB (moto)"
DYNAMODB_LOCAL_NAME = "DynamoDB Local"
MOTO_SERVER = "import sys, moto.server; sys.setrecursionlimit(10_000); moto.server.main(sys.argv[1:])"
"""The parser of moto recurses once per attribute: a write of more than about 150 attributes exceeds Python's usual limit."""
DYNAMODB_LOCAL_CLASS = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"


def start_moto(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a moto server on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError."""
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise PartError(MOTO_NAME, "the package moto[server] is not installed", "pip install 'statestore[local]'")

    def build(chosen: int) -> Program:
        argv = (sys.executable, "-c", MOTO_SERVER, "-H", LOOPBACK, "-p", str(chosen))
        return Program(name=MOTO_NAME, directory=directory, argv=argv, stop_signal=signal.SIGKILL)

    process, chosen = start_and_wait(build, launch, port, _is_ready)
    return EmbeddedPart(name=MOTO_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def start_dynamodb_local(
    directory: Path, *, launch: Launch = start_owned, port: int | None = None, progress: ShowProgress = silent
) -> EmbeddedPart:
    """Start DynamoDB Local on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError."""
    jars = dynamodb_local_jars(progress)

    def build(chosen: int) -> Program:
        java = (find_java(), *JVM_OPTIONS, f"-Dsqlite4java.library.path={jars}", "-cp", f"{jars}/*")
        argv = (*java, DYNAMODB_LOCAL_CLASS, "-inMemory", "-disableTelemetry", "-port", str(chosen))
        return Program(name=DYNAMODB_LOCAL_NAME, directory=directory, argv=argv, stop_signal=signal.SIGKILL)

    process, chosen = start_and_wait(build, launch, port, _is_ready)
    return EmbeddedPart(name=DYNAMODB_LOCAL_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def _is_ready(_: Program, __: Process) -> bool:
    return True  # both servers open their port only when they can answer
