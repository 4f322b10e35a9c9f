"""Runs a job, and opens it again after a failure that may pass: a store that does not answer.

Opening again is a start like any other: a new generation of the lease, producers fenced, open changes reloaded, W waited. So the
job continues after such a failure as the next process would after a crash.
"""

from collections import Counter
from collections.abc import Callable
from threading import Event

from processor.errors import Stopped
from processor.job.job import Job
from processor.job.run_job import run_job
from processor.rounds.job_event import JobEvent, Report
from statestore.errors import Transient

MOST_FAILURES = 5
"""Failures in a row, with no batch between them, after which the job ends."""
PAUSE_SECONDS = 5.0
"""The pause after the first failure; after the nth failure in a row it is n times as long."""


def run_again(open_: Callable[[], Job], *, once: bool, stopping: Event, report: Report) -> Job:
    """Runs the job that `open_` opens until it has ended. Returns the last one, with the counts of all.

    Raises:
        Transient: the first start failed, or so many runs in a row.
        Stopped: an operator stopped the job between two runs.
    """
    tally, failures, job = Counter[str](), 0, None
    while True:
        opened = None
        try:
            job = opened = open_()
            run_job(job, once=once)
            job.driver.tally.update(tally)
            return job
        except Transient as failure:
            if opened is not None:
                tally += opened.driver.tally
                failures = 0 if opened.last_batch is not None else failures
            failures += 1
            if job is None or failures == MOST_FAILURES:
                raise
            pause = failures * PAUSE_SECONDS
            text = f"{failure}; the job starts again in {pause:g} s (failure {failures} of {MOST_FAILURES} in a row)"
            report(JobEvent(what="failed", text=text, level="warning", fields={"failures": failures}))
        if stopping.wait(pause):
            raise Stopped("stopped on request")
