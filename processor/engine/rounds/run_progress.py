"""The progress of a run: the work that rounds leave to later rounds, and the facts that each round must know.

The table keeps this work. The copy here goes with the process, and `reload` reads it again. `rounds.driver` decides
when the work is due.
"""

from collections import ChainMap, Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from processor.engine.plan.plan import Plan
from processor.engine.plan.touch import Root
from processor.engine.protocol.backlog import PARTITION, Backlog, stopped_line
from processor.engine.protocol.erasures import PARTITION as ERASED
from processor.engine.protocol.erasures import Erased, erased_in
from processor.engine.protocol.fan_outs import FanOuts
from processor.engine.protocol.form_notes import PARTITION as FORMS
from processor.engine.protocol.form_notes import forget_form, read_form
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.open_changes import OpenChanges
from processor.engine.protocol.segment import open_items
from processor.engine.protocol.stored_roots import adopt_plan
from processor.engine.protocol.walk import PARTITION as WALKS
from processor.engine.protocol.walks import Walks
from processor.engine.rounds.absent_columns import AbsentReport
from processor.engine.rounds.clock import Clock
from processor.engine.rounds.index_lag import count_lags
from processor.engine.rounds.job_event import JobEvent, Level, Report, no_report
from processor.engine.rounds.round import LaneResult, PublishSetup, StageResult
from processor.environment.settings.settings import Settings
from processor.errors import Fenced
from processor.values.decimal_forms import FormNote, Forms, obsolete_notes, with_notes, without_notes
from statestore.store import Delete, Done, Item, Store, Write


