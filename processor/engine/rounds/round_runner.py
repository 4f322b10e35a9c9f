"""Runs one round, and makes durable what it leaves to later rounds.

    1. check the lease, and let the executor run both stages (`processor.engine.rounds.round`)
    2. account for every record
    3. end the round: from then on its reservations count as acknowledged
    4. let the progress take the results (`RunProgress.take`): the backlog, the fan-outs, and the walks become durable
    5. then the progress takes the open changes, the outcomes of settling, and the open rows that index answers showed

`Driver` decides which round is next.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from processor.counts import Count
from processor.engine.protocol.committed import NOTHING, Committed
from processor.engine.protocol.epochs import Incarnations
from processor.engine.protocol.ledger import Run, end_round, read_run
from processor.engine.rounds.account import check_account
from processor.engine.rounds.executor import Executor, Work
from processor.engine.rounds.round import LaneResult, Round, Stage, StageResult
from processor.engine.rounds.row_reads import RowReads
from processor.engine.rounds.run_progress import RunProgress
from processor.engine.rounds.spending import spending
from processor.environment.settings.settings import statestore_version
from processor.errors import Fenced, LostWrites
from statestore.store import Refused

DAY = 86_400
HOUR = 3_600
"""Subtracted from the age that a replayed dead letter may have: the clocks of two machines differ by less."""


def no_lease() -> None:
    """The lease check of a driver that shares its table with no other run."""


class RoundOutcome(NamedTuple):
    """tally: the counts of the round. last_letter: the place and the reason of its last dead letter; empty without one."""

    tally: Counter[str]
    last_letter: str


@dataclass(slots=True, kw_only=True)
class RoundRunner:
    """The rounds of one run.

    run: the run so far. check_lease: raises Fenced when another run took over.
    number: of the next round; batch: of the last micro-batch.
    partitions: of each topic of the next batch, one where it has none.
    incarnations: of these topics, or of those of the dead letters to replay, by their epochs.
    row_reads: which rows a task reads before it writes them.
    """

    executor: Executor
    progress: RunProgress
    run: Run
    check_lease: Callable[[], None] = no_lease
    number: int = 0
    batch: int = -1
    partitions: Mapping[str, int] = field(default_factory=dict)
    incarnations: Incarnations = field(default_factory=dict)
    row_reads: RowReads = field(default_factory=RowReads)

    def run_round(self, stage: Stage, work: Work, committed: Committed = NOTHING) -> RoundOutcome:
        """One round over the work. `committed`: the records of the batches before; not for other work."""
        self.check_lease()
        before = spending(self.progress.store)
        lanes = self.executor.run_round(stage, work, self.next_round(committed), self.progress.open_changes.overlay())
        results = [result for lane in lanes for result in lane.results]
        self.row_reads = self.row_reads.after(result.updates for result in results)
        tally: Counter[str] = Counter()
        for counts in (*(lane.tally for lane in lanes), *(result.tally for result in results)):
            tally.update(counts)
        letters = dict(chain.from_iterable(result.letters.items() for result in results))
        check_account(tally, letters, self.progress.settings)
        self._end_round(lanes, tally)
        tally.update(self.progress.take(lanes, self.number))
        tally.update(spending(self.progress.store) - before)
        last = [list(result.letters.values())[-1] for result in results if result.letters]
        return RoundOutcome(tally, last[-1] if last else "")

    def run_stage(self, stage: Stage, work: Work) -> list[StageResult]:
        """One round that publishes nothing, and leaves its results to the caller."""
        results = self.executor.run_stage(stage, work, self.next_round())
        self.number += 1
        return results

    def next_round(self, committed: Committed = NOTHING) -> Round:
        """The facts that the stages of the next round share."""
        date, progress, settings = self.progress.clock.date(), self.progress, self.progress.settings
        return Round(
            plan=progress.active,
            run=self.run,
            number=self.number,
            batch=max(self.batch, 0),
            committed=committed,
            expires_at=int(date) + settings.marker_days * DAY,
            oldest=date - settings.marker_days * DAY + HOUR,
            dead_letter_topic=settings.dead_letter_topic,
            setup=progress.setup,
            stopped=frozenset(progress.backlog.stopped),
            unfit=frozenset(progress.unfit),
            partitions=self.partitions,
            truncates=progress.walks.truncates,
            walk_page=settings.walk_page,
            log_values=settings.log_values,
            erased=progress.erased,
            incarnations=self.incarnations,
            release=statestore_version(),
            forms=progress.forms,
            date=date,
            read_first=frozenset() if progress.store.consistent else self.row_reads.entities(progress.plan),
            proven=progress.walks.proven(progress.plan),
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
