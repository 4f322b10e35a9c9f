"""Who does the work that an edit leaves."""

from datetime import UTC, datetime

from processor.cli.edit_report import worker_line
from registry.model import JobStatus

AT = datetime(2026, 1, 2, tzinfo=UTC)


def status(job: str, *, alive: bool) -> JobStatus:
    return JobStatus(job=job, owner="host:7", alive=alive, generation=1, applied_version=1, renewed_at=AT)


def test_the_job_that_runs_does_the_work_else_the_next_one() -> None:
    jobs = [status("old", alive=False), status("main", alive=True)]
    assert (
        worker_line(jobs) == "the running job main (host:7) takes this version before its next batch, and does the work"
    )
    assert worker_line(jobs[:1]).startswith("no job runs: `statestore run` does the work, or `statestore backfill`")
