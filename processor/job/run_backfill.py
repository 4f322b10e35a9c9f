"""Does the work that edits of the registry left, in an open job without a stream: walks, steps, and the documents that follow.

All progress is in the table and in the registry. So a later backfill or run continues one that broke off.
"""

from time import sleep

from processor.job.failures import failure_reason, is_stop
from processor.job.job import Job


def run_backfill(job: Job) -> tuple[str, ...]:
    """Works until no walk and no step remains, until the rest cannot go on, or until an operator stops the job. Then gives the
    lease back. Returns why work remains: nothing when all is done."""
    try:
        while job.pending and not job.stopping.is_set() and not _is_blocked(job):
            sleep(0 if job.driver.busy else 0.2)
            job.idle()
            job.renewal.check()
    except Exception as failure:
        if not is_stop(failure, job.stopping):
            raise failure_reason(job, failure) from failure
    finally:
        job.end()
    return _blocked(job) or (("stopped on request",) if job.pending else ())


def _blocked(job: Job) -> tuple[str, ...]:
    """The walks and the products that stopped in this run, each with its reason."""
    walks = (f"{' '.join(walk)} stopped: {reason}" for walk, reason in job.driver.walks.stuck.items())
    products = (f"product {name} stopped: {reason}" for name, reason in job.driver.backlog.stopped.items())
    return (*walks, *products)


def _is_blocked(job: Job) -> bool:
    """Whether only stopped walks and products remain: no work is due later, and the registry has no step to take."""
    if job.driver.pending or job.steward is None or not _blocked(job):
        return False
    version = job.driver.plan.version
    job.steward.next_look = 0
    job.take_version()
    return version == job.driver.plan.version and not job.driver.pending
