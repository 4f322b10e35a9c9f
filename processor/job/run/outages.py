"""What a job does while a dependency outside of it (registry, store, broker, schema registry) does not answer, or takes no work.

    1. An error names the dependency (`OUTAGES`), and a failed run becomes an Outage. The run rests, and keeps its lease.
    2. `OutageWait` waits between two runs. A pause is random, between 0 and a limit that doubles with each failure in a row
       ("full jitter"): jobs that one outage stopped do not come back all at once. The job asks a dependency that does not answer
       again within seconds. A store that throttles gets minutes.
    3. `BatchTroubles` reads the batches: one that ends well ends troubles, a throttled one begins one.
    4. `SilentParts` names a dependency that gives no answer while its connections hold: a frozen server, or a network that loses
       packets. A client waits for up to a minute then, so that a slow dependency breaks nothing.

The watch of 4 begins when a round has no end for ROUND_SECONDS, which may be a large one. So threads ask the store and the schema
registry small questions, over clients of their own, while the round lasts. The monitor asks the registry anyway. A dependency
that has not answered for SILENT_SECONDS is a trouble, until it answers, or a batch ends. The watch ends no request of the job,
and a round that ends in time causes no question.
"""

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from threading import Event, Thread
from time import monotonic, time
from typing import Protocol

from processor.counts import REQUEST
from processor.engine.protocol.identity import IDENTITY
from processor.engine.rounds.events import Troubles, steady_time
from processor.environment.settings.schema_registry import schema_registry_place
from processor.environment.settings.settings import Settings
from processor.environment.stores.kind import RetryBudget
from processor.environment.stores.kinds import kind_of, open_store
from processor.errors import Outage, SchemaRegistryAway, StatestoreError, Stopped
from processor.job.kafka.schemas import open_client
from processor.text import duration_text
from registry.errors import RegistryError
from registry.repository.connection import registry_place
from statestore.store import THROTTLES, StoreError, Throttled, Transient

REGISTRY, STORE, SCHEMA_REGISTRY, BROKER = "registry", "store", "schema registry", "broker"
"""The parts outside of a job."""
OUTAGES = {
    "registry.errors.RegistryUnreachable": (REGISTRY, "start that Postgres, or wait for its failover"),
    "registry.errors.RegistryBusy": (REGISTRY, "end the other edit"),
    "statestore.store.Transient": (STORE, "wait for the store and the network, or look at the server"),
    "statestore.store.Throttled": (
        STORE,
        "wait; or give the table and its indexes more capacity (on demand, warm throughput), write less at once (a smaller "
        "--batch-size), and spread an entity with many writes over `shards`",
    ),
    "processor.errors.SchemaRegistryAway": (
        SCHEMA_REGISTRY,
        "start it, or correct [schema_registry] in the settings file",
    ),
    "processor.errors.KafkaError": (BROKER, "start the broker, or correct --bootstrap-servers"),
}
"""The failures after which the job may go on by itself: the part that each names, and what an operator can do meanwhile. By the
name of the error, since the failure of a task comes as text."""
THROTTLED = "statestore.store.Throttled"

MOST_THROTTLED = 0.1
"""A batch with a larger share of throttled requests makes the job degraded."""


def strain(tally: Mapping[str, int]) -> tuple[str, str] | None:
    """Why a batch that ended shows a store with too much to do, and what an operator can do; None where it shows none."""
    throttles = sum(count for name, count in tally.items() if name.startswith(THROTTLES))
    requests = sum(count for name, count in tally.items() if name.startswith(REQUEST))
    if throttles <= MOST_THROTTLED * requests:
        return None
    text = f"the store throttled {throttles:,} of {requests:,} requests of the last batch; the job continues, in smaller pieces"
    return text, OUTAGES[THROTTLED][1]


def broker_away(servers: str, error: Exception) -> tuple[str, str]:
    """The text and the cure of the trouble with a broker that does not answer the monitor."""
    text = (
        f"Kafka at {servers} does not answer ({error}); the job keeps its place, publishes nothing, and continues by itself; its "
        "lag is unknown"
    )
    return text, OUTAGES["processor.errors.KafkaError"][1]


def cure_of(part: str) -> str:
    """What an operator can do about a part that does not answer."""
    return next(cure for name, cure in OUTAGES.values() if name == part)


def places(settings: Settings) -> Mapping[str, str]:
    """The address of each part that the settings name, without user and password."""
    found = {
        REGISTRY: registry_place(settings.registry),
        STORE: kind_of(settings.store).where(settings),
        BROKER: settings.bootstrap_servers,
        SCHEMA_REGISTRY: schema_registry_place(dict(settings.schema_registry)),
    }
    return {part: place for part, place in found.items() if place}


