"""Measure the cost of open changes for the driver and its workers at a steady rate of writes, without store, Kafka and Spark.

    python -m benchmarks.backlog [--rates 1000 5000 15000 50000] [--seconds 20]

Each write is a new star with two slots. A round of one second opens its change, and publishes one document, which asks the index
of one slot. S later a round settles the change, because the indexes show the star. W after that the change closes. Promises:
figures of the steady state, after the first open changes were closed.

The driver is that of a job. Simulated: the tasks of Spark, one for 500 writes in each stage. They make and read segments by the
code of the workers; their rows and documents do not exist. Orders, results and broadcasts cross as pickled bytes. The JVM, the
network and Kafka are left out. The table is memory that counts write units.
"""

import argparse
import pickle
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from time import process_time
from typing import Any

from benchmarks.steps import demo_plan
from processor.cli.options import print_progress
from processor.counts import Count
from processor.engine.protocol.epochs import NOTHING
from processor.engine.protocol.ledger import LedgerEntry, Mark, Run, hash_of, reserve
from processor.engine.protocol.open_changes import SettledSegment
from processor.engine.protocol.segments import (
    DueSegment,
    IndexKey,
    OpenChange,
    OpenRow,
    Segment,
    SegmentGroup,
    make_segments,
    observations_of,
    open_rows,
)
from processor.engine.rounds.driver import make_driver
from processor.engine.rounds.events import VirtualClock
from processor.engine.rounds.round import LaneResult, Round, Stage, StageResult
from processor.engine.rounds.step_runner import tune_garbage_collector
from processor.engine.rounds.write_stage import write_stage
from processor.environment.settings.settings import Settings
from statestore.items import encode_version, slot_name
from statestore.keys import Key, row_key
from statestore.memory import MeteredStore
from statestore.store import Delete, Done, Refused, Write, WriteOutcome

