"""Runs one round, and makes durable what it leaves to later rounds.

    1. check the lease, and let the executor run both stages (`processor.engine.rounds.round`)
    2. account for every record; the registry accounts for each dead letter, which its topic has by then
    3. end the round: from then on its reservations count as acknowledged
    4. let the progress take the results (`RunProgress.take`): the work that the round leaves becomes durable

`Driver` decides which round is next.

An executor runs the stages: here in this process. `processor.job.run.job` runs the same stages as tasks of Spark.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from processor.counts import Count
from processor.engine.protocol.epochs import NOTHING, Committed, Incarnations
from processor.engine.protocol.ledger import Run, end_round, read_run
from processor.engine.protocol.pending import Turn, Work
from processor.engine.protocol.segments import SegmentGroup, group_of
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.publish_stage import AskLimit, publish_lane
from processor.engine.rounds.round import (
    LaneResult,
    Remembered,
    Round,
    RoundRules,
    RoundTopics,
    Stage,
    StageResult,
    hold_back,
)
from processor.engine.rounds.round_counts import RejectWindow, RowReads, check_account, spending, stage_time
from processor.engine.rounds.run_progress import RunProgress
from processor.engine.rounds.step_runner import OpenWriter, Outbox, StepRunner
from processor.environment.settings.settings import statestore_version
from processor.errors import Fenced, LostWrites
from processor.values.dead_letters import LetterGroup
from processor.values.framing import NO_SCHEMAS, FramedReader
from registry.model import KeptLetter
from statestore.store import PAGE, Refused, Store

Tasks = Any
"""The work of a round: a sequence per task, or records in a form that the executor knows (a data frame)."""


class Executor(Protocol):
    """Runs stages over work."""

    def run_round(
        self, stage: Stage, work: Tasks, round_: Round, overlay: Mapping[int, SegmentGroup]
    ) -> list[LaneResult]:
        """Runs `stage` over the work of each task, then, when all tasks have ended, the publish stage of each lane. `overlay`:
        the open changes of earlier rounds, as `OpenChanges.overlay` has them."""

    def run_stage(self, stage: Stage, work: Tasks, round_: Round) -> list[StageResult]:
        """Runs `stage` over the work of each task, and publishes nothing."""


BeginAttempt = Callable[[Round], tuple[int, Outbox]]
"""Begins an attempt of the one lane: its number, and the outbox of its transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessExecutor:
    """Runs all stages in this process: the work of all tasks as one, and one lane. `begin`: begins an attempt;
    `ask_limit`: see `publish_lane`. `rejects`: where dead letters go. `page`, `schemas`, `open_writer`: as the step
    runner has them. The driver counts the requests of `store`, which it shares."""

    store: Store
    begin: BeginAttempt
    ask_limit: AskLimit | None = None
    rejects: Outbox | None = None
    page: int = PAGE
    schemas: FramedReader = NO_SCHEMAS
    open_writer: OpenWriter | None = None

    def run_round(
        self, stage: Stage, work: Iterable[Iterable[Any]], round_: Round, overlay: Mapping[int, SegmentGroup]
    ) -> list[LaneResult]:
        overlays = tuple(overlay.values())
        runner = StepRunner(
            store=self.store,
            outbox=self.rejects,
            overlays=overlays,
            page=self.page,
            schemas=self.schemas,
            open_writer=self.open_writer,
        )
        began = perf_counter()
        result = hold_back(stage(chain.from_iterable(work), round_, runner), round_, self.store)
        written, began = stage_time("write", began), perf_counter()
        opened = group_of(result.opened)

        def begin(attempted: Round) -> tuple[int, StepRunner]:
            attempt, outbox = self.begin(attempted)
            return attempt, replace(runner, outbox=outbox, overlays=(*overlays, opened), shown=result.shown)

        lane = publish_lane(0, result.roots, round_, begin, self.ask_limit) if result.roots else LaneResult(lane=0)
        tally = lane.tally + written + stage_time("publish", began)
        return [replace(lane, tally=tally, results=(replace(result, roots={}, shown=None),), sights=runner.sights())]

    def run_stage(self, stage: Stage, work: Iterable[Iterable[Any]], round_: Round) -> list[StageResult]:
        runner = StepRunner(store=self.store, outbox=self.rejects, page=self.page, schemas=self.schemas)
        return [stage(chain.from_iterable(work), round_, runner)]


NO_TURN = Turn()
DAY = 86_400
HOUR = 3_600
"""Subtracted from the age that a replayed dead letter may have: the clocks of two machines differ by less."""


KeepLetters = Callable[[Collection[KeptLetter]], None]
"""Accounts for dead letters in the registry."""


def keep_no_letters(_letters: Collection[KeptLetter]) -> None:
    """The account of a driver without a registry."""


def always_holds() -> None:
    """The lease check of a driver that shares its table with no other run."""


class RoundOutcome(NamedTuple):
    """tally: the counts of the round. last_letter: the place and the reason of its last dead letter; empty without one."""

    tally: Counter[str]
    last_letter: str


