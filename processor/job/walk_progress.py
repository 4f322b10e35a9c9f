"""Keeps in the registry how far the walks of a job are, for `statestore slots`: at most once a second, and only what moved."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from processor.rounds.driver import Driver, Report
from registry.errors import RegistryError
from registry.model import Progress
from registry.repository import Registry

KEEP_SECONDS = 1.0
PASSES = 2
"""A fill reads each row twice: it writes, then it verifies. A publication reads the roots, then about as many ledger entries."""


@dataclass(slots=True, kw_only=True)
class WalkProgress:
    """The report of a driver, which also keeps the progress of its walks, except those that earlier runs ended. `report`: gets
    each round; `show`: gets the progress that was kept. `counts`: the rows of each entity by the last statistics. `kept`: the
    last progress. `next_keep`: on the driver's clock."""

    driver: Driver
    registry: Registry
    report: Report
    show: Callable[[tuple[Progress, ...]], None] = lambda _walks: None
    counts: Mapping[str, int] = field(init=False)
    kept: tuple[Progress, ...] | None = None
    next_keep: float = 0.0

    def __post_init__(self) -> None:
        taken = self.registry.statistics()
        self.counts = {one.entity: one.rows for one in taken.entities} if taken else {}

    def __call__(self, name: str, tally: Mapping[str, int]) -> None:
        self.report(name, tally)
        if self.next_keep <= self.driver.clock.now():
            self.keep()

    def keep(self) -> None:
        """Keeps the progress as it is now. Without a registry it keeps nothing: the checks of rounds report that."""
        self.next_keep = self.driver.clock.now() + KEEP_SECONDS
        began = {walk.walk for walk in self.kept or ()}
        found = progress_of(self.driver, self.counts)
        walks = tuple(walk for walk in found if not walk.done or walk.walk in began)
        if self.kept is not None and list(map(_without_time, walks)) == list(map(_without_time, self.kept)):
            return
        self.kept = walks
        with suppress(RegistryError):
            self.registry.keep_progress(walks)
        self.show(walks)


def progress_of(driver: Driver, counts: Mapping[str, int]) -> tuple[Progress, ...]:
    """How far each walk of the driver is. `counts`: the rows of each entity, as far as they are known."""
    roots = {name: product.product.root for name, product in driver.plan.products.items()}
    return tuple(
        Progress(
            walk=f"{kind} {name}",
            rows=walk.rows,
            written=walk.written,
            of=PASSES * counts.get(name if kind == "fill" else roots[name], 0),
            done=walk.done,
            seconds=max(driver.clock.date() - walk.began, 0),
        )
        for (kind, name), walk in driver.walks.walks.items()
    )


def _without_time(walk: Progress) -> Progress:
    return replace(walk, seconds=0)
