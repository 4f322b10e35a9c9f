"""The embedded Kafka: one real broker in KRaft mode, on loopback, with its data in its directory.

The broker creates no topic by itself: each program creates the topics that it needs. Replication is 1 everywhere, and a
message may have up to 10 MiB.
"""

from __future__ import annotations

import base64
import shutil
import signal
import subprocess
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path

from processor.errors import PartError
from processor.local.cache import ShowProgress
from processor.local.downloads import kafka_broker_jars, silent
from processor.local.java import JVM_OPTIONS, find_java
from processor.local.processes import start_owned
from processor.local.program import EmbeddedPart, Launch, Process, Program
from processor.local.readiness import LOOPBACK, free_port, log_text, start_and_wait

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
    """Start a broker on `port` if it is free, else on another port; `endpoint` is its host:port. Raises PartError.

    The broker serves the data that an earlier broker wrote to the directory. `more`: further settings of the broker; one that the
    broker has already continues its list, for example with a listener.
    """
    jars = kafka_broker_jars(progress)
    checkpoint = _make_checkpoint(jars)
    _format(directory / "data", checkpoint)

    def build(chosen: int) -> Program:
        _write_properties(directory / "server.properties", chosen, free_port(), more or {})
        argv = (find_java(), *JVM_OPTIONS, *LOG_OPTIONS, "-cp", f"{jars}/*", "kafka.Kafka", "server.properties")
        return Program(name=KAFKA_NAME, directory=directory, argv=argv, stop_signal=signal.SIGTERM)

    process, chosen = start_and_wait(build, launch, port, _is_ready)
    return EmbeddedPart(name=KAFKA_NAME, endpoint=f"{LOOPBACK}:{chosen}", process=process)


def _is_ready(program: Program, _: Process) -> bool:
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


def _format(data: Path, checkpoint: Path) -> None:
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
