"""The definitions and the job's reports as the registry has them, read at most once in PLAN_SECONDS."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple

from processor.plan.plan import Plan
from processor.plan.planning import plan_of
from registry.model import JobStatus, Snapshot

PLAN_SECONDS: Final = 1.0


class SeenRegistry(NamedTuple):
    """The plan, and the jobs with their reports, as they were at `at` (`time.monotonic()`)."""

    at: float
    plan: Plan
    jobs: tuple[JobStatus, ...]


def no_jobs() -> tuple[JobStatus, ...]:
    """The jobs of a registry by which none runs."""
    return ()


@dataclass(slots=True, kw_only=True)
class PlanView:
    """`snapshot`, `jobs`: ask the registry. Threads may share a view, and take turns."""

    snapshot: Callable[[], Snapshot]
    jobs: Callable[[], tuple[JobStatus, ...]] = no_jobs
    plan_of: Callable[[Snapshot], Plan] = plan_of
    _lock: Lock = field(default_factory=Lock)
    _seen: SeenRegistry | None = None

    def now(self) -> SeenRegistry:
        """What the registry has. Raises RegistryError."""
        with self._lock:
            at = monotonic()
            if self._seen is None or at - self._seen.at >= PLAN_SECONDS:
                snapshot = self.snapshot()
                known = self._seen.plan if self._seen else None
                same = known is not None and known.version == snapshot.version
                plan = known if known is not None and same else self.plan_of(snapshot)
                self._seen = SeenRegistry(at, plan, self.jobs())
            return self._seen
