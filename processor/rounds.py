"""The rounds of a run, one after the other: micro-batches, and settle work between them, through one queue.

    round   1. check the lease, and before a batch's first write the epochs
            2. one Spark action: write parts (or settle parts), one shuffle by publish slot, publish parts
            3. account for every record
            4. end the round: its reservations count as acknowledged from then on
            5. hold what the write parts opened, close what was shown long enough

The table and the registry keep all that a round leaves behind; what is held here is lost with the process, and read again by
`reload` at the next start.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from time import monotonic, time
from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame, SparkSession

from processor.account import check_account
from processor.batch import Round, tidy
from processor.errors import Fenced
from processor.kafka import Admin
from processor.model.epochs import Epochs, Partition
from processor.model.fan_out import FanOuts
from processor.model.ledger import Run, end_round, read_run
from processor.model.open_changes import PARTITION, OpenChanges, read_durable
from processor.model.owed import Owed, stopped_line
from processor.model.plan import Plan
from processor.model.replays import Letter, Replayed, end_replay
from processor.settings import Settings
from processor.source import Extent
from processor.topics import check_topics
from processor.worker import (
    Published,
    Task,
    publish_owed,
    publish_roots,
    replay_letters,
    resume_fan_outs,
    settle_entries,
    write_rows,
)
from registry.model import Lease
from registry.repository import Registry
from statestore.store import Delete, Done, Refused, Store, Write

DAY = 86_400
HOUR = 3_600
"""Spared of the days for which a delete marker is kept: no two clocks here are further apart."""
Report = Callable[[str, Mapping[str, int]], None]


@dataclass(slots=True, kw_only=True)
class Rounds:
    """The rounds of one run. `tally`: what they did so far; `report` is told of each."""

    settings: Settings
    plan: Plan
    registry: Registry
    store: Store
    admin: Admin
    lease: Lease
    spark: SparkSession
    report: Report
    run: Run = field(init=False)
    open: OpenChanges = field(init=False)
    fan_outs: FanOuts = field(init=False)
    owed: Owed = field(init=False)
    tally: Counter[str] = field(default_factory=Counter)
    number: int = 0
    batch: int = -1

    def __post_init__(self) -> None:
        self.run = Run(number=self.lease.generation)
        self.open = OpenChanges(wait=self.settings.wait_seconds, settle=self.settings.settle_seconds)
        self.fan_outs = FanOuts(products=self.plan.products, run=self.lease.generation)
        self.owed = Owed(products=self.plan.products, run=self.lease.generation)

    @property
    def pending(self) -> bool:
        """Whether there is work left besides records."""
        return self.open.next_due() is not None or self.busy

    @property
    def busy(self) -> bool:
        """Whether some of it waits for nothing."""
        return bool(self.fan_outs.held or self.owed.next())

    def reload(self) -> int:
        """Takes the open changes, fan-outs and owed roots that earlier runs left, at a start, after they were fenced; returns how
        many."""
        items = self.store.partition(PARTITION)
        for gone in (*self.fan_outs.reloaded(items), *self.owed.reloaded(items)):
            self.store.delete(gone)
        rows = self.store.get({entry.key for item in items for entry in read_durable(item)}) if items else {}
        self.open.reloaded(items, rows, monotonic())
        return len(self.open.entries) + len(self.fan_outs.held) + len(self.owed.waiting)

    def live(self, frame: DataFrame, batch: int, piece: Extent) -> None:
        """One micro-batch, or a piece of it."""
        self._check_lease()
        self.batch = max(batch, self.batch + 1)
        epochs = check_topics(self.registry, self.admin, piece.ranges)
        task = self._task({partition: start for partition, (start, _) in piece.ranges.items()}, epochs)
        # as many tasks as cores: a partition of Kafka stays whole, in its order, and a small one costs no task of its own
        frame = frame.coalesce(self.spark.sparkContext.defaultParallelism)
        results = self._action(frame.rdd.mapPartitions(partial(write_rows, task=task)), task)
        tally = _sum(results)
        check_account(tally, self.settings)
        self._end(results, tally)
        self._keep_rest(results)
        self.tally.update(tally)
        for result in results:
            for written in result.written:
                for item, entries in written.opened.items():
                    self.open.opened(item, entries, monotonic())
        self.report(f"batch {self.batch}", tally)

    def between(self) -> None:
        """What is done between batches: settle work, fan-outs and owed roots, a round of each."""
        self.settle()
        self.fan_out()
        self.pay()

    def settle(self) -> None:
        """Settles the open changes that are due, and closes those that were shown long enough."""
        if due := self.open.due(monotonic()):
            self._check_lease()
            task = self._task({}, Epochs(steps={}))
            entries = self.spark.sparkContext.parallelize(due, min(len(due), self.settings.publish_slots))
            results = self._action(entries.mapPartitions(partial(settle_entries, task=task)), task)
            tally = _sum(results)
            self._end(results, tally)
            self._keep_rest(results)
            tally["settled"], tally["corrections"] = len(due), tally.pop("published", 0)
            self.tally.update(tally)
            self.open.settled((outcome for result in results for outcome in result.settled), monotonic())
            self.report("settled", tally)
        if (when := self.open.next_due()) is not None and (when <= monotonic() or self.open.crowded()):
            self._check_lease()
            tidy(self.open, self.store, self.run.number, self.number, monotonic())

    def fan_out(self) -> None:
        """Goes on with fan-outs, a page each."""
        if todo := self.fan_outs.next():
            self._check_lease()
            task = self._task({}, Epochs(steps={}))
            fan_outs = self.spark.sparkContext.parallelize(todo, len(todo))
            results = self._action(fan_outs.mapPartitions(partial(resume_fan_outs, task=task)), task)
            tally = _sum(results)
            self._end(results, tally)
            self._keep_rest(results)
            for resumed in (resumed for result in results for resumed in result.resumed):
                self._keep(self.fan_outs.moved(resumed))
            tally["fan-out pages"] = len(todo)
            self.tally.update(tally)
            self.report("fan-out", tally)

    def pay(self) -> None:
        """Publishes some of what products owe that were stopped in earlier runs."""
        if todo := self.owed.next():
            self._check_lease()
            task = self._task({}, Epochs(steps={}))
            roots = self.spark.sparkContext.parallelize(list(chain.from_iterable(todo.values())), 1)
            results = self._action(roots.mapPartitions(partial(publish_owed, task=task)), task)
            tally = _sum(results)
            self._end(results, tally)
            self._keep_rest(results)
            for request in self.owed.paid(todo):
                self.store.delete(request)
            self.tally.update(tally)
            self.report("owed", tally)

    def _keep_rest(self, results: Iterable[Published]) -> None:
        """Makes durable what a round left for later, before its batch is committed."""
        for product, why in self.owed.failed(ChainMap(*(result.failed for result in results))).items():
            self.report(stopped_line(product, why), {})
        for request in self.owed.asked(self.number, chain.from_iterable(result.owed for result in results)):
            self.store.write(request)
        for written in (written for result in results for written in result.written):
            for fan_out in written.rest:
                self._keep(self.fan_outs.asked(fan_out))

    def _keep(self, request: Write | Delete) -> None:
        done = self.store.write(request) if isinstance(request, Write) else self.store.delete(request)
        if not isinstance(done, Done):
            raise Fenced(f"a later run than {self.run.number} goes on with its fan-outs; this job must stop")

    def replay(self, letters: Iterable[Letter]) -> list[Replayed]:
        """Replays dead letters. Their changes are open then: settle publishes them, and closes them."""
        self._check_lease()
        groups: dict[Partition, list[Letter]] = {}
        for letter in letters:
            groups.setdefault((letter.rejected.record.topic, letter.rejected.record.partition), []).append(letter)
        oldest = time() - self.settings.marker_days * DAY + HOUR
        work = self.spark.sparkContext.parallelize(list(groups.values()), len(groups))
        part = partial(replay_letters, round_=self._round({}), settings=self.settings, oldest=oldest)
        replayed: list[Replayed] = work.mapPartitions(part).collect()
        self.number += 1
        for one in replayed:
            if one.opened is not None:
                self.open.opened(*one.opened, monotonic())
        return replayed

    def end_replays(self, replayed: Iterable[Replayed]) -> None:
        """Notes which dead letters are replayed, once what they changed is settled. One that was refused again stays."""
        for one in replayed:
            if one.outcome != "refused":
                self.store.write(end_replay(one.record, one.outcome))
            self.tally[f"replayed: {one.outcome}"] += 1

    def _check_lease(self) -> None:
        if not self.registry.holds(self.lease):
            generation = f"generation {self.lease.generation}"
            raise Fenced(f"job {self.lease.job}: {generation} lost its lease; another job took over")

    def _round(self, starts: Mapping[Partition, int]) -> Round:
        return Round(
            plan=self.plan,
            run=self.run,
            number=self.number,
            batch=max(self.batch, 0),
            starts=starts,
            forget=int(time()) + self.settings.marker_days * DAY,
            rejects=self.settings.rejects_topic,
            stopped=frozenset(self.owed.stopped),
        )

    def _task(self, starts: Mapping[Partition, int], epochs: Epochs) -> Task:
        round_ = self._round(starts)
        places = self.spark.sparkContext.broadcast(self.open.places.spell())
        return Task(round=round_, settings=self.settings, lease=self.lease, record_epochs=epochs, places=places)

    def _action(self, pairs: RDD[Any], task: Task) -> list[Published]:
        """The one Spark action of a round, from (publish slot, ...) pairs."""

        def publish(slot: int, pairs: Any) -> Any:
            return publish_roots(slot, pairs, task)

        slots = self.settings.publish_slots
        try:
            return list(pairs.partitionBy(slots, int).mapPartitionsWithIndex(publish).collect())
        finally:
            task.places.destroy()

    def _end(self, results: Iterable[Published], tally: Mapping[str, int]) -> None:
        """Ends the round; one that promised nothing writes nothing. Its attempts are kept all the same, for the next round's end:
        a task of it that was given up may promise something later, which must not look acknowledged then."""
        later = {(self.number, r.slot): r.attempt for r in results if r.attempt}
        run = replace(self.run, attempts={**self.run.attempts, **later})
        if tally.get("published"):
            run = replace(run, through=self.number)
            outcome = self.store.write(end_round(run))
            # refused by what it wrote itself: the answer to an earlier try was lost
            if isinstance(outcome, Refused) and read_run(run.number, outcome.current) != run:
                raise Fenced(f"run {run.number}: round {self.number} was ended by another; this job must stop")
        self.run = run
        self.number += 1


def _sum(results: Iterable[Published]) -> Counter[str]:
    tally: Counter[str] = Counter()
    for published in results:
        tally.update(published.tally)
        tally.update({f"request {name}": n for name, n in published.requests.items()})
        for written in published.written:
            tally.update(written.tally)
    return tally
