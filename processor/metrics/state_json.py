"""The state of a registry and its jobs as JSON values: of `statestore status --json`, and of the console's overview. Pure."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from registry.model import JobStatus, ReplayRequest, Snapshot


def status_json(
    snapshot: Snapshot, jobs: Collection[JobStatus], problems: list[str], degraded: list[str]
) -> dict[str, Any]:
    """The state as JSON values. `report`: see `processor.job.monitor`."""
    return {
        "version": snapshot.version,
        "paused": snapshot.paused,
        "wrong": problems,
        "degraded": degraded,
        "jobs": [
            {
                "job": job.job,
                "owner": job.owner,
                "alive": job.alive,
                "since": job.acquired_at.isoformat() if job.acquired_at else None,
                "ended": asdict(end) | {"at": end.at.isoformat()} if (end := job.last_end) else None,
                "applied_version": job.applied_version,
                "report_age": job.report_age,
                "report": job.report,
            }
            for job in jobs
        ],
    }


def requests_json(requests: Sequence[ReplayRequest]) -> list[Mapping[str, object]]:
    """The requests that wait, as JSON values."""
    return [
        {
            "request": one.number,
            "who": one.who,
            "why": one.why,
            "at": one.at.isoformat(),
            "letters": one.letters,
            "ended": one.ended,
        }
        for one in requests
    ]
