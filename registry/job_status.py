"""A job, as its lease shows it to operators. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

How = Literal["stopped", "finished", "failed", "lost", "killed"]
"""stopped: a person asked for it; finished: all records of a run with `--once` are processed; failed: an error ended the run, or
its start; lost: another run took its lease; killed: the run gave no sign of its end."""

ENDS: Mapping[How, str] = {
    "stopped": "stopped on request",
    "finished": "finished all records (--once)",
    "failed": "ended with an error",
    "lost": "lost its lease to another run",
    "killed": "gave its last sign of life",
}
"""How a run ended, in words."""


class RunMark(NamedTuple):
    """What a registry knows of the runs of its jobs. `generation`: the highest; `run`, `round`: the last round whose end the
    table has, by the last report; `run` 0: none since the registry has its table."""

    generation: int
    run: int
    round: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run of `owner` ended. `text`: the message of its error, with the cure; empty without an error. `at`: when; of a
    killed run its last sign of life."""

    how: How
    owner: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """The lease of a job as it is now. `owner`: None after a release; `alive`: a run holds the lease and renewed it in time.

    `acquired_at`: when the last run began. `report`: the state of that run as it reported it last, JSON values; None before the
    first report. `report_age`: its age in seconds, by the clock of Postgres. `ended`: the end that the last run noted; of a job
    that lives, the end of the run before."""

    job: str
    owner: str | None
    alive: bool
    generation: int
    applied_version: int | None
    renewed_at: datetime
    acquired_at: datetime | None = None
    report: Mapping[str, Any] | None = None
    report_age: float | None = None
    ended: RunEnd | None = None

    @property
    def last_end(self) -> RunEnd | None:
        """How the last run ended; None while it lives, and where nobody noted it."""
        if self.alive or self.owner is None:
            return None if self.alive else self.ended
        return RunEnd(how="killed", owner=self.owner, text="", at=self.renewed_at)
