"""The report of an edit: its changes, the work that it leaves, who does this work, and the registry version."""

import getpass
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from registry.model import Applied, JobStatus
from registry.pending import pending_lines

if TYPE_CHECKING:
    from registry.repository import Registry


def user_name() -> str:
    """The user's name for the registry's history, or the number of a user without a name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def print_applied(applied: Applied, registry: "Registry") -> None:
    """Prints the changes to stdout, and to stderr the work that waits in the registry, who does it, and the version."""
    for change in applied.changes:
        print(change)
    pending, jobs = list(pending_lines(registry.snapshot())), registry.jobs()
    for line in pending:
        print(f"next: {line}", file=sys.stderr)
    if jobs and (pending or applied.changes):
        print(worker_line(jobs), file=sys.stderr)
    print(f"registry version {applied.version}{'' if applied.changes else ': nothing changed'}", file=sys.stderr)


def applied_json(applied: Applied, registry: "Registry") -> dict[str, object]:
    """The report as one JSON object."""
    return {
        "version": applied.version,
        "changes": list(applied.changes),
        "next": list(pending_lines(registry.snapshot())),
        "jobs": [{"job": job.job, "owner": job.owner, "alive": job.alive} for job in registry.jobs()],
    }


def worker_line(jobs: Collection[JobStatus]) -> str:
    """Who does the work that an edit leaves: the job that runs, or the next one."""
    for job in jobs:
        if job.alive:
            return (
                f"the running job {job.job} ({job.owner}) takes this version before its next batch, and does the work"
            )
    return "no job runs: `statestore run` does the work, or `statestore backfill`, which reads no topics"
