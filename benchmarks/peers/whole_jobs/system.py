"""A system that runs a whole job: its processes, the topics of an embedded broker, and state that survives the processes."""

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Protocol, TypeVar

import psutil
import psycopg

from benchmarks.job import descendants, seconds_of, start_parts
from benchmarks.job_process import STATESTORE, environment, run_command
from processor.cli.options import print_progress
from processor.environment.embedded import owned_home
from processor.environment.programs.downloads import Ivy, Module, fetch_once, jars_of_pyspark
from processor.environment.programs.servers import start_kafka
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError

Files = Mapping[str, str]
"""A directory of definitions: name -> text."""
ProgramSeconds = defaultdict[str, float]
"""The CPU seconds of each program of a system."""


class System(Protocol):
    """A system with an empty state. `ordered`: its lists have the product's order."""

    title: str
    ordered: bool
    servers: str
    """The address of the broker."""

    def start(self, files: Files) -> None:
        """Starts the job with its first products."""

    def restart(self) -> None:
        """Starts the job again after `kill`; it restores its state."""

    def add(self, files: Files) -> None:
        """Adds the products that `files` has more than before, while the job runs."""

    def kill(self) -> None:
        """Ends all processes of the job by SIGKILL. What stores its state and its topics stays."""

    def state_bytes(self) -> int:
        """The bytes of the state on the disk, without the topics."""

    def check(self) -> None:
        """Raises StatestoreError if the job has ended by itself."""


Peer = TypeVar("Peer", bound=System)


@contextmanager
def with_broker(make: Callable[[str, Path], Peer]) -> Iterator[Peer]:
    """A system with a broker of its own; both end with the block. `make`: makes it of the broker's address and a folder."""
    with owned_home() as (home, owner):
        system = make(start_kafka(home / "kafka", launch=owner.launch).endpoint, home)
        try:
            yield system
        finally:
            system.kill()


def fetch_jars(name: str, modules: Sequence[Module], *, transitive: bool = True) -> Path:
    """The directory of the jars of these modules. `name`: of the set, without the version, which is that of the first one."""

    def fill(directory: Path) -> None:
        ivy = Ivy(name, jars_of_pyspark(), print_progress)
        ivy.fetch(list(modules), directory, types="jar bundle", transitive=transitive)
        ivy.clear()

    return fetch_once(f"{name}-{modules[0].version}", fill, print_progress)


def cpu_seconds() -> ProgramSeconds:
    """CPU seconds of all processes below this one but the broker, with their ended children, by `program_of`."""
    used: ProgramSeconds = defaultdict(float)
    for pid in descendants():
        with suppress(psutil.Error):  # it has ended, or nobody has collected it
            if program := program_of(psutil.Process(pid).cmdline()):
                used[program] += seconds_of({pid})
    return used


def program_of(words: Sequence[str]) -> str | None:
    """The part of a system that a process is, by its command line. None: the broker, or a process without a program."""
    if not words or "kafka.Kafka" in words:
        return None
    if "postgres" in words[0]:
        return "Postgres"
    if Path(words[0]).name == "java":
        return "JVM"
    return "Python workers" if any(word.endswith("daemon") for word in words) else "driver"


def check_alive(ended: int | None, log: Path) -> None:
    """Raises StatestoreError with the deepest cause in the log, if there is an exit status."""
    if ended is not None:
        lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        causes = [line for line in lines if line.startswith("Caused by: ")]
        raise StatestoreError(f"the job ended by itself with {ended}: {(causes or lines or ['no message'])[-1]}")


SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname LIKE 'state\\_%'
"""
"""Bytes of the tables of the state, with their indexes."""


class StatestoreSystem:
    """The job as a process of its own, with the settings' defaults."""

    title = "statestore"
    ordered = True

    def __init__(self, settings: Settings, directory: Path) -> None:
        self.servers = settings.bootstrap_servers
        self._settings, self._directory = settings, directory
        self._log = directory / "job.log"
        self._processes = ExitStack()
        self._run: subprocess.Popen[bytes] | None = None

    def start(self, files: Files) -> None:
        self.add(files)
        self.restart()

    def restart(self) -> None:
        given = environment(self._settings)
        command = run_command([STATESTORE, "run", "--take-over"], self._log, **given)
        self._run = self._processes.enter_context(command)

    def add(self, files: Files) -> None:
        definitions = self._directory / "definitions"
        definitions.mkdir(exist_ok=True)
        for name, text in files.items():
            (definitions / name).write_text(text, encoding="utf-8")
        words = [STATESTORE, "apply", "--definitions", str(definitions)]
        applied = subprocess.run(words, capture_output=True, text=True, env=environment(self._settings))
        if applied.returncode:
            raise StatestoreError(f"`statestore apply` ended with {applied.returncode}:\n{applied.stderr}")

    def kill(self) -> None:
        self._processes.close()

    def state_bytes(self) -> int:
        url = self._settings.store_url.replace("postgresql+psycopg://", "postgresql://", 1)
        with closing(psycopg.connect(url)) as connection:
            row = connection.execute(SIZE).fetchone()
        return int(row[0]) if row else 0

    def check(self) -> None:
        check_alive(self._run.poll() if self._run else None, self._log)


@contextmanager
def statestore_system() -> Iterator[StatestoreSystem]:
    """statestore on new parts; all end with the block."""
    with start_parts("postgres", batch=Settings().batch_size) as (settings, directory):
        system = StatestoreSystem(settings, directory)
        try:
            yield system
        finally:
            system.kill()
