"""The embedded servers: a Kafka broker, the DynamoDB APIs, an OpenSearch node, and the operators' console as a process.

Promises: each is a process without Docker that works in its own directory, and `start_*` return when it answers. Each listens on
loopback; DynamoDB Local alone listens on every interface. Kafka and OpenSearch keep their data in the directory.
Does not: start Postgres (`postgres.py`).
"""

from __future__ import annotations

import base64
import importlib.util
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from processor.environment.programs.downloads import (
    JVM_OPTIONS,
    ShowProgress,
    dynamodb_local_jars,
    find_java,
    kafka_broker_jars,
    opensearch_jars,
    silent,
)
from processor.environment.programs.processes import start_owned
from processor.environment.programs.program import (
    LOOPBACK,
    EmbeddedPart,
    Launch,
    Process,
    Program,
    free_port,
    log_text,
    start_and_wait,
)
from processor.errors import PartError

KAFKA_NAME = "Kafka"
STARTED_LINE = "Kafka Server started"
CHECKPOINT = "bootstrap.checkpoint"
BROKER_MESSAGE_BYTES = 10 * 1024 * 1024
LOG_OPTIONS = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)
KAFKA_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "data",  # relative to the directory of the broker, so that a comma or a space in its path needs no escape
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(BROKER_MESSAGE_BYTES),
    "replica.fetch.max.bytes": str(BROKER_MESSAGE_BYTES),
    "default.replication.factor": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # A killed broker may register again only after the end of its old session: after 9 s by default.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    # The broker looks once a second for transactions that are too old: every 10 s by default.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
}


def start_kafka(
    directory: Path,
    *,
    launch: Launch = start_owned,
    port: int | None = None,
    progress: ShowProgress = silent,
    more: Mapping[str, str] | None = None,
) -> EmbeddedPart:
    """Start a broker in KRaft mode on `port` if it is free, else on another port; `endpoint` is its host:port. Raises PartError.

    The broker creates no topic by itself: each program creates the topics that it needs. Replication is 1 everywhere, and a
    message may have up to 10 MiB. The broker serves the data that an earlier broker wrote to the directory. `more`: further
    settings of the broker; one that the broker has already continues its list, for example with a listener.
    """
    jars = kafka_broker_jars(progress)
    checkpoint = _make_checkpoint(jars)
    _format_data(directory / "data", checkpoint)

    def build(chosen: int) -> Program:
        _write_properties(directory / "server.properties", chosen, free_port(), more or {})
        argv = (find_java(), *JVM_OPTIONS, *LOG_OPTIONS, "-cp", f"{jars}/*", "kafka.Kafka", "server.properties")
        return Program(name=KAFKA_NAME, directory=directory, argv=argv, stop_signal=signal.SIGTERM)

    process, chosen = start_and_wait(build, launch, port, _kafka_is_ready)
    return EmbeddedPart(name=KAFKA_NAME, endpoint=f"{LOOPBACK}:{chosen}", process=process)


def _kafka_is_ready(program: Program, _: Process) -> bool:
    return STARTED_LINE in log_text(program.log)


def _write_properties(path: Path, port: int, controller_port: int, more: Mapping[str, str]) -> None:
    own = {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
    }
    settings = KAFKA_SETTINGS | own
    settings |= {key: f"{settings[key]},{value}" if key in settings else value for key, value in more.items()}
    path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))


def _format_data(data: Path, checkpoint: Path) -> None:
    """Format a new data directory as Kafka's StorageTool does, but without its start time of a second."""
    if (data / "meta.properties").exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint, data / CHECKPOINT)
    (data / "meta.properties").write_text(f"version=1\ncluster.id={_new_id()}\nnode.id=1\ndirectory.id={_new_id()}\n")


def _new_id() -> str:
    """An id as Kafka encodes it: 16 random bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _make_checkpoint(jars: Path) -> Path:
    """The file with the feature levels of a new cluster. StorageTool makes it once per jar set, because it is always
    the same.

    Raises PartError if StorageTool fails.
    """
    checkpoint = jars / CHECKPOINT
    if checkpoint.exists():
        return checkpoint
    with tempfile.TemporaryDirectory(dir=jars) as name:
        directory = Path(name)
        _write_properties(directory / "server.properties", 1, 2, {})
        tool = [find_java(), *JVM_OPTIONS, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
        command = [*tool, "-t", _new_id(), "-c", "server.properties"]
        run = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise PartError(KAFKA_NAME, f"its storage tool failed:\n{run.stdout}{run.stderr}", "read the lines above")
        (directory / "data" / CHECKPOINT).replace(checkpoint)
    return checkpoint


MOTO_NAME = "DynamoDB (moto)"
DYNAMODB_LOCAL_NAME = "DynamoDB Local"
MOTO_SERVER = "import sys, moto.server; sys.setrecursionlimit(10_000); moto.server.main(sys.argv[1:])"
"""The parser of moto recurses once per attribute: a write of more than about 150 attributes exceeds Python's usual limit."""
DYNAMODB_LOCAL_CLASS = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"


