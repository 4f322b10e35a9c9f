"""Names a part that gives no answer while its connections hold: a frozen server, or a network that loses packets. A client waits
for up to a minute then, so that a slow part breaks nothing, and the job would wait without a word.

    1. A round has no end for ROUND_SECONDS. It may be a large one.
    2. So threads ask the store and the schema registry small questions, over clients of their own, while the round lasts. The
       monitor asks the registry anyway.
    3. A part that has not answered for SILENT_SECONDS is a trouble, until it answers, or a batch ends.

The watch ends no request of the job, and a round that ends in time causes no question.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from threading import Event, Thread
from time import time
from typing import Protocol

from processor.engine.rounds.events import Troubles
from processor.environment.settings.settings import Settings
from processor.errors import SchemaRegistryAway
from processor.job.run.outages.outside_parts import QUESTIONS, REGISTRY, Question, cure_of, places
from statestore.errors import Throttled, Transient

LOOK_SECONDS = 1.0
ROUND_SECONDS = 4.0
ASK_SECONDS = 5.0
SILENT_SECONDS = 10.0
JOIN_SECONDS = 2.0


class WorkingJob(Protocol):
    """A job, as the watch sees it. `work`: the number of the round that it works at; None while it has none."""

    troubles: Troubles

    @property
    def settings(self) -> Settings: ...

    @property
    def work(self) -> int | None: ...


class SilentParts:
    """The watch of a job's parts, from `start` to `stop`. `clock`: seconds since 1970. `questions`: of the parts that only this
    watch asks."""

    def __init__(
        self, job: WorkingJob, clock: Callable[[], float] = time, questions: Mapping[str, Question] = QUESTIONS
    ) -> None:
        self._job, self._clock, self._places = job, clock, places(job.settings)
        self._questions = {part: question for part, question in questions.items() if part in self._places}
        self._waits: dict[str, float] = {}
        self._asking: dict[str, Thread] = {}
        self._named = set[str]()
        self._work: int | None = None
        self._since = clock()
        self._ending = Event()
        self._thread = Thread(target=self._look_until_the_end, name="silent parts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread. A question without an answer goes on, and is harmless."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    @contextmanager
    def asking(self, part: str) -> Iterator[None]:
        """Within the block, somebody waits for an answer of the part."""
        self._waits[part] = self._clock()
        try:
            yield
        finally:
            self._waits.pop(part, None)

    def look(self) -> None:
        """Asks the parts that a long round may wait for, and names those that have not answered in time."""
        now, work = self._clock(), self._job.work
        if work is None or work != self._work:
            self._work, self._since = work, now
        if self._lasts:
            for part, question in self._questions.items():
                if part not in self._asking or not self._asking[part].is_alive():
                    self._asking[part] = Thread(
                        target=self._ask, args=(part, question), name=f"asks {part}", daemon=True
                    )
                    self._asking[part].start()
        for part, since in dict(self._waits).items():
            if now - since >= SILENT_SECONDS and (self._lasts or part == REGISTRY):
                self._named.add(part)
                text = f"the {part} at {self._places[part]} has given no answer since {datetime.fromtimestamp(since):%H:%M:%S}"
                self._job.troubles.begin(part, f"{text}; the job may wait for it", cure_of(part))
        self._job.troubles.say_again()

    @property
    def _lasts(self) -> bool:
        """Whether a round goes on for so long that a part may be silent."""
        return self._work is not None and self._clock() - self._since >= ROUND_SECONDS

    def _look_until_the_end(self) -> None:
        while not self._ending.wait(LOOK_SECONDS):
            with suppress(Exception):
                self.look()

    def _ask(self, part: str, question: Question) -> None:
        """Asks the part again and again while the round lasts. A failure to ask says nothing of the part."""
        with suppress(Exception), question(self._job.settings) as ask:
            while self._lasts and not self._ending.is_set():
                with self.asking(part):
                    while not _answers(ask):
                        if not self._lasts or self._ending.wait(LOOK_SECONDS):
                            return
                if part in self._named:
                    self._named.discard(part)
                    self._job.troubles.end(part)
                self._ending.wait(ASK_SECONDS)


def _answers(ask: Callable[[], object]) -> bool:
    """Whether the part answers. One that refuses does."""
    try:
        ask()
    except Throttled:
        return True
    except (Transient, SchemaRegistryAway):
        return False
    except Exception:
        return True
    return True