@dataclass(slots=True, kw_only=True)
class RoundRunner:
    """The rounds of one run."""

    executor: Executor
    progress: RunProgress
    run: Run
    """The run so far."""
    check_lease: Callable[[], None] = always_holds
    """Raises Fenced when another run took over."""
    keep_letters: KeepLetters = keep_no_letters
    rejects: RejectWindow
    number: int = 0
    """Of the next round."""
    batch: int = -1
    """The last micro-batch."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Of each topic of the next batch; one where it has none."""
    incarnations: Incarnations = field(default_factory=dict)
    """Of these topics, or of those of the dead letters to replay, by their epochs."""
    row_reads: RowReads = field(default_factory=RowReads)
    """Which rows a task reads before it writes them."""

    def run_round(
        self, stage: Stage, tasks: Tasks, committed: Committed = NOTHING, work: Work | None = None, turn: Turn = NO_TURN
    ) -> RoundOutcome:
        """One round over the work of tasks. `committed`: the records of the batches before; not for other work. `work`, `turn`:
        whose turn the round is, None for a batch."""
        self.check_lease()
        before = spending(self.progress.store)
        lanes = self.executor.run_round(stage, tasks, self.next_round(committed), self.progress.open_changes.overlay())
        results = [result for lane in lanes for result in lane.results]
        self.row_reads = self.row_reads.after(result.updates for result in results)
        tally: Counter[str] = Counter()
        for counts in (*(lane.tally for lane in lanes), *(result.tally for result in results)):
            tally.update(counts)
        letters = dict(chain.from_iterable(result.letters.items() for result in results))
        refused = [letter for result in results for letter in result.kept]
        if kept := refused + [letter for lane in lanes for letter in lane.kept]:
            self.keep_letters(kept)
        groups = Counter(LetterGroup(one.place.topic, one.code, one.column) for one in refused)
        check_account(tally, groups, letters, self.progress.settings)
        if tally[Count.READ]:
            self._check_window(tally, groups, letters)
        self._end_round(lanes, tally)
        tally.update(self.progress.take(lanes, self.number, work, turn))
        tally.update(spending(self.progress.store) - before)
        last = [list(result.letters.values())[-1] for result in results if result.letters]
        return RoundOutcome(tally, last[-1] if last else "")

    def _check_window(
        self, tally: Mapping[str, int], groups: Mapping[LetterGroup, int], letters: Mapping[LetterGroup, str]
    ) -> None:
        """Raises TooManyRejects where the last minutes of a topic have too large a share of dead letters. Warns once before."""
        now = self.progress.clock.now()
        warned = {one.topic for one in self.rejects.topics(now) if one.warns}
        self.rejects.add(now, tally, groups, letters)
        for one in self.rejects.topics(now):
            if one.warns and one.topic not in warned:
                self.progress.report(JobEvent(what="dead letters", text=one.text, level="warning"))
        self.rejects.check(now, {group.topic for group in groups})

    def run_stage(self, stage: Stage, tasks: Tasks) -> list[StageResult]:
        """One round that publishes nothing, and leaves its results to the caller."""
        results = self.executor.run_stage(stage, tasks, self.next_round())
        self.number += 1
        return results

    def next_round(self, committed: Committed = NOTHING) -> Round:
        """The facts that the stages of the next round share."""
        date, progress, settings = self.progress.clock.date(), self.progress, self.progress.settings
        clock = progress.clock_of_round()
        return Round(
            plan=progress.active,
            run=self.run,
            number=self.number,
            batch=max(self.batch, 0),
            date=date,
            clock=clock,
            setup=progress.setup,
            topics=RoundTopics(committed=committed, partitions=self.partitions, incarnations=self.incarnations),
            remembered=Remembered(
                stopped=frozenset(progress.backlog.stopped),
                unfit=frozenset(progress.unfit),
                truncates=progress.walks.truncates,
                erased=progress.erased,
                forms=progress.forms,
                read_first=frozenset() if progress.store.consistent else self.row_reads.entities(progress.plan),
                proven=progress.walks.proven(progress.plan),
            ),
            rules=RoundRules(
                expires_at=int(date) + settings.marker_days * DAY,
                oldest=date - settings.marker_days * DAY + HOUR,
                dead_letter_topic=settings.dead_letter_topic,
                walk_page=settings.walk_page,
                log_values=settings.log_values,
                release=statestore_version(),
            ),
        )

    def _end_round(self, lanes: Iterable[LaneResult], tally: Mapping[str, int]) -> None:
        """Ends the round. A round without messages writes nothing, but the run keeps its attempts for the next end: a
        task that Spark gave up may still reserve a message, and that reservation must not look acknowledged. A consistent
        store is one server, whose failover may lose writes: it also gets the end of a round that wrote rows only."""
        retried = {(self.number, lane.lane): lane.attempt for lane in lanes if lane.attempt}
        run = replace(self.run, attempts={**self.run.attempts, **retried})
        sent = tally.get(Count.PUBLISHED) or tally.get(Count.UNFIT)
        if sent or (self.progress.store.consistent and tally.get(Count.APPLIED)):
            run = replace(run, through=self.number)
            outcome = self.progress.store.write(end_round(run, self.run.through))
            if isinstance(outcome, Refused):
                self._check_end(run, read_run(run.number, outcome.current))
        self.run = run
        self.number += 1

    def _check_end(self, run: Run, found: Run) -> None:
        """Raises the reason of a refusal. The store may refuse a write that it has done, when the answer to the first try was
        lost."""
        if found.through < self.run.through:
            raise LostWrites(run.number, self.run.through)
        if found != run:
            raise Fenced(f"run {run.number}: another process ended round {self.number}; this job must stop")
