"""Runs a job until it has ended: opens it, gives it the records of a file, and opens it again after an outage."""

from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event

from processor.engine.plan.plan import Plan
from processor.engine.rounds.job_event import Report
from processor.engine.rounds.troubles import Troubles
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import Settings, owner_name
from processor.job.run.feed import Feed
from processor.job.run.job import Job
from processor.job.run.open_job import prepare_job
from processor.job.run.run_again import run_again
from processor.job.run.run_job import keep_last_progress
from registry.errors import RegistryError


def run_to_end(
    settings: Settings,
    plan: Plan,
    *,
    once: bool,
    take_over: bool,
    jars: list[Path],
    report: Report,
    stopping: Event,
    troubles: Troubles,
    opened: Callable[[Job | None], None],
    adopt: bool = False,
    feed: Feed | None = None,
) -> Job:
    """Runs the job until it has ended, or somebody sets `stopping`. Produces the records of `feed` once the job is open: a start
    that is refused leaves the topics as they are. `opened`: takes None when a start begins, and then the job that is open. Raises
    Stopped when the operator stops the job before it is open."""
    waiting = [feed] if feed else []
    with open_registry(settings) as registry:
        starts = count()

        def open_() -> Job:
            first = next(starts) == 0  # a later start takes over from nobody: another job may have taken over meanwhile
            opened(None)
            job = prepare_job(
                settings,
                plan,
                registry,
                owner=owner_name(),
                take_over=take_over and first,
                jars=jars,
                report=report,
                adopt=adopt and first,
                stopping=stopping,
                troubles=troubles,
            )
            opened(job)
            with suppress(RegistryError):  # the run itself waits for a registry that does not answer
                registry.runs.begin(job.lease)
            try:
                while waiting:
                    waiting.pop().produce()
            except BaseException:
                job.end()
                raise
            return job

        job = run_again(open_, once=once, stopping=stopping)
        keep_last_progress(job)
    return job
