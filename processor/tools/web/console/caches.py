"""Caches of what the broker and the prices answer slowly: dead letters, landings, and the prices of events.

Promises: no page waits long for landings or for prices, which threads behind the pages read. A page of dead letters is bounded in
messages and in bytes, and the console reads it at most once in some seconds.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple

from processor.engine.plan.planning import plan_of
from processor.engine.protocol.replays import replay_key
from processor.environment.settings.settings import Settings
from processor.errors import KafkaError, SettingError, StatestoreError
from processor.job.kafka.topic_page import TopicPage, read_page
from processor.job.landing.landing_states import LandingState, landing_states, landings_of
from processor.job.run.letter_fates import LetterFate, with_fates
from processor.language.product.product import Definitions
from processor.tools.inspect.preview import Preview, preview
from processor.tools.web.problem import LookUpProblem
from processor.tools.web.serve.reader import StateReader
from processor.values.dead_letters import DeadLetter, read_dead_letters
from registry.edits.operations import completed
from registry.errors import RegistryError
from registry.model import KnownLanding

if TYPE_CHECKING:
    from registry.repository import Registry

FRESH_SECONDS: Final = 5.0
"""For these seconds the console shows an answer of the broker without another look."""
OLD_SECONDS: Final = 60.0
"""The same of an earlier page of dead letters, which changes only by what the topic deletes."""
FIRST_WAIT: Final = 0.1
"""Seconds that a page waits for a read behind the pages."""
MOST_MESSAGES: Final = 2_000
MOST_BYTES: Final = 32 * 1024 * 1024
MOST_PAGES: Final = 4
"""Pages of dead letters that the console keeps."""
MOST_TEXT: Final = 8_000
_PLACE: Final = re.compile(r"(\d{1,6})-(\d{1,19})", re.ASCII)


class LetterPage(NamedTuple):
    """The letters among some messages of the topic, in the order of their positions. `messages`: that the topic has at most;
    `earlier`: the place of the page of the messages before these, empty where there are none."""

    letters: list[LetterFate]
    messages: int
    earlier: str = ""


def place_text(offsets: Mapping[int, int]) -> str:
    """The place before these offsets, by partition."""
    return ".".join(f"{partition}-{offset}" for partition, offset in sorted(offsets.items()))


def read_place(text: str) -> dict[int, int]:
    """The offsets of a place; none of the empty text, which names the end of the topic. Raises LookUpProblem."""
    places = [_PLACE.fullmatch(part) for part in text.split(".")] if text else []
    if len(text) > MOST_TEXT or not all(places):
        raise LookUpProblem(400, f"`before` must be a place that a page gave, such as 0-2000.1-1990, not {text[:40]!r}")
    return {int(one[1]): int(one[2]) for one in places if one}


@dataclass(slots=True)
class DeadLetterCache:
    """The dead letters of a job, a page of the topic at a time from its end, with what became of each. `open_reader`: of its
    table, which has the notes of replays."""

    settings: Settings
    open_reader: Callable[[], StateReader]
    _lock: Lock = field(default_factory=Lock)
    _kept: OrderedDict[str, tuple[float, TopicPage, list[DeadLetter]]] = field(default_factory=OrderedDict)

    def letters(self, before: str) -> LetterPage:
        """The page before a place. What became of each letter is as of now."""
        page, found = self._read(before)
        keys = [replay_key(letter.rejected.record) for letter in found]
        fates = with_fates(found, self.open_reader().items(keys) if keys else ())
        return LetterPage(fates, page.messages, place_text(page.begins) if page.has_earlier else "")

    def _read(self, before: str) -> tuple[TopicPage, list[DeadLetter]]:
        settings, place = self.settings, read_place(before)
        if not settings.bootstrap_servers:
            raise LookUpProblem(503, "dead letters are in Kafka: start the console with --bootstrap-servers")
        with self._lock:
            kept = self._kept.get(before)
            if kept is None or monotonic() - kept[0] > (OLD_SECONDS if before else FRESH_SECONDS):
                try:
                    page = read_page(
                        settings.bootstrap_servers,
                        dict(settings.kafka),
                        settings.rejects_topic,
                        place,
                        most=MOST_MESSAGES,
                        most_bytes=MOST_BYTES,
                    )
                except KafkaError as error:
                    raise LookUpProblem(503, f"{error}; this page goes on when the broker answers") from None
                self._kept[before] = kept = (monotonic(), page, read_dead_letters(page.records, []))
                while len(self._kept) > MOST_PAGES:
                    self._kept.popitem(last=False)
            return kept[1], kept[2]


class BackgroundRead:
    """Runs a read in a thread of its own, one at a time. `due`: whether the last answer is too old."""

    def __init__(self, name: str, read: Callable[[], None], due: Callable[[], bool] = lambda: True) -> None:
        self._name, self._read, self._due = name, read, due
        self._lock = Lock()
        self._thread: Thread | None = None

    def look(self) -> None:
        """Begins the read, if it is due and does not run yet. Waits for its end, but at most FIRST_WAIT."""
        with self._lock:
            if (self._thread is None or not self._thread.is_alive()) and self._due():
                self._thread = Thread(target=self._read, name=self._name, daemon=True)
                self._thread.start()
            thread = self._thread
        if thread is not None:
            thread.join(FIRST_WAIT)

    def wait(self) -> None:
        """Waits for the end of a read."""
        if self._thread is not None:
            self._thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLandings:
    """The last answer. `why`: why the landings are unknown; `age`: of the answer, in seconds, None before the first."""

    states: tuple[LandingState, ...] = ()
    why: str = ""
    age: float | None = None


class LandingCache:
    """The landings, as `status` shows them. Asks registry and broker when a page shows them, at most once in FRESH_SECONDS.
    `known`: those of the registry."""

    def __init__(self, settings: Settings, known: Callable[[], Sequence[KnownLanding]]) -> None:
        self._settings, self._known = settings, known
        self._kept: tuple[float, tuple[LandingState, ...], str] | None = None
        self._asking = BackgroundRead("landings", self._ask, self._is_old)

    def landings(self) -> KnownLandings:
        """The landings as the last answer had them."""
        self._asking.look()
        if (kept := self._kept) is None:
            return KnownLandings(why="the broker has not answered yet")
        at, states, why = kept
        return KnownLandings(states=states, why=why, age=monotonic() - at)

    def _is_old(self) -> bool:
        return self._kept is None or monotonic() - self._kept[0] > FRESH_SECONDS

    def _ask(self) -> None:
        states, why = self._kept[1] if self._kept else (), "the broker could not be asked"
        try:
            known = self._known()
            states = states or tuple(landings_of(known, ()))
            states, why = tuple(landing_states(known, self._settings.bootstrap_servers, dict(self._settings.kafka))), ""
        except (KafkaError, SettingError, RegistryError) as error:
            why = str(error)
        finally:
            self._kept = monotonic(), states, why


class PriceCache:
    """The prices of the registry's events, as `statestore plan` computes them: once for each version and statistics."""

    def __init__(self, registry: "Registry", settings: Settings) -> None:
        self._registry, self._settings = registry, settings
        self._lock = Lock()
        self._kept: tuple[tuple[int, datetime | None], Preview] | None = None
        self._computing = BackgroundRead("prices", self._compute)

    def known(self) -> Preview | None:
        """The last prices, perhaps of an earlier version: a thread of its own computes the present ones. None before the first,
        and where there are none: `prices` says why."""
        self._computing.look()
        return self._kept[1] if self._kept else None

    def prices(self) -> Preview:
        """A plan that changes nothing, with the price of each event. Raises PlanError for a registry without definitions."""
        stored, has_run = self._registry.snapshot_for_apply()
        statistics = self._registry.statistics.last()
        of = (stored.version, statistics.taken_at if statistics else None)
        with self._lock:
            if self._kept is None or self._kept[0] != of:
                plan = plan_of(completed(stored))
                products = {name: one.product for name, one in plan.products.items()}
                definitions = Definitions(entities=dict(plan.declared_entities), products=products)
                self._kept = (of, preview(definitions, stored, has_run, self._settings, statistics))
            return self._kept[1]

    def _compute(self) -> None:
        with suppress(StatestoreError, RegistryError):
            self.prices()