@dataclass(slots=True, kw_only=True)
class RunProgress:
    """run: the number of the run, which never overwrites the work of a later one.
    setup: the facts that the run knows of the topics to publish to.
    active: the plan without the products that wait for their walks.
    unfit: the roots whose last document did not fit, with the reason.
    erased: the rows that an operator erased. forms: of decimals, as records settled them.
    absent: the declared columns that records lack.
    """

    settings: Settings
    plan: Plan
    store: Store
    clock: Clock
    run: int
    report: Report = no_report
    setup: PublishSetup = field(default_factory=PublishSetup)
    open_changes: OpenChanges = field(init=False)
    fan_outs: FanOuts = field(init=False)
    backlog: Backlog = field(init=False)
    walks: Walks = field(init=False)
    held: HeldRoots = field(init=False)
    active: Plan = field(init=False)
    unfit: dict[Root, str] = field(default_factory=dict)
    erased: Erased = frozenset()
    forms: Forms = field(default_factory=dict)
    absent: AbsentReport = field(default_factory=AbsentReport)

    def __post_init__(self) -> None:
        settle = 0.0 if self.store.consistent else self.settings.settle_seconds
        self.open_changes = OpenChanges(wait=self.wait, settle=settle)
        self.fan_outs = FanOuts(products=self.plan.products, run=self.run)
        self.backlog = Backlog(products=self.plan.products, run=self.run)
        self.held = HeldRoots(run=self.run)
        self.walks = Walks(run=self.run, wait=self.wait, probes=not self.store.consistent)
        self.active = self.plan
        self._adopt_gates()

    @property
    def wait(self) -> float:
        """W in seconds; 0 where no index is late."""
        return 0.0 if self.store.consistent else self.settings.wait_seconds

    def replan(self, plan: Plan) -> None:
        """Begins by another plan than that of its creation. Call it before `reload`."""
        self.plan = plan
        self.__post_init__()

    def reload(self) -> None:
        """Takes over the work that earlier runs left in the table."""
        self.erased = erased_in(self.store.partition(ERASED))
        self.forms = with_notes({}, map(read_form, self.store.partition(FORMS)))
        items = self.store.partition(PARTITION)
        self._reload_roots(items)
        self.forget(self.held.reload(items, self.clock.now(), self.clock.date()))
        self.open_changes.reload(open_items(self.store), self.store.get, self.clock.now())

    def adopt(self, plan: Plan, setup: PublishSetup | None) -> None:
        """Begins the walks that an edit makes necessary, and goes on by its plan. `setup`: for this plan; None leaves it as
        it is."""
        self.setup = setup or self.setup
        if not self.walks.claimed:
            self.walks.load(self.store.partition(WALKS))

        def is_empty(pk: str) -> bool:
            page = self.store.page(pk, None, 1)
            return not page.items and page.after is None

        for request in self.walks.adopt(plan, self.clock.now(), self.clock.date(), is_empty):
            self.keep(request)
        self.plan = plan
        self._forget_forms()
        self._activate()

    def take(self, lanes: Sequence[LaneResult], next_round: int) -> Counter[str]:
        """Takes the results of a round that has ended: makes durable the work that it leaves, and then takes its open changes.
        Returns the counts of index lags. `next_round`: the number that the next round will have."""
        results = [result for lane in lanes for result in lane.results]
        self.learn_forms(chain.from_iterable(result.forms for result in results))
        self._note_absent(results)
        self._keep_backlog(lanes, next_round)
        self._keep_truncates(list(chain.from_iterable(result.truncates for result in results)))
        for fan_out in chain.from_iterable(result.fan_outs for result in results):
            self.keep(self.fan_outs.add(fan_out))
        for resumed in chain.from_iterable(result.resumed for result in results):
            self.keep(self.fan_outs.advance(resumed))
        self.open_changes.add(chain.from_iterable(result.opened for result in results), self.clock.now())
        self.forget(self.held.add(chain.from_iterable(result.held for result in results), self.clock.now()))
        self._keep_walked(results)
        return self._settle(lanes, results)

    def learn_forms(self, notes: Iterable[FormNote]) -> None:
        """Takes the forms of decimals that tasks settled in the table, and shows each once."""
        for note in notes:
            if note.column not in self.forms.get(note.entity, {}):
                text = f"column {note.column} of {note.entity} has `decimals: {note.settled.form}` since {note.settled.since}"
                self.report(JobEvent(what="decimals", text=text))
            self.forms = with_notes(self.forms, [note])

    def keep(self, request: Write | Delete) -> None:
        """Makes the progress of a fan-out or of a walk durable."""
        done = self.store.write(request) if isinstance(request, Write) else self.store.delete(request)
        if not isinstance(done, Done):
            raise Fenced(f"a later run than {self.run} continues its work; this job must stop")

    def forget(self, requests: Iterable[Write | Delete]) -> None:
        """Deletes items that no later round needs, and writes what must be known before."""
        for request in requests:
            self.store.write(request) if isinstance(request, Write) else self.store.delete(request)

    def keep_walks(self, writes: Iterable[Write]) -> None:
        """Makes the progress of walks durable, and lets products begin whose entities are proven."""
        held = self.plan.products.keys() - self.active.products.keys()
        for write in writes:
            self.keep(write)
        if held != self.walks.held:
            self._activate()

    def _activate(self) -> None:
        """Publishes from now on what the walks allow. A product that waits for its walk needs no fan-outs and no backlog: the
        walk finds all its roots. A product that failed stays stopped, but another version of it begins again."""
        before, self.active = self.active, self.plan.without(self.walks.held)
        versions = {name: product.version for name, product in self.active.products.items()}
        stopped = self.backlog.stopped.items()
        kept = {name: reason for name, reason in stopped if versions.get(name) == before.products[name].version}
        self.fan_outs = FanOuts(products=self.active.products, run=self.run)
        self.backlog = Backlog(products=self.active.products, run=self.run, stopped=kept)
        self.unfit = {root: reason for root, reason in self.unfit.items() if root[0] in versions}
        self._stop({name: reason for name, reason in self.setup.unready.items() if name in versions})
        self._adopt_gates()
        self._reload_roots(self.store.partition(PARTITION))

    def _adopt_gates(self) -> None:
        """Goes on with the gates of the products that the job publishes now. The roots that wait for a gate that is gone go
        out, and those of other products are forgotten."""
        self.forget(adopt_plan(self.held, self.active, self.clock.now()))

    def _reload_roots(self, items: Sequence[Item]) -> None:
        """Takes the fan-outs and the backlog from the items of `PARTITION`, and deletes those that no product needs."""
        for obsolete in (*self.fan_outs.reload(items), *self.backlog.reload(items)):
            self.store.delete(obsolete)

    def _forget_forms(self) -> None:
        """Forgets the forms of decimals that no record settles by the present definitions."""
        obsolete = list(obsolete_notes(self.forms, self.plan.declared_entities))
        for note in obsolete:
            self.store.delete(forget_form(note))
        self.forms = without_notes(self.forms, obsolete)

    def _keep_backlog(self, lanes: Sequence[LaneResult], next_round: int) -> None:
        """Stops the products that failed, and makes the roots durable that the round did not publish."""
        self._stop(ChainMap(*(dict(lane.failed) for lane in lanes)))
        self._note_unfit(lanes)
        for request in self.backlog.add(next_round, chain.from_iterable(lane.backlog for lane in lanes)):
            self.store.write(request)

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

    def _keep_truncates(self, truncates: Sequence[tuple[str, str]]) -> None:
        """Begins the walks that delete the older rows of tables that the source emptied."""
        if truncates:
            self.keep_walks(self.walks.truncate(truncates, self.plan, self.clock.date()))
        for entity in dict.fromkeys(entity for entity, _ in truncates):
            text = f"the source emptied the table of {entity}: the job deletes its older rows, in turn with batches"
            self.report(JobEvent(what="truncate", text=text))

    def _keep_walked(self, results: Iterable[StageResult]) -> None:
        if walked := list(chain.from_iterable(result.walked for result in results)):
            self.keep_walks(self.walks.advance(walked, self.plan, self.clock.now()))
        for one in (one for one in walked if one.refused):
            text = f"{' '.join(one.page.walk)} stopped until the next start: {one.refused}"
            self.report(JobEvent(what="walk stopped", text=text, level="warning"))

    def _settle(self, lanes: Iterable[LaneResult], results: Sequence[StageResult]) -> Counter[str]:
        """Takes the outcomes of settling, and the open rows that index answers showed; returns the counts of index lags."""
        settled = list(chain.from_iterable(result.settled for result in results))
        sights = [
            *chain.from_iterable(lane.sights for lane in lanes),
            *chain.from_iterable(result.sights for result in results),
        ]
        lags = count_lags(self.open_changes.lags(sights, settled, self.clock.now()))
        if settled:
            self.open_changes.record(settled, self.clock.now())
        self.open_changes.see(sights, self.clock.now())
        return lags
