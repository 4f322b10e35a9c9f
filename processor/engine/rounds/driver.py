"""The driver: decides which work is due, and runs it in rounds one after the other (`processor.engine.rounds.round_runner`).

Batches and background work (settling, fan-outs, backlog, walks) take turns in this one queue, so two rounds never overlap. The
table keeps all that a round leaves to later rounds. The driver's copy of it goes with the process, and `start` reads it
again.

The driver knows no Spark. `run`, `rounds` and the simulator run this same code; each passes its own
executor and clock.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from typing import TypeVar

from processor.counts import REPLAYED_AS, Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.touch import Root
from processor.engine.protocol.committed import NOTHING, Committed
from processor.engine.protocol.epochs import Partition
from processor.engine.protocol.replays import ReplayReport, end_replay, refuse_replay
from processor.engine.protocol.walk import WalkPage
from processor.engine.rounds.clock import Clock
from processor.engine.rounds.executor import Work
from processor.engine.rounds.follow_up_stages import (
    RootToRepair,
    backlog_stage,
    release_stage,
    repair_stage,
    resume_stage,
    settle_stage,
)
from processor.engine.rounds.job_event import JobEvent, Report
from processor.engine.rounds.keep_changes import close_open_changes
from processor.engine.rounds.replay_stage import replay_stage
from processor.engine.rounds.round import CHUNK, PublishSetup, Stage
from processor.engine.rounds.round_runner import RoundRunner
from processor.engine.rounds.run_progress import RunProgress
from processor.engine.rounds.spending import spending
from processor.engine.rounds.walk_stage import walk_stage
from processor.engine.rounds.write_stage import write_stage
from processor.environment.settings.settings import Settings
from processor.values.dead_letters import DeadLetter
from processor.values.source_transaction import NoTransactionFeed, TransactionFeed
from statestore.store import Store

UNSEEN_SECONDS = 0.5
"""Between two looks of a fill for rows that an index did not show."""
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Driver:
    """The driver of one run. `processor.engine.rounds.make_driver` makes it.

    tally: the counts of all rounds so far. last_letter: the place and the reason of the last dead letter.
    next_walk: when walks go on, on the job's clock. transactions: brings the ends of source transactions.
    """

    progress: RunProgress
    rounds: RoundRunner
    transactions: TransactionFeed = field(default_factory=NoTransactionFeed)
    tally: Counter[str] = field(default_factory=Counter)
    last_letter: str = ""
    next_walk: float = -math.inf

    @property
    def plan(self) -> Plan:
        """The plan of the version of the registry by which the job works."""
        return self.progress.plan

    @property
    def settings(self) -> Settings:
        """The settings of the run."""
        return self.progress.settings

    @property
    def store(self) -> Store:
        """The table."""
        return self.progress.store

    @property
    def clock(self) -> Clock:
        """The clock of the job."""
        return self.progress.clock

    @property
    def report(self) -> Report:
        """Where the run shows its events."""
        return self.progress.report

    @property
    def pending(self) -> bool:
        """Whether background work remains, now or later."""
        return self.unsettled or bool(self.progress.held.held)

    @property
    def unsettled(self) -> bool:
        """Whether work remains that may yet find roots. A root that waits at a gate is found: it goes out in its time."""
        return bool(self.progress.fan_outs.waiting or self.progress.backlog.next()) or bool(self._found_later())

    def next_due(self) -> float | None:
        """When the next background work is due, on the job's clock; None when nothing waits for its time."""
        if self.progress.fan_outs.waiting:
            return None
        held = self.progress.held.next_due()
        return min([*self._found_later(), *([] if held is None else [held])], default=None)

    @property
    def busy(self) -> bool:
        """Whether background work remains that need not wait."""
        walks = self.next_walk <= self.clock.now() and self._pages()
        return bool(self.progress.fan_outs.waiting or self.progress.backlog.next() or walks)

    @property
    def publishes(self) -> bool:
        """Whether the walk of a product still finds roots to publish."""
        return self.progress.walks.publishes(self.progress.backlog.stopped)

    def start(self) -> None:
        """Takes over what earlier runs left in the table. The caller has fenced those runs. Then waits W, so that the
        indexes show their writes; the first run of a job need not wait."""
        self.progress.reload()
        if self.rounds.run.number > 1:
            self.clock.sleep(self.progress.wait)

    def adopt(self, plan: Plan, setup: PublishSetup | None = None) -> None:
        """Works by this plan from now on: the plan of a version of the registry. Call it after `start`, and between rounds.
        Begins the walks that the edit makes necessary. `setup`: for this plan; None leaves it as it is."""
        self.rounds.check_lease()
        self.progress.adopt(plan, setup)

    def hold(self) -> None:
        """Publishes nothing until `end_hold`: the job is far behind, and writes rows first."""
        self.rounds.check_lease()
        self.progress.keep_walks(self.progress.walks.hold(self.plan, self.clock.date()))

    def end_hold(self) -> None:
        """Publishes each root once, as the rows are now, and from now on again what changes."""
        self.rounds.check_lease()
        self.progress.keep_walks(self.progress.walks.end_hold(self.plan))

    @property
    def asks(self) -> bool:
        """Whether the run must know where its topics end now (`expect`)."""
        return self.progress.held.asks

    def expect(self, ends: Mapping[Partition, int], positions: Mapping[Partition, int]) -> None:
        """Takes where the topics end, and where the run reads on. Until it has read so far, roots of whole transactions wait
        for `at_most`: tasks of a run before may have written rows of these records, or the connector sends them again."""
        self.progress.held.expect(ends, positions, self.clock.now())

    def note_read(self, positions: Mapping[Partition, int]) -> None:
        """Takes how far the run has read its topics."""
        self.progress.held.read(positions, self.clock.now())

    def process_batch(self, records: Work, committed: Committed, batch: int = 0) -> Counter[str]:
        """Processes a micro-batch, or a piece of it; returns its counts. `committed`: the records of the batches and pieces
        before."""
        self.rounds.batch = max(batch, self.rounds.batch + 1)
        self.progress.forget(self.progress.held.begin_batch(batch or self.rounds.batch, self.clock.now()))
        return self._round(f"batch {self.rounds.batch}", write_stage, records, committed)

    def background_work(self) -> None:
        """The work between batches: at most one round of settling, of fan-outs, of the backlog, of walks, and of
        roots that waited at gates."""
        self.settle_open_changes()
        self.resume_fan_outs()
        self.publish_backlog()
        self.walk()
        self.release_held()

    def settle_open_changes(self) -> None:
        """Settles the open changes that are due, and closes those that the indexes have shown long enough. The documents that it
        publishes count as corrections, unless the walk of a product goes on, which would have published them too."""
        self.progress.open_changes.confirm(self.clock.now())
        if due := self.progress.open_changes.due(self.clock.now()):
            work = split(due, min(len(due), self.settings.lanes))
            name = Count.PUBLISHED if self.publishes else Count.CORRECTIONS
            self._round("settled", settle_stage, work, published_as=name)
        self._close_open_changes()

    def resume_fan_outs(self) -> None:
        """Continues fan-outs, a page each."""
        if fan_outs := self.progress.fan_outs.next():
            self._round("fan-out", resume_stage, split(fan_outs, len(fan_outs)))

    def publish_backlog(self) -> None:
        """Publishes some of the backlog of earlier runs."""
        if items := self.progress.backlog.next():
            self._round("backlog", backlog_stage, [list(chain.from_iterable(items.values()))])
            for request in self.progress.backlog.remove(items):
                self.store.delete(request)

    def release_held(self) -> None:
        """Publishes the roots that their gates let through."""
        held, clock = self.progress.held, self.clock
        for topic, since in held.transactions.missing_ends().items():
            held.take_ends(topic, self.transactions.ends(topic, since))
        due = held.due(clock.now())
        if due.times:
            self.release(due.times)
            self.tally[Count.RELEASED_INCOMPLETE] += len(due.incomplete)

    def release(self, times: Mapping[Root, float]) -> None:
        """Publishes roots that wait, whatever their gates say. Each with Kafka's time of the oldest record that led to it."""
        held, clock = self.progress.held, self.clock
        self.rounds.check_lease()
        for write in held.note_release(list(times), self.rounds.number, clock.now(), clock.date()):
            self.store.write(write)
        self._round("released", release_stage, split(list(times.items()), min(len(times), self.settings.lanes)))
        self.progress.forget(held.released(list(times), clock.now()))

    def walk(self) -> None:
        """Continues the walks: some pages, at the rate of the settings."""
        if writes := self.progress.walks.end_fills(self.plan, self.clock.now()):
            self.rounds.check_lease()
            self.progress.keep_walks(writes)
        pages = self._pages() if self.next_walk <= self.clock.now() else []
        if pages:
            rows = self._round("walk", walk_stage, split(pages, len(pages)))["walked"]
            pause = rows / self.settings.walk_rate if self.settings.walk_rate else 0
            self.next_walk = self.clock.now() + max(pause, UNSEEN_SECONDS if any(page.unseen for page in pages) else 0)

    def repair(self, roots: Sequence[RootToRepair]) -> None:
        """Publishes the documents of roots again, also where the ledger has the same hash."""
        for first in range(0, len(roots), CHUNK):
            self._round("repair", repair_stage, [roots[first : first + CHUNK]])

    def replay(self, letters: Iterable[DeadLetter]) -> list[ReplayReport]:
        """Replays dead letters. Background work then settles their changes, and so publishes the documents."""
        self.rounds.check_lease()
        tasks: dict[Partition, list[DeadLetter]] = {}
        for letter in letters:
            tasks.setdefault((letter.rejected.record.topic, letter.rejected.record.partition), []).append(letter)
        results = self.rounds.run_stage(replay_stage, list(tasks.values()))
        self.progress.learn_forms(chain.from_iterable(result.forms for result in results))
        for result in results:
            self.progress.open_changes.add(result.opened, self.clock.now(), again=True)
        return [report for result in results for report in result.replayed]

    def end_replays(self, reports: Iterable[ReplayReport]) -> None:
        """Records which dead letters are replayed, once their documents are published. A letter that was refused again
        stays, with the time and the reason."""
        for report in reports:
            if report.outcome == "refused":
                self.store.write(refuse_replay(report, datetime.fromtimestamp(self.clock.date(), UTC)))
            else:
                self.store.write(end_replay(report.record, report.outcome))
            self.tally[f"{REPLAYED_AS}{report.outcome}"] += 1

    def _round(
        self,
        name: str,
        stage: Stage,
        work: Work,
        committed: Committed = NOTHING,
        *,
        published_as: str = Count.PUBLISHED,
    ) -> Counter[str]:
        """One round; returns its counts. `published_as`: the name under which they show the published documents."""
        tally, last_letter = self.rounds.run_round(stage, work, committed)
        if published_as != Count.PUBLISHED:
            tally[published_as] = tally.pop(Count.PUBLISHED, 0)
        self.tally.update(tally)
        self.report(JobEvent(what=name.split()[0], text=name, fields=tally))
        if last_letter:
            self.last_letter = last_letter
            text = f"{tally[Count.DEAD_LETTERS]} dead letters, the last: {last_letter}"
            self.report(JobEvent(what="dead letters", text=text, level="warning"))
        return tally

    def _found_later(self) -> list[float]:
        """When work is due that may find roots."""
        ends = [at + self.progress.walks.wait for at in self.progress.walks.shown_at.values()]
        dues = [self.progress.open_changes.next_due(), *ends, self.next_walk if self._pages() else None]
        return [due for due in dues if due is not None]

    def _pages(self) -> list[WalkPage]:
        return self.progress.walks.next(self.progress.backlog.stopped)

    def _close_open_changes(self) -> None:
        """Closes the changes that the indexes have shown long enough, and keeps the durable items few."""
        due = self.progress.open_changes.next_due()
        if due is None or not (due <= self.clock.now() or self.progress.open_changes.fragmented()):
            return
        self.rounds.check_lease()
        before = spending(self.store)
        close_open_changes(
            self.progress.open_changes, self.store, self.rounds.run.number, self.rounds.number, self.clock.now()
        )
        self.tally.update(spending(self.store) - before)


def split(work: Sequence[T], tasks: int) -> list[Sequence[T]]:
    """The work, dealt out to so many tasks."""
    return [work[n::tasks] for n in range(tasks)]
