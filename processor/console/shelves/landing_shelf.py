"""The landings, as `status` shows them. A thread of its own asks registry and broker, so no page waits long for a broker."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock, Thread
from time import monotonic
from typing import Final

from processor.errors import KafkaError, SettingError
from processor.landing.landing_states import LandingState, landing_states, landings_of
from processor.settings.settings import Settings
from registry.errors import RegistryError
from registry.model import KnownLanding

SHELF_SECONDS: Final = 5.0
FIRST_WAIT: Final = 0.1
"""So long a page waits for an answer, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLandings:
    """The last answer. `why`: why the landings are unknown; `age`: of the answer, in seconds, None before the first."""

    states: tuple[LandingState, ...] = ()
    why: str = ""
    age: float | None = None


@dataclass(slots=True)
class LandingShelf:
    """Asks when somebody looks, at most once in SHELF_SECONDS."""

    settings: Settings
    known: Callable[[], Sequence[KnownLanding]]
    """Those of the registry."""
    _lock: Lock = field(default_factory=Lock)
    _asking: Thread | None = None
    _kept: tuple[float, tuple[LandingState, ...], str] | None = None

    def landings(self) -> KnownLandings:
        """The landings as the last answer had them."""
        with self._lock:
            if self._asking is None and (self._kept is None or monotonic() - self._kept[0] > SHELF_SECONDS):
                self._asking = Thread(target=self._ask, name="landings", daemon=True)
                self._asking.start()
            asking = self._asking
        if asking is not None:
            asking.join(FIRST_WAIT)
        if (kept := self._kept) is None:
            return KnownLandings(why="the broker has not answered yet")
        at, states, why = kept
        return KnownLandings(states=states, why=why, age=monotonic() - at)

    def _ask(self) -> None:
        states, why = self._kept[1] if self._kept else (), "the broker could not be asked"
        try:
            known = self.known()
            states = states or tuple(landings_of(known, ()))
            states, why = tuple(landing_states(known, self.settings.bootstrap_servers, dict(self.settings.kafka))), ""
        except (KafkaError, SettingError, RegistryError) as error:
            why = str(error)
        finally:
            self._kept, self._asking = (monotonic(), states, why), None
