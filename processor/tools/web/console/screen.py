"""A screen of the console: a path with its content, and with the edit that its form makes. With what all screens share: the
request as a screen sees it, the parts that screens look at and work with, and the lines of a JSON value on a page.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from processor.environment.settings.settings import Settings
from processor.job.landing.landing import LandingState
from processor.job.run.binding import look_up_stores, widen_table
from processor.job.run.dead_letters import LetterFate
from processor.text import shortened
from processor.tools.inspect.preview import Preview
from processor.tools.inspect.prices import DEFAULT, Prices
from processor.tools.web.answers import LookUpProblem, Questions
from processor.tools.web.serve.reader import PlanView, StateReader, StorePool
from processor.values import canonical_json
from registry.edits import operations
from registry.edits.edit import Signature
from registry.model import Statistics

if TYPE_CHECKING:
    from registry.repository import Registry

MOST_REASON = 500
"""Characters of a reason."""
LONGEST_KEY = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Who sends a request."""

    name: str
    """For the history of the registry."""
    role: str | None = None
    """Of the registry, as which the console works for the person; None for that of the console's connection."""
    may_edit: bool = False
    """Whether the database gives it the rights of an operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A request. `query`, `form`: its fields."""

    person: Person
    query: Mapping[str, str] = field(default_factory=dict)
    form: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def asked(self, name: str) -> str:
        """A field of the form, else of the query; empty without it."""
        return self.written(name).strip()

    def written(self, name: str) -> str:
        """The same with the blanks at its ends, which a key may have."""
        return next(iter(self.form.get(name, ())), self.query.get(name, ""))

    def key(self, name: str) -> str:
        """A key, as the person wrote it. Raises LookUpProblem for one that is too long for a screen."""
        text = self.written(name)
        if len(text) > LONGEST_KEY:
            raise LookUpProblem(400, f"the key has more than {LONGEST_KEY:,} characters: use `statestore get` or `row`")
        return text

    def number(self, name: str) -> int:
        """A field that is a whole number. Raises LookUpProblem for another text."""
        text = self.asked(name)
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            raise LookUpProblem(400, f"`{name}` must be a whole number, not {text[:40]!r}")
        return int(text)

    def signature(self) -> Signature:
        """Who makes an edit, and why. Raises LookUpProblem for a person who may not edit, or without a reason."""
        if not self.person.may_edit:
            raise LookUpProblem(
                403,
                "you may read here, and change nothing: your role lacks the rights of an operator (`statestore roles`): start "
                "the console with your name in --operators, or with a connection that has the role of an operator",
            )
        why = self.asked("why")
        if not why or len(why) > MOST_REASON:
            raise LookUpProblem(400, f"the history needs your reason: 1 to {MOST_REASON} characters")
        return Signature(self.person.name, why)


