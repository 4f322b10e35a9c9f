"""The embedded OpenSearch: one real node on loopback, with its data in its directory. It asks for no password.

Java runs its main class from source, so a JRE without a compiler is not enough.
"""

from __future__ import annotations

import signal
from pathlib import Path

from processor.local.cache import ShowProgress
from processor.local.downloads import opensearch_jars, silent
from processor.local.java import find_java
from processor.local.processes import start_owned
from processor.local.program import EmbeddedPart, Launch, Process, Program
from processor.local.readiness import LOOPBACK, start_and_wait

OPENSEARCH_NAME = "OpenSearch"
SOURCE = Path(__file__).with_name("SearchNode.java")
JVM_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN")


def start_opensearch(
    directory: Path, *, launch: Launch = start_owned, port: int | None = None, progress: ShowProgress = silent
) -> EmbeddedPart:
    """Start a node on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError.

    The node serves the data that an earlier node wrote to the directory.
    """
    jars = opensearch_jars(progress)

    def build(chosen: int) -> Program:
        argv = (find_java(), *JVM_OPTIONS, "-cp", f"{jars}/*", str(SOURCE), str(directory.resolve()), str(chosen))
        return Program(name=OPENSEARCH_NAME, directory=directory, argv=argv, stop_signal=signal.SIGTERM)

    process, chosen = start_and_wait(build, launch, port, _is_ready)
    return EmbeddedPart(name=OPENSEARCH_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def _is_ready(_: Program, __: Process) -> bool:
    return True  # the node opens its port only when it has a master, which is itself
