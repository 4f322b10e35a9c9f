"""The monitor of a running job: every 5 s it writes the state of the run into its lease, for `statestore status`. Every 10 s it
emits the state as an event, for the status line of `statestore run`, and as a line for CloudWatch if a namespace is set. The
page of the driver (`processor.job.metrics.status_page`) shows the last state. A registry that is silent does not hold the monitor
up: the state on the page stays new.

The monitor only reads what the driver and the job hold, over clients of its own, in a thread of its own. So a long batch does
not silence the monitor, and no batch waits for it. The monitor asks the broker for the lag once for each status line. A failure
of the broker or of Postgres costs one look; rounds report such a failure themselves. A new run begins without counts, and takes
over the samples of the charts.
"""

import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from threading import Event, Thread
from time import time
from typing import Any, Final, Protocol

from processor.counts import IN_TOPIC, PRODUCT_WORK, REQUEST, Count
from processor.engine.protocol.epochs import Partition, entities_of
from processor.engine.protocol.gates import gate_states
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.events import JobEvent, Troubles
from processor.engine.rounds.operators import RegistryFollower
from processor.environment.settings.resolve import open_registry
from processor.environment.settings.settings import statestore_version
from processor.errors import KafkaError
from processor.job.kafka.admin import Admin
from processor.job.kafka.lag import LagWatch, TopicLag, read_unread
from processor.job.metrics.metrics import EmfWriter
from processor.job.metrics.status import JobPhase, ending_topics, letters_json
from processor.job.run.lease import LeaseRenewal
from processor.job.run.outages import BROKER, REGISTRY, SilentParts, WorkingJob, broker_away, cure_of
from processor.job.run.topics import EntityMoves, MissingTopic, SourceTopics
from processor.text import DAY, HOUR
from registry.edits.history import Pause, current_pauses
from registry.errors import RegistryError, RegistryUnreachable
from registry.model import Lease, PastRuns, Snapshot
from registry.repository import Registry
from statestore.store import HALF_UNITS

RANGES: Final[Mapping[str, float]] = {"10 min": 600.0, "1 h": float(HOUR), "24 h": float(DAY)}
"""The ranges of the charts, in seconds."""
MOST_SAMPLES: Final = 60
"""Of a range. So a sample is the mean of 10 s, a minute, or 24 min."""
Sample = list[float | None]
"""When its period ended, in seconds since 1970, and the means of the values; None where none was known."""


class ChartSamples:
    """The samples for the charts of the console, by range, the oldest first. `kept`: those of the run before: a restart of the
    job leaves a gap, and begins no new chart."""

    def __init__(self, kept: Mapping[str, list[Sample]] | None = None) -> None:
        self._kept = {name: deque((kept or {}).get(name, ()), MOST_SAMPLES) for name in RANGES}
        self._open: dict[str, list[Sequence[float | None]]] = {name: [] for name in RANGES}
        self._since: dict[str, float] = {}

    def add(self, at: float, *values: float | None) -> dict[str, list[Sample]]:
        """Takes the values of this moment. Returns all samples."""
        for name, seconds in RANGES.items():
            samples, now = self._kept[name], self._open[name]
            now.append(values)
            if at - self._since.setdefault(name, at) >= seconds / MOST_SAMPLES or not samples:
                samples.append([round(at), *map(_mean, zip(*now, strict=True))])
                self._since[name] = at
                now.clear()
            while samples and (samples[0][0] or 0) < at - seconds:
                samples.popleft()
        return {name: list(samples) for name, samples in self._kept.items()}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known), 1) if known else None


