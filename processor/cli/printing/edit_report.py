"""The report of an edit: its changes, the work that it leaves, who does this work, and the registry version."""

import getpass
import os
import sys
from collections.abc import Callable, Collection
from time import sleep
from typing import TYPE_CHECKING

from processor.engine.protocol.topic_moves import move_lines
from processor.text import visible_line
from processor.tools.inspect.board import pending_lines
from registry.model import Applied, JobStatus

if TYPE_CHECKING:
    from registry.repository import Registry

WAIT_SECONDS = 0.5
"""Between two looks at the jobs that take a version."""


def user_name() -> str:
    """The user's name for the registry's history, or the number of a user without a name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}"


def print_applied(applied: Applied, registry: "Registry") -> None:
    """Prints the changes to stdout, and to stderr the work that waits in the registry, who does it, and the version."""
    for change in applied.changes:
        print(visible_line(str(change)))
    pending, jobs = _next_lines(registry), registry.jobs()
    for line in pending:
        print(f"next: {visible_line(line)}", file=sys.stderr)
    if jobs and (pending or applied.changes):
        print(worker_line(jobs), file=sys.stderr)
    print(f"registry version {applied.version}{'' if applied.changes else ': nothing changed'}", file=sys.stderr)


def applied_json(applied: Applied, registry: "Registry") -> dict[str, object]:
    """The report as one JSON object."""
    return {
        "version": applied.version,
        "changes": list(applied.changes),
        "next": _next_lines(registry),
        "jobs": [{"job": job.job, "owner": job.owner, "alive": job.alive} for job in registry.jobs()],
    }


def _next_lines(registry: "Registry") -> list[str]:
    """The work that waits: of slots and products, and of entities that have another topic than they read."""
    stored = registry.snapshot()
    topics = {entity.name: entity.topic for entity in stored.entities}
    boundaries = registry.epochs(sorted(topics.values()), sorted(topics))
    return [*pending_lines(stored), *move_lines(topics, boundaries)]


def worker_line(jobs: Collection[JobStatus]) -> str:
    """Who does the work that an edit leaves: the job that runs, or the next one."""
    for job in jobs:
        if job.alive:
            return (
                f"the running job {job.job} ({job.owner}) takes this version before its next batch, and does the work"
            )
    return "no job runs: `statestore run` does the work, or `statestore backfill`, which reads no topics"


def wait_for_jobs(registry: "Registry", version: int, pause: Callable[[float], object] = sleep) -> int:
    """Waits until each job that runs now works by this version or a later one. Prints a line for each. Returns the exit status: 1
    if a job refused the version, or ended without it."""
    waiting, failed = {job.job for job in registry.jobs() if job.alive}, False
    while waiting:
        for job in (one for one in registry.jobs() if one.job in waiting):
            report = job.report or {}
            if (job.applied_version or 0) >= version:
                line = f"job {job.job} works by registry version {job.applied_version}"
            elif not job.alive:
                line, failed = f"job {job.job} ended before it took registry version {version}", True
            elif report.get("refused_version", 0) >= version:
                line, failed = str(report["refusal"]), True
            else:
                continue
            print(line, file=sys.stderr)
            waiting.discard(job.job)
        if waiting:
            pause(WAIT_SECONDS)
    return 1 if failed else 0