Question = Callable[[Settings], AbstractContextManager[Callable[[], object]]]
"""Opens a client of a part. The function that it makes asks the part a small question."""


@contextmanager
def _ask_store(settings: Settings) -> Iterator[Callable[[], object]]:
    with closing(open_store(settings, RetryBudget.ONCE)) as store:
        yield lambda: store.get([IDENTITY])


@contextmanager
def _ask_schema_registry(settings: Settings) -> Iterator[Callable[[], object]]:
    with closing(open_client(settings.schema_registry)) as client:
        yield client.probe


QUESTIONS: Mapping[str, Question] = {STORE: _ask_store, SCHEMA_REGISTRY: _ask_schema_registry}
"""Of the parts that no other thread asks regularly."""


FIRST_SECONDS = 1.0
LONGEST_SECONDS = 15.0
LONGEST_THROTTLED_SECONDS = 120.0
MOST_RUNS = 20
"""Runs in a row that opened, and failed before they worked: then the part answers the start only, and the wait counts as one."""
LOOK_SECONDS = 1.0
"""Between two looks at the clock, so that the log repeats the trouble in time."""


@dataclass(slots=True, kw_only=True)
class OutageWait:
    """The wait for the dependency that failed last. Its clock is that of the troubles: an outage has one age for the log, for
    `status`, and for the end of the job."""

    troubles: Troubles
    stopping: Event
    seconds: float
    """The timeout of a dependency that does not answer. A store that throttles answers, so the job never gives it up."""
    places: Mapping[str, str] = field(default_factory=dict)
    """The addresses of dependencies."""
    random: Random = field(default_factory=Random)
    outage: Outage | None = None
    """The last failure; None once the job has worked."""
    at: float = 0.0
    """When it was."""
    failures: int = 0
    """In a row."""
    runs: int = 0
    """How many of the failures came after a start."""
    first: float = 0.0
    """When the first failure in the row was."""
    since: dict[str, float] = field(default_factory=dict)
    """Since when each dependency fails in this row. A dependency that answers meanwhile begins again from zero."""
    worked: float = 0.0
    """When the job worked last."""

    def note(self, outage: Outage) -> None:
        """Notes a failure. A trouble that others saw before has begun this wait."""
        now, part, known = self.troubles.clock(), outage.part, self.troubles.of(outage.part)
        self.at = now if outage.at is None else outage.at
        if self.outage is None:
            self.first, self.failures, self.runs, self.since = now, 0, 0, {}
        if known is not None and known.since >= self.since.get(part, self.worked):
            self.since[part] = known.since
        elif known is None or part not in self.since:  # a store that was slow, and worked, has an older trouble
            self.since[part] = now
        place = self.places.get(part, "")
        named = f"{outage} (the {part} is at {place})" if place and place not in str(outage) else str(outage)
        self.outage = Outage(named, part=part, cure=outage.cure, throttled=outage.throttled)
        self.failures += 1

    def opened(self) -> None:
        """Notes that the parts answered a start of the job."""
        self.runs += 1

    def forget(self, worked: float) -> None:
        """Notes when the job worked since the last failure."""
        self.outage, self.worked = None, worked

    def pause(self) -> None:
        """Waits for the next try, in silence once the dependency has answered somebody. Raises Stopped when an operator stops
        the job, and Outage after the longest wait."""
        outage, clock = self.outage, self.troubles.clock
        assert outage is not None
        longest = LONGEST_THROTTLED_SECONDS if outage.throttled else LONGEST_SECONDS
        until = clock() + self.random.uniform(0, min(longest, FIRST_SECONDS * 2.0 ** min(self.failures, 16)))
        since = self.first if self.runs > MOST_RUNS else self.since[outage.part]
        end = None if outage.throttled else since + self.seconds
        while True:
            if self.runs > MOST_RUNS or not self.troubles.answered(outage.part, self.at):
                self.troubles.begin(
                    outage.part, f"{outage}; the job waits, and then continues where it was", outage.cure, end
                )
                if end is not None and clock() >= end:
                    raise self._given_up(outage, since)
            if self.stopping.wait(max(0.0, min(LOOK_SECONDS, until - clock()))):
                raise Stopped("stopped on request")
            if clock() >= until:
                return

    def _given_up(self, outage: Outage, since: float) -> Outage:
        waited = duration_text(self.troubles.clock() - since)
        text = (
            f"{outage}; the job has waited for the {outage.part} for {waited}, since "
            f"{datetime.fromtimestamp(since):%Y-%m-%d %H:%M:%S} (--outage-seconds {self.seconds:g}), and ends. No state is lost: "
            f"{outage.cure}; then start the job again"
        )
        return Outage(text, part=outage.part, cure=outage.cure)


