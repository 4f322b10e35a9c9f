"""The watch of `tests.edits.soak`: looks at the registry and at the walks from outside, some times a second."""

from collections import Counter
from dataclasses import dataclass, field
from threading import Event
from time import time

from processor.engine.protocol.walks import PARTITION, FillGoal, PublishGoal, TruncateGoal, Walk, WalkName, read_walk
from registry.edits.operations import WHY
from registry.errors import RegistryError
from registry.repository import Registry
from statestore.store import Store, StoreError

LOOK_SECONDS = 0.3


@dataclass(slots=True, kw_only=True)
class EditWatch:
    """The observations. `silent`: from when to when the job could publish nothing: no job lived, or all work was paused, or each
    live product was paused or waited for a fill. `applied`: when the job first had applied each version. `published`: when each
    version of a product was published in full. `written`: the rows that each fill rewrote; `seen`: all walks that had rows."""

    registry: Registry
    store: Store
    silent: list[tuple[float, float]] = field(default_factory=list)
    looked: float = field(default_factory=time)
    applied: dict[int, float] = field(default_factory=dict)
    published: dict[tuple[str, int], float] = field(default_factory=dict)
    written: dict[tuple[str, int, int], int] = field(default_factory=dict)
    seen: Counter[str] = field(default_factory=Counter)
    walks: dict[WalkName, Walk] = field(default_factory=dict)
    known: set[tuple[WalkName, FillGoal | PublishGoal | TruncateGoal, int]] = field(default_factory=set)
    stopped: Event = field(default_factory=Event)

    def run(self) -> None:
        """Looks until `stopped` is set."""
        while not self.stopped.wait(LOOK_SECONDS):
            try:
                self.look()
            except (StoreError, RegistryError):
                continue  # the table does not exist yet

    def look(self) -> None:
        """Looks once."""
        jobs = self.registry.jobs()
        for job in jobs:
            for version in range(max(self.applied, default=0) + 1, (job.applied_version or 0) + 1):
                self.applied[version] = time()
        self.walks = dict(map(read_walk, self.store.partition(PARTITION)))
        for name, walk in self.walks.items():
            self._note(name, walk)
        stored, now = self.registry.snapshot(), time()
        held = {name for (_, name), walk in self.walks.items() if walk.held}
        busy = any(not one.paused and one.name not in held for one in stored.products)
        if stored.paused or not busy or not any(job.alive for job in jobs):
            self.silent.append((self.looked, now))
        self.looked = now

    def fills(self) -> bool:
        """Whether the job has written some rows of a fill, and some remain."""
        found = [walk for (kind, _), walk in self.walks.items() if kind == "fill" and not walk.probes]
        return any(walk.written and walk.left for walk in found)

    def settled(self) -> bool:
        """Whether the job has done all that the registry asks for."""
        stored = self.registry.snapshot()
        states = {str(one.state) for one in stored.assignments}
        applied = [job.applied_version for job in self.registry.jobs()]
        self.look()
        return (
            not stored.waiting
            and not any(one.retracted for one in stored.products)
            and states <= {"serving"}
            and applied == [stored.version]
            and all(walk.done for walk in self.walks.values())
        )

    def slowest_version(self) -> float:
        """The longest time from an edit of an operator until the job had applied its version."""
        edits = {one.version: one.at.timestamp() for one in self.registry.history() if one.why != WHY}
        return max((self.applied[v] - at for v, at in edits.items() if v in self.applied), default=0.0)

    def publications(self) -> tuple[list[float], int]:
        """The times from an edit that made a new version of a product to its publication in full; and how many versions
        another edit replaced before."""
        began: dict[tuple[str, int], float] = {}
        for one in reversed(self.registry.history()):
            if one.entry in ("products", "waiting_products") and one.new is not None:
                began.setdefault((one.new["name"], one.new["version"]), one.at.timestamp())
        times = [self.published[key] - at for key, at in began.items() if key in self.published]
        return times, len(began) - len(times)

    def _note(self, name: WalkName, walk: Walk) -> None:
        identity = (name, walk.goal, walk.began)
        if walk.rows and identity not in self.known:
            self.known.add(identity)
            self.seen[name[0]] += 1
        if isinstance(walk.goal, FillGoal):
            fill = (name[1], walk.goal.layout, walk.began)
            self.written[fill] = max(walk.written, self.written.get(fill, 0))
        elif walk.done and isinstance(walk.goal, PublishGoal):
            self.published.setdefault((name[1], walk.goal.version), time())
