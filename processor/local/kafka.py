"""The embedded Kafka: one real broker, KRaft, on loopback, its data in its directory.

Topics are made by whoever needs them (no automatic creation). Replication is 1 everywhere, messages up to 10 MiB.
"""

from __future__ import annotations

import base64
import shutil
import signal
import subprocess
import tempfile
import uuid
from pathlib import Path

from processor.errors import PartError
from processor.local.answer import LOOPBACK, free_port, said, start
from processor.local.cache import Progress
from processor.local.jars import kafka_broker_jars, silent
from processor.local.java import find_java
from processor.local.kept import keep
from processor.local.program import Launch, Part, Process, Program

NAME = "Kafka"
STARTED = "Kafka Server started"
CHECKPOINT = "bootstrap.checkpoint"
MAX_MESSAGE_BYTES = 10 * 1024 * 1024
# The first compiler and the plainest collector: the port opens after 2.2 s instead of 4.6 s (2 cores).
JVM = ("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
LOG = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
)
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "data",  # relative to its directory: a path with a comma or a space needs no escape
    "auto.create.topics.enable": "false",
    "message.max.bytes": str(MAX_MESSAGE_BYTES),
    "replica.fetch.max.bytes": str(MAX_MESSAGE_BYTES),
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
    # A broker that was killed may register again only when its old session has ended: 9 s by default.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
}


def start_kafka(
    directory: Path, *, launch: Launch = keep, port: int | None = None, progress: Progress = silent
) -> Part:
    """Start a broker on `port`, if it is free, else on another; `endpoint` is its host:port. Raises PartError.

    Data that an earlier broker left in the directory is served again.
    """
    jars = kafka_broker_jars(progress)
    checkpoint = _checkpoint(jars)
    _format(directory / "data", checkpoint)

    def build(chosen: int) -> Program:
        _write_properties(directory / "server.properties", chosen, free_port())
        argv = (find_java(), *JVM, *LOG, "-cp", f"{jars}/*", "kafka.Kafka", "server.properties")
        return Program(name=NAME, directory=directory, argv=argv, stop_signal=signal.SIGTERM)

    process, chosen = start(build, launch, port, _ready)
    return Part(name=NAME, endpoint=f"{LOOPBACK}:{chosen}", process=process)


def _ready(program: Program, _: Process) -> bool:
    return STARTED in said(program.log)


def _write_properties(path: Path, port: int, controller_port: int) -> None:
    own = {
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "controller.quorum.voters": f"1@{LOOPBACK}:{controller_port}",
    }
    path.write_text("".join(f"{key}={value}\n" for key, value in (SETTINGS | own).items()))


def _format(data: Path, checkpoint: Path) -> None:
    """Do what Kafka's StorageTool does to a new data directory, without its second of start."""
    if (data / "meta.properties").exists():
        return
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(checkpoint, data / CHECKPOINT)
    (data / "meta.properties").write_text(f"version=1\ncluster.id={_new_id()}\nnode.id=1\ndirectory.id={_new_id()}\n")


def _new_id() -> str:
    """An id as Kafka spells it: 16 random bytes in URL-safe base64."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _checkpoint(jars: Path) -> Path:
    """The feature levels of a new cluster, which StorageTool writes: the same for all, so made once per jar set."""
    kept = jars / CHECKPOINT
    if kept.exists():
        return kept
    with tempfile.TemporaryDirectory(dir=jars) as name:
        scratch = Path(name)
        _write_properties(scratch / "server.properties", 1, 2)
        tool = [find_java(), *JVM, "-cp", f"{jars}/*", "kafka.tools.StorageTool", "format"]
        command = [*tool, "-t", _new_id(), "-c", "server.properties"]
        run = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            raise PartError(NAME, f"its storage tool failed:\n{run.stdout}{run.stderr}", "see the lines above")
        (scratch / "data" / CHECKPOINT).replace(kept)
    return kept
