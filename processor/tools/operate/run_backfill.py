"""Does the work that edits of the registry left, in an open job without a stream: walks, steps, and the documents that follow.

All progress is in the table and in the registry. So a later backfill or run continues one that broke off.
"""

from processor.job.run.job import Job
from processor.job.run.outages import is_stop
from processor.job.run.run_job import failure_reason, finish_background_work, keep_last_progress


def run_backfill(job: Job) -> tuple[str, ...]:
    """Works until no work remains that can go on, or until an operator stops the job. Then gives the lease back. Returns why work
    remains: nothing when all is done."""
    try:
        finish_background_work(job)
        left = obstacles(job) or (("stopped on request",) if job.unsettled else ())
        keep_last_progress(job)
    except Exception as failure:
        if is_stop(failure, job.stopping):
            return ("stopped on request",)
        raise failure_reason(job, failure) from failure
    finally:
        job.end()
    return left


def obstacles(job: Job) -> tuple[str, ...]:
    """Why walks, products and steps stopped in this run."""
    walks = (f"{' '.join(walk)} stopped: {reason}" for walk, reason in job.driver.progress.walks.stuck.items())
    products = (f"product {name} stopped: {reason}" for name, reason in job.driver.progress.backlog.stopped.items())
    steps = (job.steward.obstacle,) if job.steward is not None and job.steward.obstacle else ()
    return (*walks, *products, *steps)
