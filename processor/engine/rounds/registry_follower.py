"""The follower: takes each new version of the registry between rounds, and takes the next steps that the rounds made possible.

    1. Read the registry. At a new version: record that the job applies it, then let the driver adopt its plan.
    2. Walks bring the stored rows up to it (`processor.engine.protocol.walks`).
    3. Take the next steps of assignments and products in the registry (`registry.edits.operations`): a new version, so again 1.

One version at a time: no round runs by two, and a step needs the version before it applied. The registry refuses a step when an
operator has edited it meanwhile.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_of
from processor.engine.protocol.walks import Walk, WalkName
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.round import PublishSetup
from processor.errors import PlanError
from processor.language.definitions.problems import DefinitionError
from registry.edits.operations import advance
from registry.errors import RegistryRefused, SnapshotOutdated
from registry.model import Applied, Lease, Progress, Snapshot


class EditedRegistry(Protocol):
    """The registry, as the follower uses it."""

    def snapshot(self) -> Snapshot: ...

    def applied(self, lease: Lease, version: int) -> None: ...

    def advance(self, lease: Lease, version: int, *, proven: frozenset[str], published: frozenset[str]) -> Applied: ...


@dataclass(slots=True, kw_only=True)
class RegistryFollower:
    """The follower of a run.

    prepare: makes the job ready for a plan before the driver adopts it, and says how it publishes by it; None: as before.
    fit: the plan that the job works by meanwhile, before it can work by the plan of the registry.
    keep_progress: shows operators how far the walks are. shown: the walks as it showed them last.
    snapshot: the version that the job has applied, None before the first.
    refused: the version that the job cannot run by; refusal: why. obstacle: why a step waits.
    seconds: between two looks at the registry. next_look: when the next one is due, on the job's clock.
    """

    driver: Driver
    registry: EditedRegistry
    lease: Lease
    prepare: Callable[[Plan], PublishSetup | None]
    fit: Callable[[Plan], Plan] = lambda plan: plan
    keep_progress: Callable[[list[Progress]], None] = lambda _: None
    shown: Mapping[WalkName, Walk] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    refused: int = 0
    refusal: str = ""
    obstacle: str = ""
    seconds: float = 1.0
    next_look: float = -math.inf

    @property
    def pending(self) -> bool:
        """Whether a step can be taken now. The driver knows whether walks remain that lead to further steps."""
        return not self.obstacle and self._step()

    def turn(self) -> None:
        """Takes new versions and next steps until there are none. Call it between rounds, and first after the driver's start."""
        now = self.driver.clock.now()
        if now < self.next_look:
            return
        self.next_look = now + self.seconds
        self._adopt()
        while self._advance():
            self._adopt()
        walks = self.driver.progress.walks
        if walks.moved and walks.walks != self.shown:
            before, self.shown = self.shown, dict(walks.walks)
            for name in walks.moved:
                walk = self.shown.get(name)
                if walk is not None and walk.done and not (name in before and before[name].done):
                    self.driver.report(
                        JobEvent(what="walk done", text=f"{' '.join(name)} is done: {walk.rows:,} rows read")
                    )
            self.keep_progress(walks.progress(self.driver.clock.date()))

    def _adopt(self) -> None:
        """Takes the registry's version, if it is a new one."""
        known = self.snapshot
        while True:
            found = self.registry.snapshot()
            if known is not None and found.version in (known.version, self.refused):
                return
            try:
                plan = plan_of(found)
            except (DefinitionError, PlanError) as error:
                if known is None:
                    raise
                self.refused = found.version
                self.refusal = _refusal(known.version, found.version, error)
                self.driver.report(JobEvent(what="version refused", text=self.refusal, level="warning"))
                return
            try:
                self.registry.applied(self.lease, found.version)
            except SnapshotOutdated:
                continue
            setup = self.prepare(plan)
            self.driver.adopt(self.fit(plan), setup)
            self.snapshot, self.refused, self.refusal = found, 0, ""
            if known is not None:
                text = f"takes registry version {found.version}, after version {known.version}"
                self.driver.report(JobEvent(what="version taken", text=text, fields={"version": found.version}))
            return

    def _advance(self) -> bool:
        """Takes the next steps; returns whether there were any."""
        if self.snapshot is None or not self._step():
            return False
        try:
            self.registry.advance(self.lease, self.snapshot.version, **self._reached())
        except SnapshotOutdated:
            return False
        except RegistryRefused as refusal:  # another job lives, and has not applied this version
            if self.obstacle != str(refusal):
                self.obstacle = str(refusal)
                self.driver.report(JobEvent(what="step waits", text=f"the next step waits: {refusal}"))
            return False
        self.obstacle = ""
        return True

    def _step(self) -> bool:
        return self.snapshot is not None and bool(advance(self.snapshot, **self._reached()).changes)

    def _reached(self) -> dict[str, frozenset[str]]:
        walks, plan = self.driver.progress.walks, self.driver.plan
        return {"proven": walks.proven(plan), "published": walks.published(plan)}


def _refusal(known: int, found: int, error: Exception) -> str:
    return f"the job cannot run version {found} of the registry, and continues with version {known}: {error}"
