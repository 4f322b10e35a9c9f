"""The monitor of a running job: every 5 s it writes the state of the run into its lease, for `statestore status`. Every 10 s it
emits the state as an event, for the status line of `statestore run`, and as a line for CloudWatch if a namespace is set. The
page of the driver (`processor.job.metrics.status_page`) shows the last state. A registry that is silent does not hold the monitor
up: the state on the page stays new.

The monitor only reads what the driver and the job hold, over clients of its own, in a thread of its own. So a long batch does
not silence the monitor, and no batch waits for it. The monitor asks the broker for the lag once for each status line. A failure
of the broker or of Postgres costs one look; rounds report such a failure themselves. A new run begins without samples and counts.
"""

import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import Event, Thread
from time import time
from typing import Any, Final, Protocol

from processor.counts import IN_TOPIC, MESSAGES_OF, Count
from processor.engine.protocol.epochs import Partition
from processor.engine.protocol.gates import gate_states
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.events import JobEvent, Troubles
from processor.engine.rounds.registry_follower import RegistryFollower
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import statestore_version
from processor.errors import KafkaError
from processor.job.kafka.lag import LagWatch, TopicLag, read_unread
from processor.job.metrics.metrics import EmfWriter
from processor.job.run.entity_moves import EntityMoves
from processor.job.run.lease import LeaseRenewal
from processor.job.run.outages import BROKER, REGISTRY, SilentParts, WorkingJob, broker_away, cure_of
from processor.job.run.source_topics import MissingTopic, SourceTopics
from processor.text import DAY, HOUR
from registry.errors import RegistryUnreachable
from registry.model import Lease
from registry.repository import Registry
from statestore.store import HALF_UNITS

SAMPLE_SECONDS: Final = 60.0
MOST_SAMPLES: Final = 60


class SampleRing:
    """The samples, the oldest first: `[at, events a second, documents a second, backlog]`; `at`: in seconds since 1970."""

    def __init__(self) -> None:
        self._samples = deque[list[Any]](maxlen=MOST_SAMPLES)

    def add(self, at: float, *values: float) -> list[list[Any]]:
        """Adds a sample, unless the last one is younger than a minute. Returns all of them."""
        if not self._samples or at - self._samples[-1][0] >= SAMPLE_SECONDS:
            self._samples.append([round(at), *values])
        return list(self._samples)


KEPT: Final = (MESSAGES_OF, HALF_UNITS, f"{Count.APPLIED}{IN_TOPIC}")
"""The counters of a window begin so."""
MARKS: Final = 60
"""Marks in the length of a window: so it may be longer by a sixtieth."""


class CountWindow:
    """The window of the last `seconds`, of a run that began at `began`, in seconds since 1970."""

    def __init__(self, seconds: float, began: float) -> None:
        self._seconds = seconds
        self._marks = deque[tuple[float, dict[str, int]]]([(began, {})])

    def add(self, at: float, counts: Mapping[str, int]) -> dict[str, Any]:
        """Takes the counts of the run so far. Returns those of the window, and its length: of a shorter run the whole run."""
        now = {name: count for name, count in counts.items() if name.startswith(KEPT)}
        while len(self._marks) > 1 and self._marks[1][0] <= at - self._seconds:
            self._marks.popleft()
        begin, before = self._marks[0]
        if at - self._marks[-1][0] >= self._seconds / MARKS:
            self._marks.append((at, now))
        new = {name: count - before.get(name, 0) for name, count in now.items()}
        return {"seconds": round(at - begin, 1), "counts": {name: count for name, count in new.items() if count}}


KEEP_SECONDS = 5.0
"""The longest wait of the caller for the registry."""


