"""A finding of a check, and the check itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

FindingState = Literal["ok", "warning", "failure", "skipped"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding: with `failure` a job does not run, or loses data. `cure`: of a warning or a failure."""

    state: FindingState
    text: str
    cure: str = ""


class NothingToCheck(Exception):
    """The question of a check does not arise. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """A check. `looks_at`: for people; `needs`: the earlier checks whose failure would only come again here; `cure`: of an
    error that `look` raises; `seconds`: its time limit. `look` gets the surroundings, writes nothing that
    stays, and disturbs no job."""

    name: str
    looks_at: str
    look: Callable[[Any], Iterable[Finding]]
    cure: str
    needs: tuple[str, ...] = ()
    seconds: float = 30.0


def ok(text: str) -> Finding:
    """Nothing to do."""
    return Finding(state="ok", text=text)


def warning(text: str, cure: str) -> Finding:
    """A job runs, with a risk."""
    return Finding(state="warning", text=text, cure=cure)


def failure(text: str, cure: str) -> Finding:
    """A job does not run, or loses data."""
    return Finding(state="failure", text=text, cure=cure)


def skipped(why: str) -> Finding:
    """The check says nothing."""
    return Finding(state="skipped", text=why)
