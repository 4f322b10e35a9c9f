"""A job, as its lease shows it to operators. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple


class RunMark(NamedTuple):
    """What a registry knows of the runs of its jobs. `generation`: the highest; `run`, `round`: the last round that published
    something and ended, by the last report; `run` 0: none since the registry has its table."""

    generation: int
    run: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The lease of a job as it is now. `owner`: None after a release; `alive`: a run holds the lease and renewed it in time.

    `acquired_at`: when the last run began. `report`: the state of that run as it reported it last, JSON values; None before the
    first report. `report_age`: its age in seconds, by the clock of Postgres."""

    job: str
    owner: str | None
    alive: bool
    generation: int
    applied_version: int | None
    renewed_at: datetime
    acquired_at: datetime | None = None
    report: Mapping[str, Any] | None = None
    report_age: float | None = None