class StateKeeper:
    """Writes the states of a run into its lease. So this thread sees first that the registry does not answer, or answers again.
    `silent`: gets to know how long an answer takes."""

    def __init__(self, registry: Registry, lease: Lease, troubles: Troubles, silent: SilentParts) -> None:
        self._registry, self._lease, self._troubles, self._silent = registry, lease, troubles, silent
        self._thread: Thread | None = None

    def keep(self, state: Mapping[str, Any], ended: int | None) -> None:
        """Writes the state in a thread, and waits for that a moment. Drops the state while an earlier one has no answer. `ended`:
        the last round that published something and ended."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._keep, args=(state, ended), name="state keeper", daemon=True)
            self._thread.start()
        self._thread.join(KEEP_SECONDS)

    def _keep(self, state: Mapping[str, Any], ended: int | None) -> None:
        try:
            with self._silent.asking(REGISTRY):
                self._registry.runs.keep_report(self._lease, state, ended)
            self._troubles.end(REGISTRY)
        except RegistryUnreachable as away:
            text = f"{away}; the job publishes nothing until it knows that its lease holds"
            self._troubles.begin(REGISTRY, text, cure_of(REGISTRY))
        except Exception:  # rounds report it
            return


EVERY_SECONDS = 5.0
LOOKS_PER_LINE = 2
"""A status line every 10 s."""
JOIN_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class LastBatch:
    """The last batch that ended. `at`: when, in seconds since 1970; `documents`: how many it published."""

    number: int
    at: float
    records: int
    documents: int


class MonitoredJob(WorkingJob, Protocol):
    """A job, as the monitor reads it."""

    driver: Driver
    lease: Lease
    follower: RegistryFollower | None
    renewal: LeaseRenewal
    topics: SourceTopics
    moves: EntityMoves | None
    positions: dict[Partition, int]
    doing: str
    ended: bool
    last_batch: LastBatch | None

    @property
    def paused(self) -> bool: ...

    @property
    def readers(self) -> Mapping[str, str]: ...


class JobMonitor:
    """The monitor of a job, from `start` to `stop`. `clock`: seconds since 1970. `report`: the last state, None
    before the first."""

    def __init__(self, job: MonitoredJob, clock: Callable[[], float] = time) -> None:
        self._job, self._clock = job, clock
        self._ending = Event()
        self._thread = Thread(target=self._look_until_the_end, name="monitor", daemon=True)
        self._emf = EmfWriter(job.settings.cloudwatch_namespace)
        self._began = clock()
        self._counted = (self._began, 0, 0)
        self._rates = (0.0, 0.0)
        self._behind_since: float | None = None
        self._lag = LagWatch()
        self._samples = SampleRing()
        self._windows = {"last_hour": CountWindow(HOUR, self._began), "last_day": CountWindow(DAY, self._began)}
        self._silent = SilentParts(job, clock)
        self.report: dict[str, Any] | None = None

    def start(self) -> None:
        self._thread.start()
        self._silent.start()

    def stop(self) -> None:
        """Ends the thread after a last report."""
        self._ending.set()
        self._silent.stop()
        if self._thread.is_alive():
            self._thread.join(JOIN_SECONDS)

    def _look_until_the_end(self) -> None:
        settings, looks, ended = self._job.settings, 0, False
        with open_registry(settings) as registry:
            keeper = StateKeeper(registry, self._job.lease, self._job.troubles, self._silent)
            while True:
                shows = looks % LOOKS_PER_LINE == 0 and not ended
                with suppress(Exception):
                    if shows:
                        self._look_at_lag()
                with suppress(Exception):
                    through = self._job.driver.rounds.run.through  # the table has it
                    state = self.report = self.state(self._lag.lags(self._topics(), self._job.positions))
                    if shows and looks:
                        self._emit(state)
                    keeper.keep(state, through if through >= 0 else None)
                if ended:
                    return
                looks += 1
                ended = self._ending.wait(EVERY_SECONDS)

    def _look_at_lag(self) -> None:
        """Asks the broker for the ends of the topics. A broker that does not answer is a trouble, and the lag is unknown then."""
        settings, topics, at = self._job.settings, self._topics(), self._clock()
        if not topics:
            return
        try:
            unread = read_unread(settings.bootstrap_servers, dict(settings.kafka), topics, self._job.positions)
        except KafkaError as error:
            self._lag.keep({}, at)
            self._job.troubles.begin(BROKER, *broker_away(settings.bootstrap_servers, error))
        else:
            self._lag.keep(unread, at)
            self._job.troubles.end(BROKER)

    def _topics(self) -> list[str]:
        """The topics whose lag counts: those of the stream; before the first stream, those to read that are not missing."""
        job = self._job
        return sorted(job.topics.streamed or job.readers.keys() - job.topics.missing.keys())

    def _emit(self, state: dict[str, Any]) -> None:
        """Emits the status line, and on standard output the line for CloudWatch."""
        fields = {name: value for name, value in state.items() if name not in ("counts", "samples", *self._windows)}
        self._job.driver.report(JobEvent(what="status", fields=fields))
        if self._job.settings.cloudwatch_namespace:
            print(self._emf.line(state), flush=True)

    def state(self, lags: Mapping[str, TopicLag]) -> dict[str, Any]:
        """The state of the run, as JSON values. Times are in seconds since 1970."""
        job, driver, now = self._job, self._job.driver, self._clock()
        follower, snapshot = job.follower, job.follower.snapshot if job.follower else None
        events, documents = self._rates_until(now)
        backlog = sum(len(roots) for roots in list(driver.progress.backlog.waiting.values()))
        backlog += len(driver.progress.backlog.own)
        return {
            "at": now,
            "began": self._began,
            "looked": self._lag.looked,
            "job": job.lease.job,
            "statestore": statestore_version(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "doing": "paused" if job.paused and not job.ended else job.doing,
            "registry_version": driver.plan.version,
            "topics": {topic: {"records": lag.records, "seconds": lag.seconds(now)} for topic, lag in lags.items()},
            "positions": {f"{topic}/{partition}": at for (topic, partition), at in dict(job.positions).items()},
            "missing_topics": {topic: self._missing(one) for topic, one in job.topics.missing.items()},
            "no_topic": job.topics.wrong,
            "paused_topics": list(snapshot.paused_topics) if snapshot else [],
            "former_topics": dict(job.moves.former) if job.moves else {},
            "events_per_second": events,
            "documents_per_second": documents,
            "last_batch": None if job.last_batch is None else asdict(job.last_batch),
            "open_changes": driver.progress.open_changes.count,
            "settle_due": driver.progress.open_changes.count_due(driver.clock.now()),
            "fan_outs": len(driver.progress.fan_outs.waiting),
            "backlog": backlog,
            "samples": self._samples.add(now, events, documents, backlog),
            "gates": gate_states(driver.progress.held, driver.clock.now(), driver.clock.date()),
            "walks": [" ".join(name) for name, walk in dict(driver.progress.walks.walks).items() if not walk.done],
            "stopped_walks": {" ".join(name): why for name, why in dict(driver.progress.walks.stuck).items()},
            "stopped_products": dict(driver.progress.backlog.stopped),
            "unfit_documents": dict(Counter(product for product, _ in list(driver.progress.unfit))),
            "absent_columns": {
                f"{one.entity}.{one.column}": one._asdict() | {"text": one.text}
                for one in driver.progress.absent.found(driver.plan)
            },
            "waiting_products": [product.name for product in snapshot.waiting] if snapshot else [],
            "refused_version": follower.refused if follower else 0,
            "refusal": follower.refusal if follower else "",
            "dead_letters": driver.tally[Count.DEAD_LETTERS],
            "last_dead_letter": driver.last_letter,
            "oldest_unpublished": self._oldest_unpublished(lags, now),
            "troubles": job.troubles.as_json(),
            "lease_age": round(job.renewal.age, 1),
            "counts": (counts := dict(driver.tally)),
            **{name: window.add(now, counts) for name, window in self._windows.items()},
        }

    def _missing(self, missing: MissingTopic) -> dict[str, Any]:
        """A topic that does not exist. `products`: those whose documents it would make."""
        products = self._job.driver.plan.products
        rooted = sorted(name for name, one in products.items() if one.product.root == missing.entity)
        return {"entity": missing.entity, "near": missing.near, "products": rooted}

    def _rates_until(self, now: float) -> tuple[float, float]:
        """Events and documents a second since the last status line."""
        tally, (at, read, sent) = self._job.driver.tally, self._counted
        records, documents = tally[Count.READ], tally[Count.PUBLISHED] + tally[Count.CORRECTIONS]
        if now - at >= EVERY_SECONDS * LOOKS_PER_LINE - 1:
            self._rates = (round((records - read) / (now - at), 1), round((documents - sent) / (now - at), 1))
            self._counted = (now, records, documents)
        return self._rates

    def _oldest_unpublished(self, lags: Mapping[str, TopicLag], now: float) -> float | None:
        """Since when the oldest unread record waits. Where rows are written and documents wait (fan-outs, a backlog, a job that
        writes rows first), the time since when they wait, if that is earlier."""
        driver = self._job.driver
        waits = (
            driver.progress.fan_outs.waiting
            or driver.progress.backlog.waiting
            or driver.progress.backlog.own
            or driver.progress.walks.behind
        )
        self._behind_since = (self._behind_since or now) if waits else None
        times = [lag.oldest for lag in lags.values()]
        return min((at for at in (*times, self._behind_since) if at is not None), default=None)
