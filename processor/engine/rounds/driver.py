"""The driver: decides which work is due, and runs it in rounds one after the other (`processor.engine.rounds.round_runner`).

Batches and background work (settling, fan-outs, backlog, walks) take turns in this one queue, so two rounds never overlap. The
table keeps all that a round leaves to later rounds. The driver's copy of it goes with the process, and `start` reads it
again.

The driver knows no Spark. `run`, `rounds` and the simulator run this same code; each passes its own
executor and clock.

Makes the driver of a run.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from time import perf_counter
from typing import NamedTuple

from processor.counts import REPLAYED_AS, Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Root
from processor.engine.protocol.epochs import Committed, Partition
from processor.engine.protocol.held_roots import DueRoots
from processor.engine.protocol.ledger import Run
from processor.engine.protocol.pending import Moment, Turn, Turns, Work
from processor.engine.protocol.replays import ReplayReport, end_replay, refuse_replay
from processor.engine.rounds.events import Clock, JobEvent, Report, no_report
from processor.engine.rounds.follow_up_stages import (
    RootToRepair,
    backlog_stage,
    release_stage,
    repair_stage,
    replay_stage,
    resume_stage,
    settle_stage,
    walk_stage,
)
from processor.engine.rounds.round import CHUNK, PublishSetup, Stage
from processor.engine.rounds.round_counts import RejectWindow, account_text, spending
from processor.engine.rounds.round_runner import (
    Executor,
    KeepLetters,
    RoundOutcome,
    RoundRunner,
    Tasks,
    always_holds,
    keep_no_letters,
)
from processor.engine.rounds.run_progress import RunProgress
from processor.engine.rounds.write_stage import write_stage
from processor.environment.settings.settings import Settings
from processor.values.dead_letters import DeadLetter
from processor.values.record import NoTransactionFeed, TransactionFeed
from statestore.store import Store


class Kind(NamedTuple):
    """A kind of work between batches: its name, for people, the stage of its rounds, and what waits of it."""

    name: str
    stage: Stage
    work: Work


@dataclass(slots=True, kw_only=True)
class Driver:
    """The driver of one run. `make_driver` makes it."""

    progress: RunProgress
    rounds: RoundRunner
    transactions: TransactionFeed = field(default_factory=NoTransactionFeed)
    """Brings the ends of source transactions."""
    tally: Counter[str] = field(default_factory=Counter)
    """The counts of all rounds so far."""
    last_letter: str = ""
    """The place and the reason of the last dead letter."""

    @property
    def plan(self) -> Plan:
        """The plan of the version of the registry that the job applies."""
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

    def kinds(self) -> Iterator[Kind]:
        """The kinds of work between batches, in the order of their turns. An edit replaces some of them."""
        progress = self.progress
        yield Kind("settled", settle_stage, progress.open_changes)
        yield Kind("fan-out", resume_stage, progress.fan_outs)
        yield Kind("backlog", backlog_stage, progress.backlog)
        yield Kind("walk", walk_stage, progress.walks)
        if progress.ticks.step:
            yield Kind("due", backlog_stage, progress.ticks)
        yield Kind("released", release_stage, progress.held)

    @property
    def pending(self) -> bool:
        """Whether background work remains, now or later."""
        return self.unsettled or bool(self.progress.held.held)

    @property
    def unsettled(self) -> bool:
        """Whether work remains that may yet find roots. A root that waits at a gate is found: it goes out in its time. So does
        one that waits for a tick of the clock."""
        progress = self.progress
        later = (id(progress.held), id(progress.ticks))
        others = (kind.work for kind in self.kinds() if id(kind.work) not in later)
        return any(work.next_due() is not None for work in others) or self._is_due(progress.ticks)

    def next_due(self) -> float | None:
        """When the next background work is due, on the job's clock: minus infinity for at once, None where there is none."""
        dues = (kind.work.next_due() for kind in self.kinds())
        return min((due for due in dues if due is not None), default=None)

    @property
    def busy(self) -> bool:
        """Whether background work remains that need not wait."""
        progress = self.progress
        works: list[Work] = [progress.fan_outs, progress.backlog, progress.walks, progress.ticks]
        return any(map(self._is_due, works))

    def _is_due(self, work: Work) -> bool:
        due = work.next_due()
        return due is not None and due <= self.clock.now()

    @property
    def publishes(self) -> bool:
        """Whether the walk of a product still finds roots to publish."""
        return self.progress.walks.publishes()

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

    def begin_catch_up(self) -> None:
        """Publishes nothing until `end_catch_up`: the job is far behind, and writes rows first."""
        self.rounds.check_lease()
        self.progress.keep(self.progress.walks.begin_catch_up(self.plan, self.clock.date()))

    def end_catch_up(self) -> None:
        """Publishes each root once, as the rows are now, and from now on again what changes."""
        self.rounds.check_lease()
        self.progress.keep(self.progress.walks.end_catch_up(self.plan))

    @property
    def needs_topic_ends(self) -> bool:
        """Whether the run must know where its topics end now (`expect`)."""
        return self.progress.held.needs_topic_ends

    def note_topic_ends(self, ends: Mapping[Partition, int], positions: Mapping[Partition, int]) -> None:
        """Takes where the topics end, and where the run reads on. Until it has read so far, roots of whole transactions wait
        for `at_most`: tasks of a run before may have written rows of these records, or the connector sends them again."""
        self.progress.held.note_topic_ends(ends, positions, self.clock.now())

    def note_read(self, positions: Mapping[Partition, int]) -> None:
        """Takes how far the run has read its topics."""
        self.progress.held.read(positions, self.clock.now())

    def process_batch(self, records: Tasks, committed: Committed, batch: int = 0) -> Counter[str]:
        """Processes a micro-batch, or a piece of it; returns its counts. `committed`: the records of the batches and pieces
        before."""
        self.rounds.batch = max(batch, self.rounds.batch + 1)
        self.progress.forget(self.progress.held.begin_batch(batch or self.rounds.batch, self.clock.now()))
        began = perf_counter()
        return self._round(f"batch {self.rounds.batch}", self.rounds.run_round(write_stage, records, committed), began)

    def background_work(self) -> None:
        """The work between batches: at most one round of each kind."""
        for kind in self.kinds():
            self.work(kind)

    def work(self, kind: Kind) -> None:
        """The turns of a kind of work."""
        if kind.work is self.progress.held:
            self._take_ends()
        if kind.work is self.progress.ticks:
            self.progress.look_for_due()
        self._follow(kind, kind.work.turns(self._moment()))

    def release(self, times: Mapping[Root, float]) -> None:
        """Publishes roots that wait, whatever their gates say. Each with Kafka's time of the oldest record that led to it."""
        *_, kind = self.kinds()
        self._follow(kind, self.progress.held.release(DueRoots(dict(times), set()), self._moment()))

    def _follow(self, kind: Kind, turns: Turns) -> None:
        turn = next(turns, None)
        while turn is not None:
            self._turn(kind, turn)
            try:
                turn = turns.send(self._moment())
            except StopIteration:
                return

    def repair(self, roots: Sequence[RootToRepair]) -> None:
        """Publishes the documents of roots again, also where the ledger has the same hash."""
        for first in range(0, len(roots), CHUNK):
            began = perf_counter()
            self._round("repair", self.rounds.run_round(repair_stage, [roots[first : first + CHUNK]]), began)

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
            self.tally.update(result.tally)
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
            self.tally[Count.REPLAYED] += 1

    def _moment(self) -> Moment:
        return self.progress.moment(self.rounds.number)

    def _take_ends(self) -> None:
        held = self.progress.held
        for topic, since in held.transactions.missing_ends().items():
            held.take_ends(topic, self.transactions.ends(topic, since))

    def _turn(self, kind: Kind, turn: Turn) -> None:
        """One turn. The documents that settling publishes count as corrections, unless the walk of a product still runs, which
        would have published them too."""
        if not turn.tasks:
            self.rounds.check_lease()
            before = spending(self.store)
            self.progress.keep(turn.requests)
            self.tally.update(spending(self.store) - before)
            return
        is_correction = kind.work is self.progress.open_changes and not self.publishes
        began = perf_counter()
        outcome = self.rounds.run_round(kind.stage, turn.tasks, work=kind.work, turn=turn)
        self._round(kind.name, outcome, began, is_correction)
        if turn.incomplete:
            self.tally[Count.RELEASED_INCOMPLETE] += turn.incomplete

    def _round(self, name: str, outcome: RoundOutcome, began: float, is_correction: bool = False) -> Counter[str]:
        """Counts a round, and shows it; returns its counts. `began`: a moment of `perf_counter`."""
        tally, last_letter = outcome
        if is_correction:
            tally[Count.CORRECTIONS] = tally.pop(Count.PUBLISHED, 0)
        self.tally.update(tally)
        self.report(JobEvent(what=name.split()[0], text=name, fields=tally, seconds=perf_counter() - began))
        if last_letter:
            self.last_letter = last_letter
            text = f"{name}: {account_text(tally)}, the last: {last_letter}"
            self.report(JobEvent(what="dead letters", text=text, level="warning"))
        return tally


def make_driver(
    *,
    settings: Settings,
    plan: Plan,
    store: Store,
    executor: Executor,
    clock: Clock,
    run: Run,
    check_lease: Callable[[], None] = always_holds,
    report: Report = no_report,
    setup: PublishSetup | None = None,
    transactions: TransactionFeed | None = None,
    keep_letters: KeepLetters = keep_no_letters,
    strict: bool = False,
) -> Driver:
    """The driver of a run, which begins by this plan. `check_lease`: raises Fenced when another run took over; `strict`: of
    `RejectWindow`."""
    progress = RunProgress(
        settings=settings,
        plan=plan,
        store=store,
        clock=clock,
        run=run.number,
        report=report,
        setup=setup or PublishSetup(),
    )
    rounds = RoundRunner(
        executor=executor,
        progress=progress,
        run=run,
        check_lease=check_lease,
        keep_letters=keep_letters,
        rejects=RejectWindow(settings=settings, strict=strict),
    )
    return Driver(progress=progress, rounds=rounds, transactions=transactions or NoTransactionFeed())