def start_moto(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a moto server on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError.

    moto starts in a second, and has its tables in memory only. It is slow beyond 2,000 items, because each query copies and sorts
    the whole table. Clients need a region and any credentials.
    """
    if importlib.util.find_spec("moto") is None or importlib.util.find_spec("flask") is None:
        raise PartError(MOTO_NAME, "the package moto[server] is not installed", "pip install 'statestore[local]'")

    def build(chosen: int) -> Program:
        argv = (sys.executable, "-c", MOTO_SERVER, "-H", LOOPBACK, "-p", str(chosen))
        return Program(name=MOTO_NAME, directory=directory, argv=argv, stop_signal=signal.SIGKILL)

    process, chosen = start_and_wait(build, launch, port, _is_ready_at_once)
    return EmbeddedPart(name=MOTO_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def start_dynamodb_local(
    directory: Path, *, launch: Launch = start_owned, port: int | None = None, progress: ShowProgress = silent
) -> EmbeddedPart:
    """Start DynamoDB Local on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError.

    DynamoDB Local is a JVM, checks more than moto, and stays fast; its tables are in memory only. It listens on every network
    interface, because it has no setting for another one. Clients need a region and any credentials.
    """
    jars = dynamodb_local_jars(progress)

    def build(chosen: int) -> Program:
        java = (find_java(), *JVM_OPTIONS, f"-Dsqlite4java.library.path={jars}", "-cp", f"{jars}/*")
        argv = (*java, DYNAMODB_LOCAL_CLASS, "-inMemory", "-disableTelemetry", "-port", str(chosen))
        return Program(name=DYNAMODB_LOCAL_NAME, directory=directory, argv=argv, stop_signal=signal.SIGKILL)

    process, chosen = start_and_wait(build, launch, port, _is_ready_at_once)
    return EmbeddedPart(name=DYNAMODB_LOCAL_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


def _is_ready_at_once(_: Program, __: Process) -> bool:
    return True  # moto, DynamoDB Local and the console open their port only when they can answer; OpenSearch when it is master


OPENSEARCH_NAME = "OpenSearch"
SEARCH_NODE = Path(__file__).with_name("SearchNode.java")
SEARCH_JVM_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dlog4j2.level=WARN")


def start_opensearch(
    directory: Path, *, launch: Launch = start_owned, port: int | None = None, progress: ShowProgress = silent
) -> EmbeddedPart:
    """Start a node of OpenSearch on `port` if it is free, else on another port; `endpoint` is its URL. Raises PartError.

    The node asks for no password, and serves the data that an earlier node wrote to the directory. Java runs its main class from
    source, so a JRE without a compiler is not enough.
    """
    jars = opensearch_jars(progress)

    def build(chosen: int) -> Program:
        argv = (
            find_java(),
            *SEARCH_JVM_OPTIONS,
            "-cp",
            f"{jars}/*",
            str(SEARCH_NODE),
            str(directory.resolve()),
            str(chosen),
        )
        return Program(name=OPENSEARCH_NAME, directory=directory, argv=argv, stop_signal=signal.SIGTERM)

    process, chosen = start_and_wait(build, launch, port, _is_ready_at_once)
    return EmbeddedPart(name=OPENSEARCH_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)


CONSOLE_NAME: Final = "the console"
CONSOLE_PORT: Final = 8290
"""The usual port of a console."""
CONSOLE_PACKAGES: Final = ("uvicorn", "starlette", "jinja2")
CONSOLE_CODE: Final = "import sys; from processor.cli.main import main; sys.exit(main())"


def start_console(directory: Path, *, launch: Launch = start_owned, port: int | None = None) -> EmbeddedPart:
    """Start a console over the parts in the parent of `directory`, on `port`, else CONSOLE_PORT, if that is free; `endpoint` is
    its URL. Raises PartError."""
    if any(importlib.util.find_spec(package) is None for package in CONSOLE_PACKAGES):
        raise PartError(CONSOLE_NAME, "its packages are not installed", "pip install 'statestore[console]'")

    def build(chosen: int) -> Program:
        parts = str(directory.resolve().parent)
        argv = (
            sys.executable,
            "-c",
            CONSOLE_CODE,
            "console",
            "--embedded",
            "--local-dir",
            parts,
            "--port",
            str(chosen),
        )
        return Program(name=CONSOLE_NAME, directory=directory, argv=argv, stop_signal=signal.SIGTERM)

    process, chosen = start_and_wait(build, launch, port or CONSOLE_PORT, _is_ready_at_once)
    return EmbeddedPart(name=CONSOLE_NAME, endpoint=f"http://{LOOPBACK}:{chosen}", process=process)
