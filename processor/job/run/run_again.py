"""Runs a job, and opens it again after an outage: a part outside of it that does not answer, or takes less work.

    1. The run fails, ends its stream, and rests: it keeps the lease, and its monitor goes on.
    2. The job waits, longer after each failure in a row, until the registry, the broker and the table answer.
    3. The run gives the lease back, and the job opens again.

Opening again is a start like any other: a new generation of the lease, producers fenced, open changes reloaded, W waited. So the
job continues as the next process would after a crash. A job that has never been open ends at its first failure.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from threading import Event
from time import monotonic

from processor.environment.stores.kinds import open_store
from processor.errors import Outage
from processor.job.run.failures import outage_of
from processor.job.run.job import Job
from processor.job.run.outages.outage_wait import OutageWait
from processor.job.run.outages.outside_parts import places
from processor.job.run.run_job import begin_job, run_job
from processor.job.run.source_topics import ANSWER_SECONDS
from processor.job.run.worker import lease_lost
from registry.errors import LeaseLost

WORKED_SECONDS = 60.0
"""A run that ended a batch, or lived so long, has worked: the next failure is the first in a row."""


def run_again(open_: Callable[[], Job], *, once: bool, stopping: Event) -> Job:
    """Runs the job that `open_` opens until it has ended. Returns the last one, with the counts of all.

    Raises:
        Outage: a part did not answer for too long.
        Stopped: an operator stopped the job between two runs.
    """
    tally, job = Counter[str](), open_()
    settings = job.settings
    wait = OutageWait(
        troubles=job.troubles, stopping=stopping, seconds=settings.outage_seconds, places=places(settings)
    )
    while True:
        began = monotonic()
        try:
            if not job.begun:
                begin_job(job)
            run_job(job, once=once)
        except Outage as outage:
            tally += job.driver.tally
            if job.last_batch is not None or monotonic() - began > WORKED_SECONDS:
                wait.forget()
            wait.note(outage)
            job = _open_later(job, open_, wait)
        else:
            job.driver.tally.update(tally)
            return job


def _open_later(rests: Job, open_: Callable[[], Job], wait: OutageWait) -> Job:
    """Waits until the parts answer, ends the run that rests, and opens the next one."""
    try:
        while True:
            wait.pause()
            try:
                _probe(rests)
                rests.end()
                job = open_()
                wait.opened()
                return job
            except Exception as failure:
                outage = outage_of(failure, "the start")
                if outage is None:
                    raise
                wait.note(outage)
    except BaseException:
        rests.end()
        raise


def _probe(rests: Job) -> None:
    """Asks the registry, the broker and the table whether they answer. Raises their errors, and Fenced when another run took the
    lease."""
    if rests.ended:  # a later start failed, and gave the lease back
        rests.registry.binding()
    else:
        try:
            rests.registry.renew(rests.lease)
        except LeaseLost:
            raise lease_lost(rests.lease) from None
    rests.admin.names(ANSWER_SECONDS)
    with closing(open_store(rests.settings)) as store:
        store.describe()