KEPT: Final = (*PRODUCT_WORK, HALF_UNITS, REQUEST, f"{Count.APPLIED}{IN_TOPIC}")
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

    def keep(self, state: Mapping[str, Any], ended: int | None, worked_at: float | None = None) -> None:
        """Writes the state in a thread, and waits for that a moment. Drops the state while an earlier one has no answer. `ended`:
        the last round that published something and ended; `worked_at`: when the run last worked, None before that."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = Thread(target=self._keep, args=(state, ended, worked_at), name="state keeper", daemon=True)
            self._thread.start()
        self._thread.join(KEEP_SECONDS)

    def _keep(self, state: Mapping[str, Any], ended: int | None, worked_at: float | None) -> None:
        try:
            with self._silent.asking(REGISTRY):
                self._registry.runs.keep_report(self._lease, state, ended, worked_at=worked_at)
            self._troubles.end(REGISTRY)
        except RegistryUnreachable as away:
            text = f"{away}; the job publishes nothing until it knows that its lease holds"
            self._troubles.begin(REGISTRY, text, cure_of(REGISTRY))
        except Exception:  # rounds report it
            return


EVERY_SECONDS = 5.0
WORKED_SECONDS = 60.0
"""A run that ended a batch, or lived this long, has worked: the next failure is the first in a row."""
RETENTION_SECONDS = 600.0
"""The monitor asks the broker so often for how long it keeps records."""
LETTERS_SECONDS = 60.0
NOT_LOGGED: Final = ("counts", "charts", "costly_roots", "longest_lists", "last_hour", "last_day")
"""Members of the state that are too long for the status line."""
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
    left: dict[Partition, int]
    phase: JobPhase
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
        self._past = job.lease.past or PastRuns()
        self._emf = EmfWriter(job.settings.cloudwatch_namespace, self._past.seen)
        self._began = clock()
        self._counted = (self._began, 0, 0)
        self._rates = (0.0, 0.0)
        self._behind_since: float | None = None
        self._lag = LagWatch()
        self._samples = ChartSamples(job.lease.charts)
        self._windows = {"last_hour": CountWindow(HOUR, self._began), "last_day": CountWindow(DAY, self._began)}
        self._silent = SilentParts(job, clock)
        self._worked = False
        self._stored: Snapshot | None = None
        self._pauses: tuple[int, tuple[Pause, ...]] = (-1, ())
        self._retentions: dict[str, float] = {}
        self._retentions_due = self._began
        self._warned: set[str] = set()
        self._letters: list[dict[str, Any]] | None = None
        self._letters_changed, self._letters_due = 0, self._began
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
                    self._look_at_letters(registry)
                with suppress(Exception):
                    through = self._job.driver.rounds.run.through  # the table has it
                    self._look_at_pauses(registry)
                    state = self.report = self.state(self._lag.lags(self._topics(), self._positions))
                    if shows and looks:
                        self._emit(state)
                    worked_at = self._past.worked_at if self._worked else None
                    keeper.keep(state, through if through >= 0 else None, worked_at)
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
            unread = read_unread(settings.bootstrap_servers, dict(settings.kafka), topics, self._positions)
        except KafkaError as error:
            self._lag.keep({}, at)
            self._job.troubles.begin(BROKER, *broker_away(settings.bootstrap_servers, error))
        else:
            self._lag.keep(unread, at)
            self._job.troubles.end(BROKER)
            if at >= self._retentions_due:
                self._retentions_due = at + RETENTION_SECONDS
                admin = Admin(settings.bootstrap_servers, dict(settings.kafka))
                self._retentions = admin.retentions({topic for topic, _ in unread})

    def _look_at_letters(self, registry: Registry) -> None:
        """Asks the account for the dead letters that wait: after a round that wrote or replayed some, else once a minute, since a
        verb may have dropped some."""
        counts, at = self._job.driver.tally, self._clock()
        changed = sum(counts[name] for name in (Count.DEAD_LETTERS, Count.UNFIT, Count.REPLAYED))
        if changed != self._letters_changed or at >= self._letters_due:
            self._letters = letters_json(registry.letters.waiting())
            self._letters_changed, self._letters_due = changed, at + LETTERS_SECONDS

    def _look_at_pauses(self, registry: Registry) -> None:
        """Reads who paused what, once for each version of the registry that pauses something."""
        with suppress(RegistryError):
            if self._job.follower and self._snapshot is None:
                self._stored = registry.snapshot()
            snapshot = self._snapshot
            if snapshot is not None and snapshot.version != self._pauses[0]:
                some = snapshot.paused_topics or any(one.paused for one in (*snapshot.products, *snapshot.waiting))
                self._pauses = snapshot.version, current_pauses(snapshot, registry.history()) if some else ()

    @property
    def _snapshot(self) -> Snapshot | None:
        """The registry's version that the job has taken; before the first, the version that the monitor found."""
        return (self._job.follower.snapshot if self._job.follower else None) or self._stored

    @property
    def _positions(self) -> dict[Partition, int]:
        """Where the job reads on in each partition, also of paused topics."""
        return self._job.left | self._job.positions

    @property
    def _paused_topics(self) -> set[str]:
        """The topics of entities that operators paused."""
        snapshot = self._snapshot
        read = {one.entity.topic for one in self._job.driver.plan.entities.values()}
        return read & {*snapshot.paused_topics} if snapshot else set()

    def _topics(self) -> list[str]:
        """The topics whose lag counts: those that operators paused, and those of the stream. Before the first stream, those to
        read that are not missing."""
        job = self._job
        read = job.topics.streamed or job.readers.keys() - job.topics.missing.keys()
        return sorted({*read, *self._paused_topics})

    def _topic(self, topic: str, lag: TopicLag, now: float) -> dict[str, Any]:
        """The lag of a topic. `retention`: for how many seconds the broker keeps records; None: no age ends them, or unknown."""
        return {"records": lag.records, "seconds": lag.seconds(now), "retention": self._retentions.get(topic)}

    def _emit(self, state: dict[str, Any]) -> None:
        """Emits the status line, and on standard output the line for CloudWatch."""
        fields = {name: value for name, value in state.items() if name not in NOT_LOGGED}
        self._job.driver.report(JobEvent(what="status", fields=fields))
        self._warn(ending_topics(state))
        if self._job.settings.cloudwatch_namespace:
            print(self._emf.line(state), flush=True)

    def _warn(self, ending: Mapping[str, str]) -> None:
        """Warns of the topics that lose unread records soon, of each once until that is over."""
        for topic in ending.keys() - self._warned:
            self._job.driver.report(
                JobEvent(what="retention", text=ending[topic], fields={"topic": topic}, level="warning")
            )
        self._warned = {*ending}

    def state(self, lags: Mapping[str, TopicLag]) -> dict[str, Any]:
        """The state of the run, as JSON values. Times are in seconds since 1970."""
        job, driver, now = self._job, self._job.driver, self._clock()
        follower, snapshot = job.follower, job.follower.snapshot if job.follower else None
        events, documents = self._rates_until(now)
        backlog = sum(len(roots) for roots in list(driver.progress.backlog.waiting.values()))
        backlog += len(driver.progress.backlog.own)
        oldest = self._oldest_unpublished(lags, now)
        reads = {topic: lag for topic, lag in lags.items() if topic not in self._paused_topics}
        self._note_work(reads, now)
        return {
            "at": now,
            "began": self._began,
            "looked": self._lag.looked,
            "job": job.lease.job,
            "statestore": statestore_version(),
            "host": socket.gethostname(),
            "pid": os.getpid(),
            "doing": "paused" if job.paused and job.phase is not JobPhase.ENDED else job.phase.value,
            "registry_version": driver.plan.version,
            "topics": {topic: self._topic(topic, lag, now) for topic, lag in lags.items()},
            "positions": {f"{topic}/{partition}": at for (topic, partition), at in self._positions.items()},
            "missing_topics": {topic: self._missing(one) for topic, one in job.topics.missing.items()},
            "no_topic": job.topics.wrong,
            "paused_topics": list(self._snapshot.paused_topics) if self._snapshot else [],
            "pauses": [one._asdict() | {"at": one.at.timestamp()} for one in self._pauses[1]],
            "former_topics": dict(job.moves.former) if job.moves else {},
            "events_per_second": events,
            "documents_per_second": documents,
            "last_batch": None if job.last_batch is None else asdict(job.last_batch),
            "open_changes": driver.progress.open_changes.count,
            "settle_due": driver.progress.open_changes.count_due(driver.clock.now()),
            "fan_outs": len(driver.progress.fan_outs.waiting),
            "backlog": backlog,
            "charts": self._samples.add(now, events, documents, _oldest_seconds(reads, now), backlog),
            "gates": gate_states(driver.progress.held, driver.clock.now(), driver.clock.date()),
            "clock": driver.progress.ticks.time if driver.progress.ticks.step else None,
            "walks": [" ".join(name) for name, walk in dict(driver.progress.walks.walks).items() if not walk.done],
            "stopped_walks": {" ".join(name): why for name, why in dict(driver.progress.walks.stuck).items()},
            "stopped_products": dict(driver.progress.backlog.stopped),
            "unfit_documents": dict(Counter(product for product, _ in list(driver.progress.unfit))),
            **driver.progress.costs.report(driver.clock.now()),
            "absent_columns": {
                f"{one.entity}.{one.column}": one._asdict() | {"text": one.text}
                for one in driver.progress.absent.found(driver.plan)
            },
            "waiting_products": [product.name for product in snapshot.waiting] if snapshot else [],
            "refused_version": follower.refused if follower else 0,
            "refusal": follower.refusal if follower else "",
            "dead_letters": driver.tally[Count.DEAD_LETTERS],
            "last_dead_letter": driver.last_letter,
            "letters_waiting": self._letters,
            "rejects": [
                {"topic": one.topic, "read": one.read, "dead": one.dead, "text": one.text}
                for one in driver.rounds.rejects.topics(driver.clock.now())
            ],
            "oldest_unpublished": oldest,
            "past": asdict(self._past),
            "stalled_seconds": self._stalled(reads, now),
            "troubles": job.troubles.as_json(),
            "lease_age": round(job.renewal.age, 1),
            "counts": (counts := dict(driver.tally)),
            **{name: window.add(now, counts) for name, window in self._windows.items()},
        }

    def _note_work(self, lags: Mapping[str, TopicLag], now: float) -> None:
        """Notes that the run works: it ended a batch, or lives for a minute and has nothing to do."""
        batch = self._job.last_batch
        idle = all(lag.records == 0 for lag in lags.values()) and not self._job.driver.unsettled
        if batch is not None:
            self._past, self._worked = self._past.with_work(batch.at), True
        elif idle and self._lag.looked and now - self._began > WORKED_SECONDS:
            self._past, self._worked = self._past.with_work(now), True

    def _stalled(self, lags: Mapping[str, TopicLag], now: float) -> float | None:
        """For how long records wait and no batch ended, over restarts; None while only the broker could tell."""
        waiting = [lag.oldest for lag in lags.values() if lag.records]
        if waiting and not self._job.paused:
            worked = self._past.worked_at or self._past.since or self._began
            return max(0.0, now - max(worked, min((at for at in waiting if at is not None), default=worked)))
        return None if any(lag.records is None for lag in lags.values()) else 0.0

    def _missing(self, missing: MissingTopic) -> dict[str, Any]:
        """A topic that does not exist. `products`: those whose documents it would make."""
        products = self._job.driver.plan.products
        rooted = sorted(name for name, one in products.items() if one.product.root in entities_of(missing.entity))
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


def _oldest_seconds(lags: Mapping[str, TopicLag], now: float) -> float | None:
    """For how long the oldest unread record of all topics waits; None while the broker does not show it."""
    seconds = [lag.seconds(now) for lag in lags.values()]
    return None if None in seconds else round(max((one for one in seconds if one is not None), default=0.0), 1)