RATES = (1_000, 5_000, 15_000, 50_000)
USERS, REPOS = 100, 5_000
"""Users for each write a second, so a user gets a star every 100 seconds at each rate; and all repositories."""
WRITES_OF_A_TASK = 500
MEASURED = 5
"""The rounds whose costs count: the last of a run."""
LEDGER = "LEDGER#user#0"
INDEX = slot_name(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenChangeCost:
    """The cost of the open changes at `rate` writes a second.

    `entries`: how many changes are open. `driver_cpu`: CPU milliseconds of the driver in a second. `driver_memory`: MB that it
    holds. `sent`: MB of open changes that it sends to each executor in a second. `worker_write`: CPU microseconds of all workers
    for a write; `worker_load`: CPU milliseconds of each worker in a second to take what is new. `open_units`, `ledger_units`,
    `runs_units`: write units a second of the busiest partition key of its kind.
    """

    rate: int
    entries: int
    driver_cpu: float
    driver_memory: float
    sent: float
    worker_write: float
    worker_load: float
    open_units: float
    ledger_units: float
    runs_units: float


class Table(MeteredStore):
    """A table that counts the write units of each partition key."""

    def __init__(self) -> None:
        super().__init__(2)
        self.units = Counter[str]()

    def write(self, write: Write) -> WriteOutcome:
        before, outcome = self.written, super().write(write)
        self.units[write.key.pk] += self.written - before
        return outcome

    def delete(self, delete: Delete) -> Done | Refused:
        before, outcome = self.written, super().delete(delete)
        self.units[delete.key.pk] += self.written - before
        return outcome

    def busiest(self, kind: str) -> int:
        """The write units of the busiest partition key of a kind."""
        return max((units for pk, units in self.units.items() if pk.startswith(kind)), default=0)


@dataclass(slots=True, kw_only=True)
class SimulatedExecutor:
    """An executor whose tasks deal with open changes only. `publishes`: the tasks look up what documents look up. `sent`: bytes
    of open changes. `tasks`, `loads`, `outside`: CPU seconds of the tasks, of one worker that takes what is new, and of all that
    the driver does not do."""

    rate: int
    table: Table
    random: Random
    publishes: bool
    sent: int = 0
    tasks: float = 0.0
    loads: float = 0.0
    outside: float = 0.0
    groups: dict[int, SegmentGroup] = field(default_factory=dict)

    def run_round(
        self, stage: Stage, work: Any, round_: Round, overlay: Mapping[int, SegmentGroup]
    ) -> list[LaneResult]:
        """As an executor of Spark: bytes go out, and come back."""
        new = {n: pickle.dumps(group) for n, group in overlay.items() if n not in self.groups}
        self.sent += sum(map(len, new.values()))
        orders = pickle.dumps(work)
        with self._outside():
            self._load(overlay, new)
            began = process_time()
            lanes = self._write(round_) if stage is write_stage else _settle(pickle.loads(orders))
            self.tasks += process_time() - began
            results = pickle.dumps(lanes)
            del lanes
        found: list[LaneResult] = pickle.loads(results)
        return found

    def run_stage(self, stage: Stage, work: Any, round_: Round) -> list[StageResult]:
        raise AssertionError("nobody replays dead letters here")

    @contextmanager
    def _outside(self) -> Iterator[None]:
        """What the driver does not do."""
        began = process_time()
        yield
        self.outside += process_time() - began

    def _load(self, overlay: Mapping[int, SegmentGroup], new: Mapping[int, bytes]) -> None:
        """One worker takes the groups that it lacks. Without lookups it only remembers that it has them."""
        began = process_time()
        kept = {n: group for n, group in self.groups.items() if n in overlay}
        self.groups = kept | {
            n: pickle.loads(group) if self.publishes else SegmentGroup(()) for n, group in new.items()
        }
        for n in new:
            self.groups[n].lacks(0)  # makes the index
        self.loads += process_time() - began

    def _write(self, round_: Round) -> list[LaneResult]:
        numbers = range(0, self.rate, WRITES_OF_A_TASK)
        changes = [list(self._changes(round_.number, n, min(WRITES_OF_A_TASK, self.rate - n))) for n in numbers]
        opened = [self._opened(own, round_, n) for n, own in enumerate(changes)]
        results = tuple(
            StageResult(tally=Counter({Count.READ: s.size, Count.APPLIED: s.size}), opened=(s,))
            for own in opened
            for s in own
        )
        group = SegmentGroup(tuple(segment for own in opened for segment in own))
        return [LaneResult(lane=0, results=results), *(self._publish(n, own, group) for n, own in enumerate(changes))]

    def _opened(self, changes: Sequence[OpenChange], round_: Round, n: int) -> list[Segment]:
        segments = list(make_segments(changes, round_.run.number, round_.number, f"star.{n}"))
        writes = [segment.write() for segment in segments]
        began = process_time()
        for write in writes:
            self.table.write(write)
        self.tasks -= process_time() - began  # the store is not a worker's
        return segments

    def _publish(self, lane: int, changes: Sequence[OpenChange], opened: SegmentGroup) -> LaneResult:
        """A document for each change. The index shows it at once."""
        rows: dict[IndexKey, list[tuple[Key, OpenRow]]] = {}
        seen = dict[tuple[Key, str], str]()
        groups = (*self.groups.values(), opened)
        for change in changes if self.publishes else ():
            at = (INDEX, change.slots[0][1])
            rows[at] = open_rows(groups, at)
            for key, row in rows[at]:
                seen[key, INDEX] = max(row.version, seen.get((key, INDEX), ""))
        return LaneResult(
            lane=lane, tally=Counter({Count.PUBLISHED: len(changes)}), sights=tuple(observations_of(seen, rows, {}))
        )

    def _changes(self, second: int, first: int, writes: int) -> Iterator[OpenChange]:
        random = self.random
        for n in range(first, first + writes):
            user, repo = f"user{random.randrange(USERS * self.rate)}", random.randrange(REPOS)
            offset = second * self.rate + n
            slots = ((1, user), (2, f"owner{offset}#repo{repo}"))
            key, version = row_key("star", 1, f"{user}#repo{repo}#owner{offset}"), encode_version(0, 0, offset)
            yield OpenChange("star", key, version, slots, frozenset())


def _settle(work: Sequence[Sequence[DueSegment]]) -> list[LaneResult]:
    """Settles segments that the indexes show."""
    settled = tuple(SettledSegment(due.segment.name, None) for task in work for due in task)
    count = sum(1 for task in work for due in task for _ in due.changes())
    return [LaneResult(lane=0, results=(StageResult(tally=Counter({Count.SETTLED: count}), done=settled),))]


def measure_open_changes(rate: int, seconds: int = 20) -> OpenChangeCost:
    """The cost after this many seconds at `rate` writes a second."""
    held, costs = _run(rate, seconds, publishes=False)[0], _run(rate, seconds, publishes=True)[1]
    return OpenChangeCost(rate=rate, driver_memory=held / 1e6, **costs)


def _run(rate: int, seconds: int, *, publishes: bool) -> tuple[int, dict[str, Any]]:
    """The bytes that the driver holds at the end, where no task publishes, and the costs of the last rounds."""
    settings, clock, table = Settings(), VirtualClock(), Table()
    executor = SimulatedExecutor(rate=rate, table=table, random=Random(1), publishes=publishes)
    driver = make_driver(
        settings=settings, plan=demo_plan(), store=table, executor=executor, clock=clock, run=Run(number=1)
    )
    tune_garbage_collector()  # as each process that runs steps
    if not publishes:
        tracemalloc.start()
    for second in range(seconds):
        if second == seconds - MEASURED:
            executor.sent, executor.tasks, executor.loads, executor.outside = 0, 0.0, 0.0, 0.0
            table.units.clear()
            began = process_time()
        driver.process_batch([], NOTHING)
        driver.background_work()
        clock.sleep(1)
    cpu = process_time() - began - executor.outside
    traced = tracemalloc.get_traced_memory()[0] if not publishes else 0
    tracemalloc.stop()
    costs = {
        "entries": driver.progress.open_changes.count,
        "driver_cpu": 1e3 * cpu / MEASURED,
        "sent": executor.sent / 1e6 / MEASURED,
        "worker_write": 1e6 * executor.tasks / MEASURED / rate,
        "worker_load": 1e3 * executor.loads / MEASURED,
        "open_units": table.busiest("OPEN#") / MEASURED,
        "ledger_units": _reservation_units() * rate,
        "runs_units": table.busiest("RUNS") / MEASURED,
    }
    return traced, costs


def _reservation_units() -> int:
    """The write units of the ledger for one document."""
    table, entry = Table(), LedgerEntry(1, hash_of(b"{}"), Mark(1, 1, 1, 0), 1)
    table.write(reserve(Key(LEDGER, "user1"), None, {0: entry}, '{"email":"user1"}'))
    return table.busiest("LEDGER")


def main() -> None:
    """Prints the costs at each rate."""
    from benchmarks.report import format_open_changes

    options = argparse.ArgumentParser(description="Measures open changes at steady rates of writes.")
    options.add_argument("--rates", type=int, nargs="+", default=RATES, help="writes a second (default: %(default)s)")
    options.add_argument("--seconds", type=int, default=20, help="rounds at each rate (default: %(default)s)")
    given = options.parse_args()
    costs = []
    for rate in given.rates:
        print_progress(f"open changes: {given.seconds} seconds at {rate:,} writes/s")
        costs.append(measure_open_changes(rate, given.seconds))
    print("\n\n".join(format_open_changes(costs)))


if __name__ == "__main__":
    main()
