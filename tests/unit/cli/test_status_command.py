"""What `status` shows of the jobs, and what is wrong."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from processor.cli.status_command import status_json, status_text, wrong_lines
from processor.rounds.troubles import degraded_lines
from registry.job_status import JobStatus
from registry.model import Snapshot
from tests.unit.cli.job_state import STATE

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
REPORT: dict[str, Any] = STATE | {
    "at": AT.timestamp(),
    "statestore": "0.1.0",
    "last_batch": {"number": 3, "at": AT.timestamp(), "records": 1200, "documents": 40},
    "backlog": 0,
    "walks": ["fill star"],
    "refused_version": 0,
    "refusal": "",
    "oldest_unpublished": AT.timestamp() - 90,
}
JOB = JobStatus(
    job="main",
    owner="host:7",
    alive=True,
    generation=3,
    applied_version=1,
    renewed_at=AT,
    acquired_at=AT,
    report=REPORT,
    report_age=2.2,
)
SNAPSHOT = Snapshot(version=2, slots=5, entities=(), assignments=(), joins=(), products=())


def shown(*jobs: JobStatus) -> list[str]:
    degraded = [line for job in jobs for line in degraded_lines(job.report or {})]
    return list(status_text(SNAPSHOT, jobs, [line for job in jobs for line in wrong_lines(job)], degraded))


def test_a_running_job_shows_its_versions_its_lag_and_what_is_open() -> None:
    lines = shown(JOB)
    assert lines[0].startswith("job main: runs as host:7 since 20")
    assert lines[0].endswith(", statestore 0.1.0")
    for line in (
        "  registry version 1, the newest is 2",
        "  reads its topics; reported 2 s ago",
        "  topic repo: 0 records, 0 s behind",
        "  topic star: 1,234 records, 17 s behind",
        "  120.5 events/s, 30 documents/s",
        "  7 open changes, 1 fan-outs, 0 roots in the backlog",
        "  walks: fill star",
        "  0 dead letters in this run",
    ):
        assert line in lines
    assert any(
        line.startswith("  last batch 3: 20") and line.endswith(", 1,200 records, 40 documents") for line in lines
    )
    assert lines[-1].startswith("  oldest change without its documents: 20")
    assert lines[-1].endswith(", 90 s before the report")


def test_a_job_that_counts_its_requests_shows_what_they_cost_in_one_line() -> None:
    counts = {
        "request UpdateItem": 1200,
        "request Query": 34,
        "throttles Query": 2,
        "retries Query": 3,
        "half units UpdateItem": 7201,
        "half units Query": 17,
        "ms batch": 2500,
        "ms write": 1000,
    }
    assert shown(replace(JOB, report=REPORT | {"counts": counts}))[-1] == (
        "  1,234 requests (2 throttled, 3 retries), 3,600 write units, 8 read units; batch 2.5 s, write 1.0 s, publish 0.0 s"
    )


def test_a_job_that_gave_its_lease_back_is_not_wrong_and_a_job_that_died_is() -> None:
    assert shown(replace(JOB, owner=None, alive=False)) == ["job main: does not run, last registry version 1 of 2"]
    (line,) = wrong_lines(replace(JOB, alive=False))
    assert line.startswith("job main died: host:7 gave no sign of life since 20")


def test_stopped_products_and_walks_a_refused_version_and_silence_are_wrong() -> None:
    report = REPORT | {
        "stopped_products": {"profile": "too large"},
        "unfit_documents": {"profile": 2},
        "stopped_walks": {"fill star": "refused"},
        "refusal": "the job cannot run version 2",
    }
    assert list(wrong_lines(replace(JOB, report=report, report_age=61.0))) == [
        "job main renews its lease, and has reported nothing for 61 s; see its log",
        "product profile stopped: too large",
        "product profile: 2 documents do not fit its topic, which shows earlier ones: `statestore rejects list --each` says why "
        "and what to do; then start the job again",
        "fill star stopped: refused",
        "the job cannot run version 2",
    ]
    assert list(wrong_lines(JOB)) == []


def test_a_job_that_waits_for_a_part_is_degraded_and_nothing_is_wrong() -> None:
    trouble = {
        "part": "store",
        "text": "127.0.0.1:8000 does not answer",
        "cure": "start it",
        "since": AT.timestamp() - 90,
        "said": AT.timestamp(),
    }
    waiting = replace(JOB, report=REPORT | {"troubles": [trouble]})
    assert shown(waiting)[-1] == "degraded: store: 127.0.0.1:8000 does not answer, for 1 min 30 s: start it"
    assert list(wrong_lines(waiting)) == []


def test_a_job_that_has_yet_to_report_and_a_registry_without_jobs_have_lines_too() -> None:
    assert shown(replace(JOB, report=None, report_age=None))[-1] == "  it has reported nothing yet"
    assert shown() == ["no job has run by this registry: `statestore run`"]


def test_json_holds_the_report_as_the_job_wrote_it() -> None:
    found = status_json(SNAPSHOT, [JOB], ["x"], ["y"])
    assert (found["version"], found["wrong"], found["degraded"]) == (2, ["x"], ["y"])
    assert found["jobs"][0]["report"] == REPORT
