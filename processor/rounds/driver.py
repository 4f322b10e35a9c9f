"""The driver: decides which work is due, runs it in rounds one after the other, and makes durable what later rounds
need.

    round   1. check the lease, and let the executor run both stages (`processor.rounds.round`)
            2. account for every record
            3. end the round: from then on its reservations count as acknowledged
            4. make the backlog and the fan-outs durable
            5. take the open changes, the outcomes of settling, and the open rows that index answers showed; close the
               changes that the indexes have shown long enough

Batches and background work (settling, fan-outs, backlog, walks) take turns in this one queue, so two rounds never overlap. The
table keeps all that a round leaves to later rounds. The driver's copy of it goes with the process, and `start` reads it
again.

The driver knows no Spark. `processor.job`, `processor.trial` and the simulator run this same code; each passes its own
executor and clock.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TypeVar

from processor.errors import Fenced
from processor.plan.plan import Plan
from processor.progress.backlog import Backlog, stopped_line
from processor.progress.epochs import Partition
from processor.progress.fan_outs import FanOuts
from processor.progress.ledger import Run, end_round, read_run
from processor.progress.open_changes import PARTITION, OpenChanges, changed_rows
from processor.progress.replays import ReplayReport, end_replay
from processor.progress.walks import PARTITION as WALKS
from processor.progress.walks import WalkPage, Walks
from processor.records.dead_letters import DeadLetter
from processor.rounds.account import check_account
from processor.rounds.clock import Clock
from processor.rounds.executor import Executor, Work
from processor.rounds.follow_up_parts import RootToRepair, backlog_part, repair_part, resume_part, settle_part
from processor.rounds.replay_part import replay_part
from processor.rounds.round import CHUNK, LaneResult, Part, Round
from processor.rounds.walk_part import walk_part
from processor.rounds.write_part import keep_changes, write_part
from processor.settings import Settings
from statestore.store import Delete, Done, Refused, Store, Write

DAY = 86_400
HOUR = 3_600
"""Subtracted from the age that a replayed dead letter may have: the clocks of two machines differ by less."""
UNSEEN_SECONDS = 0.5
"""Between two looks of a fill for rows that an index did not show."""
Report = Callable[[str, Mapping[str, int]], None]
"""Takes the name of a round and its counts."""
T = TypeVar("T")


def no_lease() -> None:
    """The lease check of a driver that shares its table with no other run."""


@dataclass(slots=True, kw_only=True)
class Driver:
    """The driver of one run. `check_lease` raises Fenced when another run took over. `letter_bytes`: the largest dead
    letter, None for any. `tally`: the counts of all rounds so far. `number`: of the next round; `batch`: of the last
    micro-batch. `earlier_sequences`: product -> the highest sequence of its topic before the table's first message.
    `active`: the plan without the products that wait for their walks. `next_walk`: when walks go on, on the job's clock."""

    settings: Settings
    plan: Plan
    store: Store
    executor: Executor
    clock: Clock
    run: Run
    check_lease: Callable[[], None] = no_lease
    report: Report = lambda _name, _tally: None
    letter_bytes: int | None = None
    open_changes: OpenChanges = field(init=False)
    fan_outs: FanOuts = field(init=False)
    backlog: Backlog = field(init=False)
    walks: Walks = field(init=False)
    active: Plan = field(init=False)
    next_walk: float = 0.0
    tally: Counter[str] = field(default_factory=Counter)
    number: int = 0
    batch: int = -1
    earlier_sequences: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.open_changes = OpenChanges(wait=self.settings.wait_seconds, settle=self.settings.settle_seconds)
        self.fan_outs = FanOuts(products=self.plan.products, run=self.run.number)
        self.backlog = Backlog(products=self.plan.products, run=self.run.number)
        self.walks = Walks(run=self.run.number, wait=self.settings.wait_seconds)
        self.active = self.plan

    @property
    def pending(self) -> bool:
        """Whether background work remains, now or later."""
        return bool(self.fan_outs.waiting or self.backlog.next()) or self.next_due() is not None

    def next_due(self) -> float | None:
        """When the next background work is due, on the job's clock; None when nothing waits for its time."""
        if self.fan_outs.waiting:
            return None
        ends = [at + self.walks.wait for at in self.walks.shown_at.values()]
        dues = [self.open_changes.next_due(), *ends, self.next_walk if self._pages() else None]
        return min((due for due in dues if due is not None), default=None)

    @property
    def busy(self) -> bool:
        """Whether background work remains that need not wait."""
        walks = self.next_walk <= self.clock.now() and self._pages()
        return bool(self.fan_outs.waiting or self.backlog.next() or walks)

    def start(self) -> None:
        """Takes over what earlier runs left in the table. The caller has fenced those runs. Then waits W, so that the
        indexes show their writes; the first run of a job need not wait."""
        items = self.store.partition(PARTITION)
        for obsolete in (*self.fan_outs.reload(items), *self.backlog.reload(items)):
            self.store.delete(obsolete)
        rows = changed_rows(items, self.store)
        self.open_changes.reload(items, rows, self.clock.now())
        if self.run.number > 1:
            self.clock.sleep(self.settings.wait_seconds)

    def adopt(self, plan: Plan) -> None:
        """Works by this plan from now on: the plan of a version of the registry. Call it after `start`, and between rounds.
        Begins the walks that the edit makes necessary."""
        self.check_lease()
        if not self.walks.claimed:
            self.walks.load(self.store.partition(WALKS))

        def is_empty(pk: str) -> bool:
            return not self.store.page(pk, None, 1).items

        for request in self.walks.adopt(plan, self.clock.now(), self.clock.date(), is_empty):
            self._keep(request)
        self.plan = plan
        self._activate(self.backlog.stopped)

    def process_batch(self, records: Work, starts: Mapping[Partition, int], batch: int = 0) -> Counter[str]:
        """Processes a micro-batch, or a piece of it; returns its counts. `starts`: its first offset in each partition."""
        self.batch = max(batch, self.batch + 1)
        return self._round(f"batch {self.batch}", write_part, records, starts)

    def background_work(self) -> None:
        """The work between batches: at most one round of settling, of fan-outs, of the backlog, and of walks."""
        self.settle_open_changes()
        self.resume_fan_outs()
        self.publish_backlog()
        self.walk()

    def settle_open_changes(self) -> None:
        """Settles the open changes that are due, and closes those that the indexes have shown long enough."""
        self.open_changes.confirm(self.clock.now())
        if due := self.open_changes.due(self.clock.now()):
            work = split(due, min(len(due), self.settings.lanes))
            self._round("settled", settle_part, work, published_as="corrections")
        self._close_open_changes()

    def resume_fan_outs(self) -> None:
        """Continues fan-outs, a page each."""
        if fan_outs := self.fan_outs.next():
            self._round("fan-out", resume_part, split(fan_outs, len(fan_outs)))

    def publish_backlog(self) -> None:
        """Publishes some of the backlog of earlier runs."""
        if items := self.backlog.next():
            self._round("backlog", backlog_part, [list(chain.from_iterable(items.values()))])
            for request in self.backlog.remove(items):
                self.store.delete(request)

    def walk(self) -> None:
        """Continues the walks: some pages, at the rate of the settings."""
        if writes := self.walks.end_fills(self.plan, self.clock.now()):
            self.check_lease()
            self._keep_walks(writes)
        pages = self._pages() if self.next_walk <= self.clock.now() else []
        if pages:
            rows = self._round("walk", walk_part, split(pages, len(pages)))["walked"]
            pause = rows / self.settings.walk_rate if self.settings.walk_rate else 0
            self.next_walk = self.clock.now() + max(pause, UNSEEN_SECONDS if any(page.unseen for page in pages) else 0)

    def repair(self, roots: Sequence[RootToRepair]) -> None:
        """Publishes the documents of roots again, also where the ledger has the same hash."""
        for first in range(0, len(roots), CHUNK):
            self._round("repair", repair_part, [roots[first : first + CHUNK]])

    def replay(self, letters: Iterable[DeadLetter]) -> list[ReplayReport]:
        """Replays dead letters. Background work then settles their changes, and so publishes the documents."""
        self.check_lease()
        tasks: dict[Partition, list[DeadLetter]] = {}
        for letter in letters:
            tasks.setdefault((letter.rejected.record.topic, letter.rejected.record.partition), []).append(letter)
        results = self.executor.run_part(replay_part, list(tasks.values()), self._next_round({}))
        self.number += 1
        for result in results:
            for item, changes in result.opened.items():
                self.open_changes.add(item, changes, self.clock.now(), again=True)
        return [report for result in results for report in result.replayed]

    def end_replays(self, reports: Iterable[ReplayReport]) -> None:
        """Records which dead letters are replayed, once their documents are published. A letter that was refused again
        stays."""
        for report in reports:
            if report.outcome != "refused":
                self.store.write(end_replay(report.record, report.outcome))
            self.tally[f"replayed: {report.outcome}"] += 1

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
        before = self.store.requests.copy()
        round_ = self._next_round(starts or {})
        lanes = self.executor.run_round(part, work, round_, self.open_changes.overlay)
        parts = [result for lane in lanes for result in lane.parts]
        tally: Counter[str] = Counter()
        for counts in (*(lane.tally for lane in lanes), *(result.tally for result in parts)):
            tally.update(counts)
        check_account(tally, self.settings)
        self._end_round(lanes, tally)
        self._keep_backlog(lanes)
        for fan_out in chain.from_iterable(result.fan_outs for result in parts):
            self._keep(self.fan_outs.add(fan_out))
        for resumed in chain.from_iterable(result.resumed for result in parts):
            self._keep(self.fan_outs.advance(resumed))
        for item, changes in chain.from_iterable(result.opened.items() for result in parts):
            self.open_changes.add(item, changes, self.clock.now())
        if walked := list(chain.from_iterable(result.walked for result in parts)):
            self._keep_walks(self.walks.advance(walked, self.plan, self.clock.now()))
            for one in (one for one in walked if one.refused):
                self.report(f"{' '.join(one.page.walk)} stopped until the next start: {one.refused}", {})
        settled = list(chain.from_iterable(result.settled for result in parts))
        if settled:
            self.open_changes.record(settled, self.clock.now())
        for sights in (*(lane.sights for lane in lanes), *(result.sights for result in parts)):
            self.open_changes.see(sights)
        tally.update(_by_request(self.store.requests - before))
        if published_as != "published":
            tally[published_as] = tally.pop("published", 0)
        self.tally.update(tally)
        self.report(name, tally)
        return tally

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
            letter_bytes=self.letter_bytes,
            stopped=frozenset(self.backlog.stopped),
            earlier_sequences=self.earlier_sequences,
            walk_page=self.settings.walk_page,
        )

    def _activate(self, stopped: Mapping[str, str]) -> None:
        """Publishes from now on what the walks allow. A product that waits for its walk needs no fan-outs and no backlog: the
        walk finds all its roots. `stopped`: the products that failed; one of another version begins again."""
        before, self.active = self.active, self.plan.without(self.walks.held)
        versions = {name: product.version for name, product in self.active.products.items()}
        kept = {name: reason for name, reason in stopped.items() if versions.get(name) == before.products[name].version}
        self.fan_outs = FanOuts(products=self.active.products, run=self.run.number)
        self.backlog = Backlog(products=self.active.products, run=self.run.number, stopped=kept)
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
        task that Spark gave up may still reserve a message, and that reservation must not look acknowledged."""
        retried = {(self.number, lane.lane): lane.attempt for lane in lanes if lane.attempt}
        run = replace(self.run, attempts={**self.run.attempts, **retried})
        if tally.get("published"):
            run = replace(run, through=self.number)
            outcome = self.store.write(end_round(run))
            # the store may refuse a write that it has done, when the answer to the first try was lost
            if isinstance(outcome, Refused) and read_run(run.number, outcome.current) != run:
                raise Fenced(f"run {run.number}: another process ended round {self.number}; this job must stop")
        self.run = run
        self.number += 1

    def _keep_backlog(self, lanes: Sequence[LaneResult]) -> None:
        """Stops the products that failed, and makes the roots durable that the round did not publish."""
        failed = ChainMap(*(dict(lane.failed) for lane in lanes))
        for product, reason in self.backlog.stop(failed).items():
            self.report(stopped_line(product, reason), {})
        for request in self.backlog.add(self.number, chain.from_iterable(lane.backlog for lane in lanes)):
            self.store.write(request)

    def _keep(self, request: Write | Delete) -> None:
        """Makes the progress of a fan-out or of a walk durable."""
        done = self.store.write(request) if isinstance(request, Write) else self.store.delete(request)
        if not isinstance(done, Done):
            raise Fenced(f"a later run than {self.run.number} continues its work; this job must stop")

    def _close_open_changes(self) -> None:
        """Closes the changes that the indexes have shown long enough, and keeps the durable items few."""
        due = self.open_changes.next_due()
        if due is None or not (due <= self.clock.now() or self.open_changes.fragmented()):
            return
        self.check_lease()
        before = self.store.requests.copy()
        close_open_changes(self.open_changes, self.store, self.run.number, self.number, self.clock.now())
        self.tally.update(_by_request(self.store.requests - before))


def close_open_changes(changes: OpenChanges, store: Store, run: int, round_: int, now: float) -> None:
    """Closes the changes that the indexes have shown long enough; deletes and compacts their durable items."""
    unused = changes.close(now)
    if changes.fragmented():
        compacted, replaced = changes.compact(run, round_)
        for item, portion in compacted.items():
            keep_changes(item, portion, store)
        unused += replaced
    for item in unused:
        store.delete(Delete(key=item))


def split(work: Sequence[T], tasks: int) -> list[Sequence[T]]:
    """The work, dealt out to so many tasks."""
    return [work[n::tasks] for n in range(tasks)]


def _by_request(requests: Mapping[str, int]) -> dict[str, int]:
    return {f"request {name}": n for name, n in requests.items()}
