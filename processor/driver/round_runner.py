"""Runs one round, and makes durable what it leaves to later rounds.

    1. check the lease, and let the executor run both stages (`processor.rounds.round`)
    2. account for every record
    3. end the round: from then on its reservations count as acknowledged
    4. make the backlog, the fan-outs and the progress of walks durable
    5. take the open changes, the outcomes of settling, and the open rows that index answers showed

`Driver` decides which round is next.
"""

import math
from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from processor.driver.clock import Clock
from processor.driver.executor import Executor, Work
from processor.driver.publish_setup import PublishSetup
from processor.driver.row_reads import RowReads
from processor.errors import Fenced, LostWrites
from processor.plan.plan import Plan
from processor.plan.touch import Root
from processor.progress.backlog import Backlog, stopped_line
from processor.progress.epochs import Incarnations, Partition
from processor.progress.erasures import Erased
from processor.progress.fan_outs import FanOuts
from processor.progress.form_notes import Forms, with_notes
from processor.progress.ledger import Run, end_round, read_run
from processor.progress.open_changes import PARTITION, OpenChanges
from processor.progress.walk import WalkPage
from processor.progress.walks import Walks
from processor.rounds.account import check_account
from processor.rounds.index_lag import count_lags
from processor.rounds.job_event import JobEvent, Report, no_report
from processor.rounds.round import LaneResult, Part, PartResult, Round
from processor.rounds.spending import spending
from processor.settings.installed_release import statestore_version
from processor.settings.settings import Settings
from statestore.store import Delete, Done, Refused, Store, Write

DAY = 86_400
HOUR = 3_600
"""Subtracted from the age that a replayed dead letter may have: the clocks of two machines differ by less."""


def no_lease() -> None:
    """The lease check of a driver that shares its table with no other run."""


