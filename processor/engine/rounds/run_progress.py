"""The progress of a run: the work that rounds leave to later rounds, and the facts that each round must know.

The table keeps this work. The copy here goes with the process, and `reload` reads it again. `rounds.driver` decides
when the work is due.
"""

from collections import ChainMap, Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

from processor.engine.plan.plan import Plan
from processor.engine.plan.step import Root
from processor.engine.protocol.erasures import PARTITION as ERASED
from processor.engine.protocol.erasures import Erased, erased_in
from processor.engine.protocol.gates import adopt_plan
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.open_changes import OpenChanges, SettledSegment
from processor.engine.protocol.pending import PARTITION, Backlog, FanOuts, Moment, Request, Turn, Work, stopped_line
from processor.engine.protocol.segments import open_items
from processor.engine.protocol.ticks import CLOCK, PAGE, Ticks
from processor.engine.protocol.walks import PARTITION as WALKS
from processor.engine.protocol.walks import WalkedPage, Walks
from processor.engine.rounds.decoding import forget_form, settled_forms
from processor.engine.rounds.events import Clock, JobEvent, Level, Report, no_report
from processor.engine.rounds.root_costs import CostlyRoots
from processor.engine.rounds.round import LaneResult, PublishSetup, StageResult
from processor.engine.rounds.round_counts import AbsentReport, count_lags
from processor.environment.settings.settings import Settings
from processor.errors import Fenced
from processor.values.decimal_forms import FormNote, Forms, obsolete_notes, with_notes, without_notes
from statestore.store import Done, Item, Store, Write, WriteOutcome

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """The progress of one run."""

    settings: Settings
    plan: Plan
    """The plan of the version of the registry that the job applies."""
    store: Store
    clock: Clock
    run: int
    """The number of the run, which never overwrites the work of a later one."""
    report: Report = no_report
    """Where the run shows its events."""
    setup: PublishSetup = field(default_factory=PublishSetup)
    """What the run knows of the topics to publish to."""
    open_changes: OpenChanges = field(init=False)
    fan_outs: FanOuts = field(init=False)
    backlog: Backlog = field(init=False)
    walks: Walks = field(init=False)
    held: HeldRoots = field(init=False)
    ticks: Ticks = field(init=False)
    active: Plan = field(init=False)
    """The plan without the products that wait for their walks."""
    unfit: dict[Root, str] = field(default_factory=dict)
    """The roots whose last document did not fit, with the reason."""
    erased: Erased = frozenset()
    """The rows that an operator erased."""
    forms: Forms = field(default_factory=dict)
    """The forms of decimals, as records settled them."""
    absent: AbsentReport = field(default_factory=AbsentReport)
    """The declared columns that records lack."""
    costs: CostlyRoots = field(default_factory=CostlyRoots)
    """The roots that read the most in the last hour."""

    def __post_init__(self) -> None:
        consistent, rate = self.store.consistent, self.settings.walk_rate
        settle = 0.0 if consistent else self.settings.settle_seconds
        self.open_changes = OpenChanges(wait=self.wait, settle=settle, run=self.run)
        self.held = HeldRoots(run=self.run)
        self.ticks = Ticks(run=self.run)
        self.walks = Walks(run=self.run, wait=self.wait, probes=not consistent, rate=rate)
        self.active = self.plan
        self._begin_roots({})
        self._adopt_gates()

    @property
    def wait(self) -> float:
        """W in seconds; 0 where no index is late."""
        return 0.0 if self.store.consistent else self.settings.wait_seconds

    def moment(self, round_: int) -> Moment:
        """This moment. `round_`: the number of the next round."""
        return Moment(self.clock.now(), self.clock.date(), round_, self.plan, self.settings.lanes)

    def replan(self, plan: Plan) -> None:
        """Begins by another plan than that of its creation. Call it before `reload`."""
        self.plan = plan
        self.__post_init__()

    def reload(self) -> None:
        """Takes over the work that earlier runs left in the table."""
        self.erased = erased_in(self.store.partition(ERASED))
        self.forms = settled_forms(self.store)
        items = self.store.partition(PARTITION)
        self._reload_roots(items)
        self.forget(self.held.reload(items, self.clock.now(), self.clock.date()))
        self.open_changes.reload(open_items(self.store), self.store.get, self.clock.now())

    def adopt(self, plan: Plan, setup: PublishSetup | None) -> None:
        """Begins the walks that an edit makes necessary, and continues by its plan. `setup`: for this plan; None leaves it as
        it is."""
        self.setup = setup or self.setup
        if not self.walks.claimed:
            self.walks.load(self.store.partition(WALKS))

        def is_empty(pk: str) -> bool:
            page = self.store.page(pk, None, 1)
            return not page.items and page.after is None

        requests = self.walks.adopt(plan, self.clock.now(), self.clock.date(), is_empty)
        self._keep(requests)
        self.plan = plan
        self._forget_forms()
        self._activate()

    def take(self, lanes: Sequence[LaneResult], next_round: int, work: Work | None, turn: Turn) -> Counter[str]:
        """Takes the results of a round that has ended: makes durable the work that it leaves, and then takes what index answers
        showed of open changes. Returns the counts of index lags.

        The order of the kinds is the protocol. What a round could not publish is durable before a cursor moves behind it, and so
        are the fan-outs that a page of a walk began.

        Args:
            next_round: the number that the next round will have.
            work: whose turn the round was, None for a batch.
        """
        results = [result for lane in lanes for result in lane.results]

        def found(of: Callable[[StageResult], Iterable[T]]) -> list[T]:
            return list(chain.from_iterable(map(of, results)))

        self.learn_forms(found(lambda result: result.forms))
        self._note_absent(results)
        self._stop(ChainMap(*(dict(lane.failed) for lane in lanes)))
        self._note_unfit(lanes)
        self.costs.add((lane.costs for lane in lanes), self.clock.now())
        done = [*turn.ends, *found(lambda result: result.done)]
        truncates = found(lambda result: result.truncates)
        pieces: list[tuple[Work, Iterable[Any]]] = [
            (self.backlog, chain.from_iterable(lane.backlog for lane in lanes)),
            (self.fan_outs, found(lambda result: result.fan_outs)),
            (self.open_changes, found(lambda result: result.opened)),
            (self.held, found(lambda result: result.held)),
            (self.walks, truncates),
            (self.ticks, chain.from_iterable(lane.due for lane in lanes)),
        ]
        for kind, new in pieces:
            self.keep(kind.take(new, done if kind is work else (), self.moment(next_round)))
        self._show_walks(truncates, done)
        sights = [*chain.from_iterable(lane.sights for lane in lanes), *found(lambda result: result.sights)]
        settled = [one for one in done if isinstance(one, SettledSegment)]
        lags = count_lags(self.open_changes.lags(sights, settled, self.clock.now()))
        self.open_changes.see(sights, self.clock.now())
        return lags

    def learn_forms(self, notes: Iterable[FormNote]) -> None:
        """Takes the forms of decimals that tasks settled in the table, and shows each once."""
        for note in notes:
            if note.column not in self.forms.get(note.entity, {}):
                text = f"column {note.column} of {note.entity} has `decimals: {note.settled.form}` since {note.settled.since}"
                self.report(JobEvent(what="decimals", text=text))
            self.forms = with_notes(self.forms, [note])

    def keep(self, requests: Iterable[Request]) -> None:
        """Makes work durable, and lets products begin whose entities are proven."""
        self._keep(requests)
        waiting = () if self.active is self.plan else self.plan.products.keys() - self.active.products.keys()
        if self.walks.held.symmetric_difference(waiting):
            self._activate()

    def forget(self, requests: Iterable[Request]) -> None:
        """Deletes items that no later round needs, and writes what must be known before. An item of a later run stays."""
        for request in requests:
            self._send(request)

    def _keep(self, requests: Iterable[Request]) -> None:
        for request in requests:
            if not isinstance(self._send(request), Done) and request.when is not None:
                raise Fenced(f"a later run than {self.run} continues its work; this job must stop")

    def _send(self, request: Request) -> WriteOutcome:
        return self.store.write(request) if isinstance(request, Write) else self.store.delete(request)

    def _begin_roots(self, stopped: Mapping[str, str]) -> None:
        """Forgets the fan-outs and the backlog: `_reload_roots` takes those of the active products. `stopped`: those of these
        that failed, with the reason."""
        self.fan_outs = FanOuts(products=self.active.products, run=self.run)
        self.backlog = Backlog(products=self.active.products, run=self.run, stopped=dict(stopped))
        self.walks.stopped = self.backlog.stopped.keys()

    def _activate(self) -> None:
        """Publishes from now on what the walks allow. A product that waits for its walk needs no fan-outs and no backlog: the
        walk finds all its roots. A product that failed stays stopped, but another version of it begins again."""
        before, self.active = self.active, self.plan.without(self.walks.held)
        versions = {name: product.version for name, product in self.active.products.items()}
        stopped = self.backlog.stopped.items()
        kept = {name: reason for name, reason in stopped if versions.get(name) == before.products[name].version}
        self._begin_roots(kept)
        self.unfit = {root: reason for root, reason in self.unfit.items() if root[0] in versions}
        self._stop({name: reason for name, reason in self.setup.unready.items() if name in versions})
        self._adopt_gates()
        items = self.store.partition(PARTITION)
        self._reload_roots(items)
        self.forget(self.held.reload_later(items, self.clock.now(), self.clock.date()))

    def clock_of_round(self) -> int:
        """The clock of products in the next round, in seconds since 1970. It is durable when this returns."""
        self._load_clock()
        self._keep(self.ticks.advance(self.clock.date()))
        return self.ticks.time

    def look_for_due(self) -> None:
        """Reads the roots that are due by now, up to those of a round."""
        self._load_clock()
        now, date = self.clock.now(), self.clock.date()
        while partitions := self.ticks.unread(now, date):
            for pk in partitions:
                page = self.store.page(pk, None, PAGE)
                while self.ticks.add(page.items) and page.after is not None:
                    page = self.store.page(pk, page.after, PAGE)
            self.ticks.end_bucket()

    def _load_clock(self) -> None:
        if self.ticks.needs_load:
            self.ticks.load(self.store.get([CLOCK]).get(CLOCK))

    def _adopt_gates(self) -> None:
        """Continues with the gates and clocks of the products that the job publishes now. The roots that wait for a gate that is
        gone go out, and those of other products are forgotten."""
        self.ticks.adopt(self.active)
        self.forget(adopt_plan(self.held, self.active, self.clock.now()))

    def _reload_roots(self, items: Sequence[Item]) -> None:
        """Takes the fan-outs and the backlog from the items of `PARTITION`, and deletes those that no product needs."""
        self.forget([*self.fan_outs.reload(items), *self.backlog.reload(items)])

    def _forget_forms(self) -> None:
        """Forgets the forms of decimals that no record settles by the present definitions."""
        obsolete = list(obsolete_notes(self.forms, self.plan.declared_entities))
        self.forget(map(forget_form, obsolete))
        self.forms = without_notes(self.forms, obsolete)

    def _note_absent(self, results: Sequence[StageResult]) -> None:
        """Notes which declared columns records lack, and shows each that is new."""
        known = {(one.entity, one.column) for one in self.absent.found(self.plan)}
        self.absent = self.absent.after(result.absent for result in results)
        for one in self.absent.found(self.plan):
            if (one.entity, one.column) not in known:
                level: Level = "warning" if one.loud else "info"
                self.report(JobEvent(what="absent column", text=one.text, level=level))

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

    def _show_walks(self, truncates: Iterable[tuple[str, str]], done: Iterable[Any]) -> None:
        """Shows the walks that began and those that stopped."""
        for entity in dict.fromkeys(entity for entity, _ in truncates):
            text = f"the source emptied the table of {entity}: the job deletes its older rows, in turn with batches"
            self.report(JobEvent(what="truncate", text=text))
        for one in (one for one in done if isinstance(one, WalkedPage) and one.refused):
            text = f"{' '.join(one.page.walk)} stopped until the next start: {one.refused}"
            self.report(JobEvent(what="walk stopped", text=text, level="warning"))
