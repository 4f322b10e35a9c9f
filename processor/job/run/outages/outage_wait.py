"""The wait of a job between two runs, while a part outside of it does not answer.

A pause is random, between 0 and a limit that doubles with each failure in a row ("full jitter"): jobs that one outage stopped do
not come back all at once. The job asks a part that does not answer again within seconds. A store that throttles gets minutes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from threading import Event
from time import monotonic, time

from processor.engine.rounds.events import Troubles
from processor.errors import Outage, Stopped
from processor.text import duration_text

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 15.0
LONGEST_THROTTLED_SECONDS = 120.0
MOST_RUNS = 20
"""Runs in a row that opened, and failed before they worked: then the part answers the start only, and the wait counts as one."""
LOOK_SECONDS = 1.0
"""Between two looks at the clock, so that the log repeats the trouble in time."""


@dataclass(slots=True, kw_only=True)
class OutageWait:
    """The wait for the part that failed last. `seconds`: the longest wait for a part that does not answer. A store that throttles
    answers, so the job never gives it up. `places`: the addresses of parts. `outage`: the last failure; `failures`: how many in a
    row; `runs`: how many of them after a start; `first`: when the first of them was; `since`: when the first was after a start
    that the part answered. `clock`: in seconds."""

    troubles: Troubles
    stopping: Event
    seconds: float
    places: Mapping[str, str] = field(default_factory=dict)
    random: Random = field(default_factory=Random)
    clock: Callable[[], float] = monotonic
    outage: Outage | None = None
    failures: int = 0
    runs: int = 0
    first: float = 0.0
    since: float = 0.0
    answered: bool = False

    def note(self, outage: Outage) -> None:
        """Notes a failure. The wait for another part begins now, and that for a part that has answered meanwhile."""
        now = self.clock()
        if self.outage is None:
            self.first, self.failures, self.runs = now, 0, 0
        if self.outage is None or self.answered or self.outage.part != outage.part:
            self.since = now
        self.answered = False
        place = self.places.get(outage.part, "")
        named = f"{outage} (the {outage.part} is at {place})" if place and place not in str(outage) else str(outage)
        self.outage = Outage(named, part=outage.part, cure=outage.cure, throttled=outage.throttled)
        self.failures += 1

    def opened(self) -> None:
        """Notes that the parts answered a start of the job."""
        self.answered = True
        self.runs += 1

    def forget(self) -> None:
        """Notes that the job has worked since the last failure."""
        self.outage = None

    def pause(self) -> None:
        """Waits for the next try. Raises Stopped when an operator stops the job, and Outage after the longest wait."""
        outage = self.outage
        assert outage is not None
        longest = LONGEST_THROTTLED_SECONDS if outage.throttled else LONGEST_SECONDS
        until = self.clock() + self.random.uniform(0, min(longest, FIRST_SECONDS * 2.0 ** min(self.failures, 16)))
        while True:
            self.troubles.begin(outage.part, f"{outage}; the job waits, and then goes on where it was", outage.cure)
            since = self.first if self.runs > MOST_RUNS else self.since
            if not outage.throttled and self.clock() - since > self.seconds:
                raise self._given_up(outage, self.clock() - since)
            if self.stopping.wait(max(0.0, min(LOOK_SECONDS, until - self.clock()))):
                raise Stopped("stopped on request")
            if self.clock() >= until:
                return

    def _given_up(self, outage: Outage, waited: float) -> Outage:
        since = datetime.fromtimestamp(time() - waited)
        text = (
            f"{outage}; the job has waited for the {outage.part} for {duration_text(waited)}, since {since:%Y-%m-%d %H:%M:%S} "
            f"(--outage-seconds {self.seconds:g}), and ends. No state is lost: {outage.cure}; then start the job again"
        )
        return Outage(text, part=outage.part, cure=outage.cure)
