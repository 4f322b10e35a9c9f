"""statestore as operators run it: `statestore run` with Spark, and a Postgres that syncs each commit to the disk."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg

from benchmarks.job import start_parts
from benchmarks.job_process import STATESTORE, environment, run_command
from benchmarks.peers.whole_jobs.system import Files, check_alive
from processor.environment.settings.settings import Settings
from processor.errors import StatestoreError

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