@dataclass(slots=True, kw_only=True)
class RoundRunner:
    """The rounds of one run.

    check_lease: raises Fenced when another run took over. setup: what the run knows of the topics to publish to.
    tally: the counts of all rounds so far. number: of the next round; batch: of the last micro-batch.
    unfit: the roots whose last document did not fit, with the reason.
    active: the plan without the products that wait for their walks.
    next_walk: when walks go on, on the job's clock. last_letter: the place and the reason of the last dead letter.
    erased: the rows that an operator erased.
    partitions: of each topic of the next batch, one where it has none.
    incarnations: of these topics, or of those of the dead letters to replay, by their epochs.
    forms: of decimals, as records settled them.
    row_reads: which rows a task reads before it writes them.
    """

    settings: Settings
    plan: Plan
    store: Store
    executor: Executor
    clock: Clock
    run: Run
    check_lease: Callable[[], None] = no_lease
    report: Report = no_report
    setup: PublishSetup = field(default_factory=PublishSetup)
    open_changes: OpenChanges = field(init=False)
    fan_outs: FanOuts = field(init=False)
    backlog: Backlog = field(init=False)
    walks: Walks = field(init=False)
    active: Plan = field(init=False)
    next_walk: float = -math.inf
    tally: Counter[str] = field(default_factory=Counter)
    number: int = 0
    batch: int = -1
    last_letter: str = ""
    unfit: dict[Root, str] = field(default_factory=dict)
    erased: Erased = frozenset()
    partitions: Mapping[str, int] = field(default_factory=dict)
    incarnations: Incarnations = field(default_factory=dict)
    forms: Forms = field(default_factory=dict)
    row_reads: RowReads = field(default_factory=RowReads)

    def __post_init__(self) -> None:
        settle = 0.0 if self.store.consistent else self.settings.settle_seconds
        self.open_changes = OpenChanges(wait=self.wait, settle=settle)
        self.fan_outs = FanOuts(products=self.plan.products, run=self.run.number)
        self.backlog = Backlog(products=self.plan.products, run=self.run.number)
        self.walks = Walks(run=self.run.number, wait=self.wait, verifies=not self.store.consistent)
        self.active = self.plan

    @property
    def wait(self) -> float:
        """W in seconds; 0 where no index is late."""
        return 0.0 if self.store.consistent else self.settings.wait_seconds

    def _round(
        self,
        name: str,
        part: Part,
        work: Work,
        starts: Mapping[Partition, int] | None = None,
        *,
        published_as: str = "published",
    ) -> Counter[str]:
        """One round; returns its counts. `published_as`: the name under which they show the published documents."""
        self.check_lease()
        before = spending(self.store)
        round_ = self._next_round(starts or {})
        lanes = self.executor.run_round(part, work, round_, self.open_changes.overlay)
        parts = [result for lane in lanes for result in lane.parts]
        self._learn_forms(parts)
        self.row_reads = self.row_reads.after(result.updates for result in parts)
        tally: Counter[str] = Counter()
        for counts in (*(lane.tally for lane in lanes), *(result.tally for result in parts)):
            tally.update(counts)
        letters = dict(chain.from_iterable(result.letters.items() for result in parts))
        check_account(tally, letters, self.settings)
        self._end_round(lanes, tally)
        self._keep_backlog(lanes)
        if truncates := list(chain.from_iterable(result.truncates for result in parts)):
            self._keep_walks(self.walks.truncate(truncates, self.plan, self.clock.date()))
            for entity in dict.fromkeys(entity for entity, _ in truncates):
                text = f"the source emptied the table of {entity}: the job deletes its older rows, in turn with batches"
                self.report(JobEvent(what="truncate", text=text))
        for fan_out in chain.from_iterable(result.fan_outs for result in parts):
            self._keep(self.fan_outs.add(fan_out))
        for resumed in chain.from_iterable(result.resumed for result in parts):
            self._keep(self.fan_outs.advance(resumed))
        for item, changes in chain.from_iterable(result.opened.items() for result in parts):
            self.open_changes.add(item, changes, self.clock.now())
        if walked := list(chain.from_iterable(result.walked for result in parts)):
            self._keep_walks(self.walks.advance(walked, self.plan, self.clock.now()))
            for one in (one for one in walked if one.refused):
                text = f"{' '.join(one.page.walk)} stopped until the next start: {one.refused}"
                self.report(JobEvent(what="walk stopped", text=text, level="warning"))
        settled = list(chain.from_iterable(result.settled for result in parts))
        of_lanes, of_parts = (lane.sights for lane in lanes), (result.sights for result in parts)
        sights = list(chain.from_iterable(chain(of_lanes, of_parts)))
        tally.update(count_lags(self.open_changes.lags(sights, settled, self.clock.now())))
        if settled:
            self.open_changes.record(settled, self.clock.now())
        self.open_changes.see(sights)
        tally.update(spending(self.store) - before)
        if published_as != "published":
            tally[published_as] = tally.pop("published", 0)
        self.tally.update(tally)
        self.report(JobEvent(what=name.split()[0], text=name, fields=tally))
        if last := [list(result.letters.values())[-1] for result in parts if result.letters]:
            self.last_letter = last[-1]
            text = f"{tally['dead letters']} dead letters, the last: {self.last_letter}"
            self.report(JobEvent(what="dead letters", text=text, level="warning"))
        return tally

    def _learn_forms(self, parts: Iterable[PartResult]) -> None:
        """Takes the forms of decimals that the parts settled in the table, and shows each once."""
        for note in chain.from_iterable(part.forms for part in parts):
            if note.column not in self.forms.get(note.entity, {}):
                text = f"column {note.column} of {note.entity} has `decimals: {note.settled.form}` since {note.settled.since}"
                self.report(JobEvent(what="decimals", text=text))
            self.forms = with_notes(self.forms, [note])

    def _next_round(self, starts: Mapping[Partition, int]) -> Round:
        date = self.clock.date()
        return Round(
            plan=self.active,
            run=self.run,
            number=self.number,
            batch=max(self.batch, 0),
            starts=starts,
            expires_at=int(date) + self.settings.marker_days * DAY,
            oldest=date - self.settings.marker_days * DAY + HOUR,
            rejects_topic=self.settings.rejects_topic,
            letter_bytes=self.setup.letter_bytes,
            stopped=frozenset(self.backlog.stopped),
            earlier_sequences=self.setup.earlier_sequences,
            message_limits=self.setup.message_limits,
            unfit=frozenset(self.unfit),
            schema_ids=self.setup.schema_ids,
            partitions=self.partitions,
            truncates=self.walks.truncates,
            walk_page=self.settings.walk_page,
            log_values=self.settings.log_values,
            erased=self.erased,
            incarnations=self.incarnations,
            release=statestore_version(),
            forms=self.forms,
            read_first=frozenset() if self.store.consistent else self.row_reads.entities(self.plan),
        )

    def _activate(self, stopped: Mapping[str, str]) -> None:
        """Publishes from now on what the walks allow. A product that waits for its walk needs no fan-outs and no backlog: the
        walk finds all its roots. `stopped`: the products that failed; one of another version begins again."""
        before, self.active = self.active, self.plan.without(self.walks.held)
        versions = {name: product.version for name, product in self.active.products.items()}
        kept = {name: reason for name, reason in stopped.items() if versions.get(name) == before.products[name].version}
        self.fan_outs = FanOuts(products=self.active.products, run=self.run.number)
        self.backlog = Backlog(products=self.active.products, run=self.run.number, stopped=kept)
        self.unfit = {root: reason for root, reason in self.unfit.items() if root[0] in versions}
        self._stop({name: reason for name, reason in self.setup.unready.items() if name in versions})
        items = self.store.partition(PARTITION)
        for obsolete in (*self.fan_outs.reload(items), *self.backlog.reload(items)):
            self.store.delete(obsolete)

    def _pages(self) -> list[WalkPage]:
        return self.walks.next(self.backlog.stopped)

    def _keep_walks(self, writes: Iterable[Write]) -> None:
        """Makes the progress of walks durable, and lets products begin whose entities are proven."""
        held = self.plan.products.keys() - self.active.products.keys()
        for write in writes:
            self._keep(write)
        if held != self.walks.held:
            self._activate(self.backlog.stopped)

    def _end_round(self, lanes: Iterable[LaneResult], tally: Mapping[str, int]) -> None:
        """Ends the round. A round without messages writes nothing, but the run keeps its attempts for the next end: a
        task that Spark gave up may still reserve a message, and that reservation must not look acknowledged. A consistent
        store is one server, whose failover may lose writes: it also gets the end of a round that wrote rows only."""
        retried = {(self.number, lane.lane): lane.attempt for lane in lanes if lane.attempt}
        run = replace(self.run, attempts={**self.run.attempts, **retried})
        if tally.get("published") or tally.get("unfit") or (self.store.consistent and tally.get("applied")):
            run = replace(run, through=self.number)
            outcome = self.store.write(end_round(run, self.run.through))
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

    def _keep_backlog(self, lanes: Sequence[LaneResult]) -> None:
        """Stops the products that failed, and makes the roots durable that the round did not publish."""
        self._stop(ChainMap(*(dict(lane.failed) for lane in lanes)))
        self._note_unfit(lanes)
        for request in self.backlog.add(self.number, chain.from_iterable(lane.backlog for lane in lanes)):
            self.store.write(request)

    def _stop(self, failed: Mapping[str, str]) -> None:
        for product, reason in self.backlog.stop(failed).items():
            self.report(JobEvent(what="product stopped", text=stopped_line(product, reason), level="warning"))

    def _note_unfit(self, lanes: Sequence[LaneResult]) -> None:
        """Notes which documents do not fit, and which do again; shows each product that has new ones."""
        new: dict[str, str] = {}
        for lane in lanes:
            self.setup = self.setup.learn(lane.limits)
            for root in lane.fits:
                self.unfit.pop(root, None)
            new |= {root[0]: reason for root, reason in lane.unfit.items() if root not in self.unfit}
            self.unfit |= lane.unfit
        for reason in new.values():
            text = f"{reason}. Its dead letter names the root; the next start of the job tries it again"
            self.report(JobEvent(what="unfit document", text=text, level="warning"))

    def _keep(self, request: Write | Delete) -> None:
        """Makes the progress of a fan-out or of a walk durable."""
        done = self.store.write(request) if isinstance(request, Write) else self.store.delete(request)
        if not isinstance(done, Done):
            raise Fenced(f"a later run than {self.run.number} continues its work; this job must stop")
