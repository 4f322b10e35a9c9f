"""The events of a job: the driver and the job emit them, and a command shows them as lines. And the clock of a driver.

A trouble is what a running job waits for: a part outside of it that does not answer, or answers too slowly. The log says it
when a trouble begins, every SAY_AGAIN_SECONDS while it lasts, and when it ends. `status`, the page of the driver and its
`/health` call a job with a trouble degraded: the job continues by itself, and no person must act yet.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from threading import Lock
from time import monotonic, sleep, time
from typing import Any, Literal, Protocol

from processor.text import duration_text

Level = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """An event of a job. `what`: its kind, the same at each time; `text`: for people. `fields`: its figures, JSON values: the
    counts of a round, or the state of the job. `seconds`: how long a round took."""

    what: str
    text: str = ""
    level: Level = "info"
    fields: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


Report = Callable[[JobEvent], None]
"""Takes the events of a job, from several threads."""


def no_report(_event: JobEvent) -> None:
    """Discards the events."""


_STARTED = time() - monotonic()


def steady_time() -> float:
    """Seconds since 1970 that never go back: an operator who sets the machine's clock changes no age of a trouble."""
    return _STARTED + monotonic()


SAY_AGAIN_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A part that the job waits for. `part`: its name, such as `registry`; `text`: what fails, with the address and what the job
    does meanwhile; `cure`: what an operator can do. `since`: when it began; `said`: when the log said it last; `gives_up`: when
    the job ends, None for a job that waits longer; all in seconds since 1970."""

    part: str
    text: str
    cure: str
    since: float
    said: float
    gives_up: float | None = None


class Troubles:
    """The troubles of a process's job, one for each part. They outlast a job that opens again. `clock`: seconds since 1970, the
    one clock of all outages."""

    def __init__(self, report: Report, clock: Callable[[], float] = steady_time) -> None:
        self._report, self.clock = report, clock
        self._by_part: dict[str, Trouble] = {}
        self._answers: dict[str, float] = {}
        self._lock = Lock()

    @property
    def now(self) -> tuple[Trouble, ...]:
        """Those that last, the oldest first."""
        with self._lock:
            return tuple(sorted(self._by_part.values(), key=lambda trouble: trouble.since))

    def of(self, part: str) -> Trouble | None:
        """The trouble with this part; None without one."""
        return self._by_part.get(part)

    def answered(self, part: str, after: float) -> bool:
        """Whether the part has answered somebody after this time: then a failure before it is no news."""
        return self._answers.get(part, after) > after

    def begin(self, part: str, text: str, cure: str, gives_up: float | None = None) -> None:
        """Notes that a part fails. Call it at each failure: the trouble keeps its begin, and the log repeats it now and then. A
        caller who does not know when the job gives up leaves that as it is."""
        now = self.clock()
        with self._lock:
            known = self._by_part.get(part)
            says = known is None or now - known.said >= SAY_AGAIN_SECONDS
            since, said = (known.since, known.said) if known else (now, now)
            ends = gives_up or (known.gives_up if known else None)
            trouble = Trouble(part=part, text=text, cure=cure, since=since, said=now if says else said, gives_up=ends)
            self._by_part[part] = trouble
        if says:
            self._report(
                JobEvent(what="degraded", text=trouble_line(trouble, now), level="warning", fields={"part": part})
            )

    def say_again(self) -> None:
        """Lets the log repeat the troubles that are due: a part may be asked less often than every SAY_AGAIN_SECONDS."""
        for trouble in self.now:
            if self.clock() - trouble.said >= SAY_AGAIN_SECONDS:
                self.begin(trouble.part, trouble.text, trouble.cure)

    def end(self, part: str) -> None:
        """Notes that a part answers. Costs next to nothing while it has no trouble."""
        self._answers[part] = self.clock()
        if part not in self._by_part:
            return
        with self._lock:
            ended = self._by_part.pop(part, None)
        if ended is not None:
            text = f"the {part} answers again after {duration_text(self.clock() - ended.since)}"
            self._report(JobEvent(what="recovered", text=text, fields={"part": part}))

    def as_json(self) -> list[dict[str, Any]]:
        """The troubles as JSON values, for the report of the job."""
        return [asdict(trouble) for trouble in self.now]


def degraded_lines(report: Mapping[str, Any]) -> list[str]:
    """The troubles in the report of a job, and its topics with too many dead letters, a line each for people."""
    return waiting_lines(report) + reject_lines(report)


def waiting_lines(report: Mapping[str, Any]) -> list[str]:
    """The troubles in the report of a job, a line each: it waits, and continues by itself."""
    return [
        _line(one["part"], one["text"], report["at"], one["since"], one["cure"], one.get("gives_up"))
        for one in report.get("troubles", ())
    ]


def reject_lines(report: Mapping[str, Any]) -> list[str]:
    """The topics with too many dead letters in the report of a job, a line each: the job may stop."""
    return [one["text"] for one in report.get("rejects", ()) if one["text"]]


def trouble_line(trouble: Trouble, now: float) -> str:
    """A trouble in one line, for people."""
    return _line(trouble.part, trouble.text, now, trouble.since, trouble.cure, trouble.gives_up)


def _line(part: str, text: str, now: float, since: float, cure: str, gives_up: float | None) -> str:
    lasts = f", for {duration_text(now - since)}" if now - since >= 1 else ""
    ends = "" if gives_up is None else f"; the job gives up at {_clock_time(gives_up, now)}"
    return f"{part}{lasts}: {text}{ends}: {cure}"


def _clock_time(at: float, now: float) -> str:
    """A time on the clock of this machine, with its date if that is not the date of `now`."""
    one, other = datetime.fromtimestamp(at), datetime.fromtimestamp(now)
    return f"{one:%H:%M:%S}" if one.date() == other.date() else f"{one:%Y-%m-%d %H:%M:%S}"


class Clock(Protocol):
    """Tells the time, and waits."""

    def now(self) -> float:
        """The time since some moment; it never goes back."""

    def date(self) -> float:
        """The time since 1970."""

    def sleep(self, seconds: float) -> None:
        """Waits."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> float:
        return monotonic()

    def date(self) -> float:
        return time()

    def sleep(self, seconds: float) -> None:
        sleep(seconds)


@dataclass(slots=True)
class VirtualClock:
    """A clock that moves only when its owner moves it. `start`: when it begins, in seconds since 1970."""

    seconds: float = 0.0
    start: float = 0.0

    def now(self) -> float:
        return self.seconds

    def date(self) -> float:
        return self.start + self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
