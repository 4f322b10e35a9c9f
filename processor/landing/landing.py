"""The loop of a landing: reads batches of the product's topic, and lets the target take each.

The target's offsets decide where a partition goes on, so no crash and no repeated delivery changes what the target holds. While
the target is away, the loop keeps its batch and tries again, after pauses that grow.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from random import uniform
from threading import Event
from time import monotonic, time
from typing import Final, TypeVar

from processor.errors import KafkaError, Stopped
from processor.kafka.group_reader import GroupReader, Offsets, TopicPortion
from processor.landing.landed_message import read_message
from processor.landing.landing_states import landing_note
from processor.landing.target import Target, TargetAway
from processor.rounds.job_event import JobEvent, Report
from processor.rounds.troubles import Troubles

BATCH: Final = 1_000
"""The most messages of a batch."""
WAIT_SECONDS: Final = 0.5
"""The longest wait for more messages before a batch lands."""
ASK_SECONDS: Final = 10.0
"""After so long a silence the landing asks the broker for an answer."""
SAY_SECONDS: Final = 10.0
"""Between two lines about what landed."""
PAUSE_SECONDS: Final = 10.0
"""The longest pause before another try."""
KAFKA: Final = "broker"
_T = TypeVar("_T")


@dataclass(slots=True, kw_only=True)
class Landing:
    """One process of a landing. `join`: joins the group of the product's topic, with the target's offsets. `goal`: the offsets
    that the topic had at the start; a landing that runs `once` ends there. `tally`: the counts of this process so far. `shown`:
    whether readers see the documents. `behind`: how many messages of its partitions wait. `landed_at`: when a batch landed last,
    in seconds since 1970."""

    product: str
    target: Target
    join: Callable[[Offsets], GroupReader]
    troubles: Troubles
    report: Report
    stopping: Event
    goal: Mapping[int, int]
    once: bool
    tally: Counter[str] = field(default_factory=Counter)
    shown: bool = False
    behind: int = 0
    landed_at: float | None = None
    _said: Counter[str] = field(default_factory=Counter)
    _said_at: float = field(default_factory=monotonic)
    _waiting: str = ""
    _heard_at: float = field(default_factory=monotonic)

    def run(self) -> None:
        """Lands until the goal, or until `stopping` is set. Raises KafkaError, LandingError."""
        reader = self.join(lambda partitions: self._until_done(lambda: self.target.offsets(partitions)))
        with closing(reader), suppress(Stopped):
            while not self.stopping.is_set():
                reading = reader.read(BATCH, WAIT_SECONDS)
                if reading.ends:
                    self._land(reader, reading)
                elif self.once and self._show():
                    break
                else:
                    self._ask(reader)
                self._say()

    def _land(self, reader: GroupReader, reading: TopicPortion) -> None:
        self._heard_at = monotonic()
        self.troubles.end(KAFKA)
        messages = [message for record in reading.records if (message := read_message(record, self.product))]
        self.tally["foreign"] += len(reading.records) - len(messages)
        self.tally += self._until_done(lambda: self.target.land(messages, reading.ends))
        self.behind, self.landed_at = reader.behind(), time()
        reader.show(reading.ends, landing_note(self.product, self.target.place, self.landed_at))

    def _show(self) -> bool:
        """Whether all has landed that the topic held at the start. Then readers see it, where they have not seen it yet."""
        landed = self._until_done(lambda: self.target.offsets(self.goal))
        if any(landed.get(partition, -1) < end for partition, end in self.goal.items()):
            return False
        waiting = self._until_done(self.target.show)
        if waiting != self._waiting:
            state = f"readers do not see it yet: {waiting}" if waiting else "readers see it"
            self.report(JobEvent(what="complete", text=f"{self.target.place} is complete, and {state}"))
        self.shown, self._waiting = not waiting, waiting
        return True

    def _ask(self, reader: GroupReader) -> None:
        """Asks the broker for an answer, where it was silent for a while: its client reports no broker that is away."""
        if monotonic() - self._heard_at < ASK_SECONDS:
            return
        try:
            reader.ask()
        except KafkaError as error:
            self.troubles.begin(KAFKA, str(error), "start the broker, or wait; the landing goes on by itself")
        else:
            self.troubles.end(KAFKA)
        self._heard_at = monotonic()

    def _until_done(self, work: Callable[[], _T]) -> _T:
        """Does the work, again while the target is away. Raises Stopped where a signal ends the landing meanwhile."""
        pause = 0.1
        while True:
            try:
                done = work()
            except TargetAway as error:
                self.troubles.begin(error.part, str(error), error.cure)
            else:
                self.troubles.end("target")
                return done
            if self.stopping.wait(uniform(0, pause)):
                raise Stopped("stopped on request")
            pause = min(2 * pause, PAUSE_SECONDS)

    def _say(self) -> None:
        """Says now and then what landed meanwhile, and shows it to readers."""
        seconds = monotonic() - self._said_at
        if seconds < SAY_SECONDS:
            return
        if not (self.shown or self.once):
            self._show()
        if new := self.tally - self._said:
            rate = (new["landed"] + new["deleted"]) / seconds
            text = f"{landed_text(new)}; {rate:,.0f} documents/s, {self.behind:,} messages behind"
            fields = {**new, "behind": self.behind, "per_second": round(rate, 1)}
            self.report(JobEvent(what="landed", text=text, fields=fields))
        self._said, self._said_at = self.tally.copy(), monotonic()


def landed_text(counts: Mapping[str, int]) -> str:
    """The counts of a landing, for people."""
    parts = [f"{counts.get('landed', 0):,} documents landed", f"{counts.get('deleted', 0):,} deleted"]
    more = {
        "refused": "refused by the target",
        "foreign": "messages of another product left out",
        "later": "of a later version of the product: start another `land` for it",
    }
    return ", ".join(parts + [f"{counts[name]:,} {words}" for name, words in more.items() if counts.get(name)])