ROUND_SECONDS = 4.0
ASK_SECONDS = 5.0
SILENT_SECONDS = 10.0
JOIN_SECONDS = 2.0


class WorkingJob(Protocol):
    """A job, as the watch sees it (`processor.job.run.job`). `work`: the number of the round that it works at; None while it has
    none."""

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
        """Ends the thread. A question without an answer may wait longer, and is harmless."""
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
        """Whether a round lasts long enough for a silent dependency."""
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


STRAINED_SHARE = 16
"""After a failure of the store, a round has this part of the records of a batch."""
CALM_SECONDS = 30.0
"""A run without a batch for this time has no trouble with the dependencies of a batch."""


@dataclass(slots=True, kw_only=True)
class BatchTroubles:
    """The troubles of a job's batches. `calm_since`: when the job began, or its last batch ended."""

    troubles: Troubles
    calm_since: float = 0.0

    def begin(self) -> None:
        """The job is ready to take batches."""
        self.calm_since = monotonic()

    def note(self, tally: Mapping[str, int]) -> None:
        """Notes the end of a batch with these counts. A batch needs every part."""
        self.calm_since, strained = monotonic(), strain(tally)
        for trouble in self.troubles.now:
            if trouble.part != STORE or strained is None:
                self.troubles.end(trouble.part)
        if strained is not None:
            self.troubles.begin(STORE, *strained)

    def note_calm(self) -> None:
        """Ends the troubles with the parts of a batch after a time without batches."""
        if self.troubles.now and monotonic() - self.calm_since > CALM_SECONDS:
            self.troubles.end(STORE)
            self.troubles.end(SCHEMA_REGISTRY)

    def most_records(self, batch_size: int) -> int:
        """The most records of a round: fewer after a failure of the store, which may have too much to do."""
        strained = any(trouble.part == STORE for trouble in self.troubles.now)
        return max(1, batch_size // STRAINED_SHARE) if strained else batch_size


SIGNAL_SECONDS = 1.0
"""A stop signal may reach Spark's processes before this process. A failure of Spark waits this long for the signal."""
EXPECTED = (StatestoreError, RegistryError, StoreError)
"""Errors whose message is written for an operator."""

UNREPORTED = 'because the return value of "scala.Option.get()" is null'
"""Spark 4.1.1 ends a query so after a first batch that an earlier run had planned, and commits the batch before: the Kafka
source cannot tell how far behind it is (SPARK-55271)."""


def is_stop(failure: Exception, stopping: threading.Event) -> bool:
    """Whether a failure only says that an operator stops the job: SIGTERM may end Spark's processes first."""
    return isinstance(failure, Stopped) or (not isinstance(failure, EXPECTED) and stopping.wait(SIGNAL_SECONDS))


@contextmanager
def stops_cleanly(stopping: threading.Event) -> Iterator[None]:
    """Raises Stopped in place of a failure of Spark that only says that an operator stops the job, and a StatestoreError of one
    line in place of any other failure of Spark."""
    try:
        yield
    except Exception as failure:
        if is_stop(failure, stopping):
            raise Stopped("stopped on request") from failure
        if isinstance(failure, EXPECTED):
            raise
        raise StatestoreError(f"the job cannot start: {error_line(failure)}") from failure


def outage_of(failure: Exception, work: str) -> Outage | None:
    """The outage that made some work of the driver or of a task fail; None for another failure."""
    if isinstance(failure, Outage):
        return failure
    name = f"{type(failure).__module__}.{type(failure).__name__}"
    if name not in OUTAGES:
        name = _raised_line(failure).partition(": ")[0]
    if name not in OUTAGES:
        return None
    part, cure = OUTAGES[name]
    text = f"{work} failed: {error_line(failure)}"
    return Outage(text, part=part, cure=cure, throttled=name == THROTTLED, at=steady_time())


def error_line(failure: Exception) -> str:
    """A failure in one line: the error that a Python worker raised, or the first line of Spark's message."""
    return re.sub(
        r"^(processor[.]errors|registry[.]errors|statestore[.]store)[.][A-Za-z]+: ", "", _raised_line(failure)
    )


def _raised_line(failure: Exception) -> str:
    try:
        text = str(failure)
    except Exception:  # py4j asks the JVM for the text
        text = "the JVM of Spark has ended"
    raised = re.findall(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)", text)
    # of several, the last one has the others as its cause; without any, the error is one of Java
    raised = raised or re.findall(r"An error occurred while calling .*\n: (.+)", text)
    return raised[-1] if raised else (text.splitlines() or [type(failure).__name__])[0]