@dataclass(slots=True)
class SlotWidening:
    """Adds slots as `statestore add-slots` does: first the table's indexes, which may take minutes, then the registry's number. A
    thread works behind the pages. `message`: how far the last adding of this process is, or how it ended; empty before it."""

    settings: Settings
    message: str = ""
    _thread: Thread | None = None
    _lock: Lock = field(default_factory=Lock)

    def start(self, registry: "Registry", by: Signature, slots: int) -> None:
        """Begins to add slots up to this number, with the rights of this registry. Raises LookUpProblem while an earlier
        adding works."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                raise LookUpProblem(409, f"slots are being added: {self.message}")
            self.message = f"slots up to GSI_{slots}: begins"
            self._thread = Thread(target=self._widen, args=(registry, by, slots), name="add slots", daemon=True)
            self._thread.start()

    def wait(self) -> None:
        """Waits for the end."""
        if self._thread is not None:
            self._thread.join()

    def _widen(self, registry: "Registry", by: Signature, slots: int) -> None:
        try:
            widen_table(self.settings, registry, slots, self._progress)
            applied = registry.operate(by, operations.add_slots, slots)
        except Exception as error:  # of the store or the registry; the page shows it
            self.message = f"slots up to GSI_{slots}: {error}; add them again, and the work continues where it ended"
        else:
            self.message = f"registry version {applied.version}: {'; '.join(applied.changes) or 'nothing changed'}"

    def _progress(self, text: str) -> None:
        self.message = text


BROKER_SECONDS: Final = 2.0
"""Seconds that a page waits for the broker. Then the page shows what is known."""
MOST_ANSWERS: Final = 40
"""Answers of the broker about single messages that the console keeps."""
ANSWER_SECONDS: Final = 5.0
"""Seconds that a thread behind the pages waits for one answer of the broker."""
LOOK_UPS: Final = 2
"""Look-ups that read at the same time."""
OpenReader = Callable[[], StateReader]


class LetterPage(NamedTuple):
    """The letters among some messages of the topic, in the order of their positions. `messages`: that the topic has at most;
    `earlier`: the place of the page of the messages before these, empty where there are none; `why`: why this is not the present
    page, and empty where it is; `age`: of the page, in seconds, None where the broker has not shown it yet."""

    letters: list[LetterFate]
    messages: int
    earlier: str = ""
    why: str = ""
    age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownLandings:
    """The last answer. `why`: why the landings are unknown; `age`: of the answer, in seconds, None before the first."""

    states: tuple[LandingState, ...] = ()
    why: str = ""
    age: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleParts:
    """What the screens look at and work with: the registry, the table and the dead letters."""

    registry: "Registry"
    settings: Settings
    open_reader: OpenReader
    """The look-ups in the table. Raises where there is no table of this registry yet."""
    letters: Callable[[str], LetterPage]
    """The page of dead letters before a place, each with what became of it."""
    event_prices: Callable[[], Preview]
    """The prices of events."""
    known_prices: Callable[[], Preview | None]
    """The prices that the console computed last, without a wait."""
    landings: Callable[[], KnownLandings]
    """The landings that the broker knows."""
    widening: SlotWidening
    prices: Prices = DEFAULT
    """The price list of AWS."""
    broker: Questions = field(
        default_factory=lambda: Questions("the broker", most=MOST_ANSWERS, patience=BROKER_SECONDS)
    )
    """Questions about single messages and records."""

    def acting_as(self, role: str | None) -> Self:
        """The parts for a person of this role of the registry, or for one with the role of its connection."""
        return self if role is None else replace(self, registry=self.registry.acting_as(role))

    def preload(self) -> None:
        """Loads what the first visits would wait for, in threads behind the pages. Where a part fails, its page says why."""
        for part in (self.event_prices, partial(self.letters, ""), self.open_reader):
            Thread(target=_try, args=(part,), name="first look", daemon=True).start()


def _try(part: Callable[[], object]) -> None:
    with suppress(Exception):
        part()


@dataclass(slots=True)
class LazyReader:
    """Opens the table at the first look-up, and keeps it open: a console may begin before the first run of the job."""

    registry: "Registry"
    settings: Settings
    _open: ExitStack = field(default_factory=ExitStack)
    _reader: StateReader | None = None
    _lock: Lock = field(default_factory=Lock)

    def reader(self) -> StateReader:
        """The look-ups. Raises OwnedByAnother where the registry has no table yet, or another one."""
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


def time_of(counted: Statistics | Preview | None) -> str | None:
    """When the rows of the state were counted; None where they were not counted."""
    at = counted.taken_at if counted else None
    return at.isoformat(timespec="seconds") if at else None


MOST_LINES = 600
"""Lines of a value that a page shows and compares; a longer one is cut."""
LONGEST_LINE = 2_000
"""Characters of a line."""
AROUND = 4
"""Equal lines that a page shows around a change."""


def value_lines(value: Any) -> list[str]:
    """A JSON value as lines, cut after MOST_LINES; no lines for None."""
    if value is None:
        return []
    lines = [shortened(line, LONGEST_LINE) for line in canonical_json.dumps_indented(value).split("\n")]
    more = [f"… and {len(lines) - MOST_LINES:,} more lines"] if len(lines) > MOST_LINES else []
    return [*lines[:MOST_LINES], *more]


def diff_rows(before: Any, after: Any) -> list[dict[str, str]]:
    """The lines that differ, with those around them: each with `sign` `+`, `-`, a space, or `@` between two places."""
    lines = list(unified_diff(value_lines(before), value_lines(after), n=AROUND, lineterm=""))[2:]
    if lines and lines[0].startswith(("@@ -1,", "@@ -0,")):
        del lines[0]  # nothing is left out before the first line
    return [{"sign": line[:1], "text": "…" if line.startswith("@@") else line[1:]} for line in lines]


def matches(search: str, *texts: object) -> bool:
    """Whether each word of a search is in one of the texts, in capitals or not. Nothing to search for: every text."""
    words = search.casefold().split()
    return not words or all(any(word in str(text).casefold() for text in texts) for word in words)


Content = Mapping[str, Any]
"""JSON values: a template shows them, and `/api` gives them as they are."""
Show = Callable[[ConsoleParts, Visit], Content]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditDone:
    """An edit is made. `to`: the path of the page that shows its effect; `message`: a sentence for that page."""

    to: str
    message: str


Act = Callable[[ConsoleParts, Visit], EditDone]


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """A screen."""

    path: str
    """Of its route."""
    menu: str
    """Its name in the menu."""
    template: str
    """Of its page."""
    show: Show
    act: Act | None = None
    """Makes the edit of its form."""
