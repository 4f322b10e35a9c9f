"""Flink SQL as a session in one JVM: mini-batches, RocksDB, and a checkpoint each 10 s that commits Kafka transactions.

pip installs PyFlink into an environment of its own (`benchmarks.peers.environment`), and Ivy fetches the Kafka connector into the
user's cache. The connector decides the release of Flink.
"""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.job_process import run_command
from benchmarks.peers.environment import peer_python
from benchmarks.peers.whole_jobs.flink_sql import insert, source_table, target_table
from benchmarks.peers.whole_jobs.system import Files, check_alive
from processor.cli.options import print_progress
from processor.environment.embedded import owned_home
from processor.environment.programs.downloads import Ivy, Module, fetch_once, jars_of_pyspark
from processor.environment.programs.servers import start_kafka
from processor.language.definitions.load import load

PROGRAM = Path(__file__).parent / "flink_program.py"
REQUIREMENT = "apache-flink>=2.0,<2.1"
CONNECTOR = Module("org.apache.flink", "flink-sql-connector-kafka", "4.0.1-2.0")
CHECKPOINT_SECONDS = 10
JVM = "-Xmx2500m"
SETTINGS = {
    "rest.bind-port": "0",
    "heartbeat.timeout": "600 s",
    "pekko.ask.timeout": "600 s",
    "pipeline.object-reuse": "true",
    "execution.buffer-timeout.interval": "1 s",
    "restart-strategy.type": "none",
    "taskmanager.memory.managed.size": "1g",
    "taskmanager.memory.network.min": "512m",
    "taskmanager.memory.network.max": "512m",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.size": "10000",
    "table.exec.mini-batch.allow-latency": "5 s",
    "state.backend.type": "rocksdb",
    "state.backend.rocksdb.checkpoint.transfer.thread.num": "1",
    "execution.checkpointing.interval": f"{CHECKPOINT_SECONDS} s",
    "execution.checkpointing.incremental": "true",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.state-recovery.claim-mode": "CLAIM",
}
"""The JVM may take 4 GB: its heap, and outside of it RocksDB and the network's buffers. A mini-batch ends at a checkpoint at
the latest, so its latency does not make documents later."""


class FlinkSystem:
    """Jobs in one JVM: the first products are one statement set, and each later `add` is a set of its own."""

    title = "Flink SQL"
    ordered = False

    def __init__(self, servers: str, directory: Path, parallelism: int) -> None:
        self.servers = servers
        self._parallelism = parallelism
        self._directory = directory
        self._python, self._connector = peer_python("flink-kafka", REQUIREMENT), next(connector_jars().glob("*.jar"))
        self._log = directory / "flink.log"
        self._files: Files = {}
        self._products: set[str] = set()
        self._processes = ExitStack()
        self._run: subprocess.Popen[bytes] | None = None

    def start(self, files: Files) -> None:
        self._files = files
        self.restart()

    def restart(self) -> None:
        self._products = set()
        given = {"JVM_ARGS": JVM, "FLINK_LOG_DIR": str(self._directory)}
        command = run_command([str(self._python), str(PROGRAM)], self._log, **given)
        self._run = self._processes.enter_context(command)
        self.add(self._files)

    def add(self, files: Files) -> None:
        definitions = load(files)
        entities = definitions.entities
        new = [product for name, product in definitions.products.items() if name not in self._products]
        checkpoints = self._directory / f"checkpoints-{new[0].name}"
        settings = SETTINGS | {
            "parallelism.default": str(self._parallelism),
            "pipeline.jars": self._connector.as_uri(),
            "io.tmp.dirs": str(self._directory),
            "execution.checkpointing.dir": checkpoints.as_uri(),
        }
        if last := last_checkpoint(checkpoints):
            settings["execution.state-recovery.path"] = last.as_uri()
        tables = [source_table(entity, self.servers) for entity in entities.values()]
        tables += [target_table(product, entities, self.servers) for product in new]
        job = {"settings": settings, "tables": tables, "inserts": [insert(product, entities) for product in new]}
        assert self._run is not None
        assert self._run.stdin is not None
        self._run.stdin.write(json.dumps(job).encode() + b"\n")
        self._run.stdin.flush()
        self._products |= {product.name for product in new}

    def kill(self) -> None:
        self._processes.close()

    def state_bytes(self) -> int:
        """The bytes of the last checkpoint, which is complete after the last document. RocksDB's working copy comes on top."""
        return sum(file.stat().st_size for file in self._directory.glob("checkpoints-*/**/*") if file.is_file())

    def check(self) -> None:
        check_alive(self._run.poll() if self._run else None, self._log)


def last_checkpoint(directory: Path) -> Path | None:
    """The newest complete checkpoint of the job that stores its checkpoints here. None: the job has none."""
    complete = list(directory.glob("*/chk-*/_metadata"))
    return max(complete, key=lambda file: file.stat().st_mtime).parent if complete else None


@contextmanager
def flink_system(parallelism: int) -> Iterator[FlinkSystem]:
    """Flink with a broker of its own; both end with the block."""
    with owned_home() as (home, owner):
        system = FlinkSystem(start_kafka(home / "kafka", launch=owner.launch).endpoint, home, parallelism)
        try:
            yield system
        finally:
            system.kill()


def connector_jars() -> Path:
    """The directory of Flink's Kafka connector: one jar, 10 MB."""

    def fill(directory: Path) -> None:
        ivy = Ivy("flink-kafka", jars_of_pyspark(), print_progress)
        ivy.fetch([CONNECTOR], directory, types="jar bundle", transitive=False)
        ivy.clear()

    return fetch_once(f"flink-kafka-{CONNECTOR.version}", fill, print_progress)
