"""What the registry notes of the runs of jobs: how they are, and how they ended."""

from collections.abc import Mapping
from typing import Any

from registry.job_status import How, RunMark
from registry.model import Lease
from registry.repository import lease_store as leases
from registry.repository.connection import Database


class RunNotes:
    """The notes of runs; each method is one transaction, and no edit: the version stays."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep_report(self, lease: Lease, report: Mapping[str, Any], ended: int | None = None) -> None:
        """Replaces the report of the run, which `Registry.jobs` shows. `ended`: its last round that published something and
        ended. Raises LeaseLost when another run has taken over."""
        with self._database.transaction() as connection:
            leases.keep_report(connection, lease, report, ended)

    def mark(self) -> RunMark:
        """What the registry knows of the runs of its jobs."""
        with self._database.reading() as connection:
            return leases.run_mark(connection)

    def begin(self, lease: Lease) -> None:
        """Forgets the end that was noted before this run took its lease: the job runs again."""
        with self._database.transaction() as connection:
            leases.begin_run(connection, lease)

    def end(self, job: str, owner: str, how: How, text: str = "") -> None:
        """Notes how a run of the job, or its start, ended, for `Registry.jobs`, and gives its lease back. `text`: the message of
        its error. A job that never ran has no lease, and gets no note."""
        with self._database.transaction() as connection:
            leases.end_run(connection, job, owner, how, text)
