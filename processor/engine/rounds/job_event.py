"""The events of a job: the driver and the job emit them, and a command shows them as lines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """An event of a job. `what`: its kind, the same at each time; `text`: for people. `fields`: its figures, JSON values: the
    counts of a round, or the state of the job."""

    what: str
    text: str = ""
    level: Level = "info"
    fields: Mapping[str, Any] = field(default_factory=dict)


Report = Callable[[JobEvent], None]
"""Takes the events of a job, from several threads."""


def no_report(_event: JobEvent) -> None:
    """The report of a driver whose events nobody shows."""
