"""Kafka Streams as a session in one JVM: foreign-key joins and aggregates, RocksDB, and exactly-once transactions each second.

Ivy fetches the library into the user's cache, and the JDK compiles the program. The products are their definitions, which are
JSON here. The program supports what `old_ways.workload` makes: plain columns, `one`, and `many` with `order_by` and `limit`.
An application cannot change while it runs, so a later product is one of its own, in the same JVM.
"""

import json
import subprocess
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from benchmarks.job_process import run_command
from benchmarks.peers.whole_jobs.system import Files, check_alive, fetch_jars, with_broker
from processor.cli.options import print_progress
from processor.environment.programs.downloads import Module, find_java
from processor.errors import StatestoreError
from processor.language.definitions.load import ENTITIES, load

PROGRAM = Path(__file__).parent / "KafkaStreamsProgram.java"
LIBRARY = Module("org.apache.kafka", "kafka-streams", "4.1.0")
JACKSON = Module("com.fasterxml.jackson.core", "jackson-databind", "2.19.0")
JVM = "-Xmx2500m"
SETTINGS = {
    "processing.guarantee": "exactly_once_v2",
    "commit.interval.ms": "1000",
    "statestore.cache.max.bytes": str(256 << 20),
    "num.stream.threads": "2",
    "replication.factor": "1",
    "topology.optimization": "all",
    "auto.offset.reset": "earliest",
    "default.key.serde": "org.apache.kafka.common.serialization.Serdes$StringSerde",
    "default.value.serde": "KafkaStreamsProgram$NodeSerde",
    "session.timeout.ms": "6000",
    "heartbeat.interval.ms": "2000",
}
"""The caches hold the changes of a key until the commit, as mini-batches do. A killed member is gone after the shortest session
that the broker allows; its open transaction blocks readers for 10 s, the library's default."""


class KafkaStreamsSystem:
    """Applications in one JVM: the first products are one application, and each later `add` is another one."""

    title = "Kafka Streams"
    ordered = True

    def __init__(self, servers: str, directory: Path, threads: int) -> None:
        self.servers = servers
        self._threads, self._directory, self._log = threads, directory, directory / "streams.log"
        self._classes = ":".join(map(str, fetch_jars("kafka-streams", [LIBRARY, JACKSON]).glob("*.jar")))
        compiler = [find_java(), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", self._classes]
        compiled = subprocess.run([*compiler, "-d", str(directory), str(PROGRAM)], capture_output=True, text=True)
        if compiled.returncode:
            raise StatestoreError(f"the program of Kafka Streams does not compile:\n{compiled.stderr}")
        self._files: Files = {}
        self._products: set[str] = set()
        self._processes = ExitStack()
        self._run: subprocess.Popen[bytes] | None = None

    def start(self, files: Files) -> None:
        self._files = files
        self.restart()

    def restart(self) -> None:
        self._products = set()
        command = [find_java(), JVM, "-cp", f"{self._directory}:{self._classes}", PROGRAM.stem]
        self._run = self._processes.enter_context(run_command(command, self._log))
        self.add(self._files)

    def add(self, files: Files) -> None:
        entities = load(files).entities
        trees = [json.loads(text) for name, text in files.items() if name != ENTITIES]
        new = [tree for tree in trees if tree["product"] not in self._products]
        settings = SETTINGS | {
            "application.id": f"of-{new[0]['product']}",
            "bootstrap.servers": self.servers,
            "num.stream.threads": str(self._threads),
            "state.dir": str(self._directory / "state"),
        }
        known = {name: {"topic": entity.topic, "key": list(entity.key)} for name, entity in entities.items()}
        assert self._run is not None
        assert self._run.stdin is not None
        self._run.stdin.write(json.dumps({"settings": settings, "entities": known, "products": new}).encode() + b"\n")
        self._run.stdin.flush()
        self._products |= {tree["product"] for tree in new}

    def kill(self) -> None:
        self._processes.close()

    def state_bytes(self) -> int:
        """The bytes of the changelog topics, which hold the state: RocksDB has a copy of it, most of that in memory. Shows what
        the topology has."""
        counted = [line for line in self._log.read_text(encoding="utf-8").splitlines() if line.startswith("topology:")]
        print_progress(counted[-1] if counted else "no topology is counted")
        return sum(file.stat().st_size for file in self._directory.glob("kafka/data/of-*-changelog-*/*.log"))

    def check(self) -> None:
        check_alive(self._run.poll() if self._run else None, self._log)


def kafka_streams_system(threads: int) -> AbstractContextManager[KafkaStreamsSystem]:
    """Kafka Streams with a broker of its own; both end with the block."""
    return with_broker(lambda servers, home: KafkaStreamsSystem(servers, home, threads))
