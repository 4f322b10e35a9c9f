"""A finding of a check, and the check itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

FindingState = Literal["ok", "warning", "failure", "skipped"]
Look = TypeVar("Look", bound=Callable[[Any], "Iterable[Finding]"])
"""The function of a check."""


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
    """A check of `doctor`."""

    name: str
    looks_at: str
    """For people."""
    look: Callable[[Any], Iterable[Finding]]
    """Gets the surroundings, writes nothing that stays, and disturbs no job."""
    cure: str
    """Of an error that `look` raises."""
    needs: tuple[str, ...] = ()
    """The earlier checks whose failure would only come again here."""
    seconds: float = 30.0
    """The time limit."""


class Checks(list[DoctorCheck]):
    """The checks of one subject, in the order of their functions in its file."""

    def check(
        self, name: str, looks_at: str, *, cure: str, needs: tuple[str, ...] = (), seconds: float = 30.0
    ) -> Callable[[Look], Look]:
        """Declares the function below as a check. The arguments: see `DoctorCheck`."""

        def declare(look: Look) -> Look:
            self.append(DoctorCheck(name=name, looks_at=looks_at, look=look, cure=cure, needs=needs, seconds=seconds))
            return look

        return declare


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
