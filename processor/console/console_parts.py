"""What the screens of the console look at and work with: the registry, the table and the dead letters."""

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Final, Self

from processor.console.shelves.landing_shelf import KnownLandings
from processor.console.shelves.letter_page import LetterPage
from processor.console.slot_widening import SlotWidening
from processor.job.binding import look_up_stores
from processor.pricing.preview import Preview
from processor.pricing.price_list import DEFAULT, Prices
from processor.serve.reader import StateReader, StorePool
from processor.serve.views import PlanView
from processor.settings.settings import Settings

if TYPE_CHECKING:
    from registry.repository import Registry

LOOK_UPS: Final = 2
"""Look-ups that read at the same time."""
OpenReader = Callable[[], StateReader]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleParts:
    """The parts. `open_reader`: the look-ups in the table; raises where there is no table of this registry yet. `letters`: a page
    of dead letters before a place, each with what became of it. `price_board`: the prices of events; `known_prices`:
    those computed last, without a wait. `landings`: those that the broker knows. `widening`: adds slots."""

    registry: "Registry"
    settings: Settings
    open_reader: OpenReader
    letters: Callable[[str], LetterPage]
    price_board: Callable[[], Preview]
    known_prices: Callable[[], Preview | None]
    landings: Callable[[], KnownLandings]
    widening: SlotWidening
    prices: Prices = DEFAULT

    def acting_as(self, role: str | None) -> Self:
        """The parts for a person of this role of the registry, or for one with the role of its connection."""
        return self if role is None else replace(self, registry=self.registry.acting_as(role))

    def warm(self) -> None:
        """Begins to make what the first visits would wait for, behind the pages. Where a part fails, its page says why."""
        for part in (self.price_board, partial(self.letters, ""), self.open_reader):
            Thread(target=_try, args=(part,), name="first look", daemon=True).start()


def _try(part: Callable[[], object]) -> None:
    with suppress(Exception):
        part()


@dataclass(slots=True)
class TableDoor:
    """Opens the table at the first look-up, and keeps it open: a console may begin before the first run of the job."""

    registry: "Registry"
    settings: Settings
    _open: ExitStack = field(default_factory=ExitStack)
    _reader: StateReader | None = None
    _lock: Lock = field(default_factory=Lock)

    def reader(self) -> StateReader:
        """The look-ups. Raises ForeignPart where the registry has no table yet, or another one."""
        with self._lock:
            if self._reader is None:
                stores = self._open.enter_context(look_up_stores(self.settings, self.registry, LOOK_UPS))
                self._reader = StateReader(
                    stores=StorePool(stores),
                    view=PlanView(snapshot=self.registry.snapshot, jobs=self.registry.jobs),
                    boundaries=lambda entities: self.registry.epochs([], list(entities)),
                )
            return self._reader

    def close(self) -> None:
        """Closes the table."""
        self._open.close()
