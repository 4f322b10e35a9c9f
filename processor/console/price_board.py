"""The prices of the registry's events, as `statestore plan` computes them: once for each version and statistics."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final

from processor.errors import StatestoreError
from processor.plan.planning import plan_of
from processor.pricing.preview import Preview, preview
from processor.product.product import Definitions
from processor.settings.settings import Settings
from registry.edits.advance import completed
from registry.errors import RegistryError

if TYPE_CHECKING:
    from registry.repository import Registry

FIRST_WAIT: Final = 0.1
"""So long a page waits for prices that are being computed, in seconds."""


@dataclass(slots=True)
class PriceBoard:
    """The last prices."""

    registry: "Registry"
    settings: Settings
    _lock: Lock = field(default_factory=Lock)
    _kept: tuple[tuple[int, datetime | None], Preview] | None = None
    _computing: Thread | None = None

    def known(self) -> Preview | None:
        """The last prices, perhaps of an earlier version: a thread of its own computes the present ones. None before the first,
        and where there are none: `prices` says why."""
        if self._computing is None or not self._computing.is_alive():
            self._computing = Thread(target=self._compute, name="prices", daemon=True)
            self._computing.start()
        self._computing.join(FIRST_WAIT)
        return self._kept[1] if self._kept else None

    def prices(self) -> Preview:
        """A plan that changes nothing, with the price of each event. Raises PlanError for a registry without definitions."""
        stored, has_run = self.registry.snapshot_for_apply()
        statistics = self.registry.statistics.last()
        of = (stored.version, statistics.taken_at if statistics else None)
        with self._lock:
            if self._kept is None or self._kept[0] != of:
                plan = plan_of(completed(stored))
                products = {name: one.product for name, one in plan.products.items()}
                definitions = Definitions(entities=dict(plan.declared_entities), products=products)
                self._kept = (of, preview(definitions, stored, has_run, self.settings, statistics))
            return self._kept[1]

    def _compute(self) -> None:
        with suppress(StatestoreError, RegistryError):
            self.prices()
