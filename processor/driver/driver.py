"""The driver: decides which work is due, and runs it in rounds one after the other (`processor.driver.round_runner`).

Batches and background work (settling, fan-outs, backlog, walks) take turns in this one queue, so two rounds never overlap. The
table keeps all that a round leaves to later rounds. The driver's copy of it goes with the process, and `start` reads it
again.

The driver knows no Spark. `processor.job`, `processor.trial` and the simulator run this same code; each passes its own
executor and clock.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import TypeVar

from processor.driver.executor import Work
from processor.driver.publish_setup import PublishSetup
from processor.driver.round_runner import RoundRunner
from processor.plan.plan import Plan
from processor.progress.epochs import Partition
from processor.progress.erasures import PARTITION as ERASED
from processor.progress.erasures import Erasure, erased_in, erasure_key, name_of, read_erasure, write_erasure
from processor.progress.form_notes import PARTITION as FORMS
from processor.progress.form_notes import forget_form, obsolete_notes, read_form, with_notes, without_notes
from processor.progress.identity import SEQUENCES, ledgers_in
from processor.progress.ledger import (
    NO_DOCUMENT,
    RetiredEntries,
    group_partition,
    ledgers_of,
    read_entries,
    retire_entries,
)
from processor.progress.open_changes import PARTITION, changed_rows, changes_key
from processor.progress.replays import PARTITION as REPLAYS
from processor.progress.replays import ReplayReport, end_note, end_replay, noted_keys, notes_of_row, refuse_replay
from processor.progress.walk import PARTITION as WALKS
from processor.records.dead_letters import DeadLetter
from processor.rounds.follow_up_parts import RootToRepair, backlog_part, repair_part, resume_part, settle_part
from processor.rounds.keep_changes import close_open_changes
from processor.rounds.replay_part import replay_part
from processor.rounds.round import CHUNK
from processor.rounds.spending import spending
from processor.rounds.step_runner import StepRunner
from processor.rounds.walk_part import walk_part
from processor.rounds.write_part import write_part
from processor.steps.erase import ErasedRow, erase
from processor.steps.keep_edges import keep_edges
from statestore.item_attributes import key_of_item
from statestore.items import JoinKey
from statestore.keys import Key

UNSEEN_SECONDS = 0.5
"""Between two looks of a fill for rows that an index did not show."""
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Driver(RoundRunner):
    """The driver of one run."""

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

    def replan(self, plan: Plan) -> None:
        """Begins by another plan than that of its creation. Call it before `start`."""
        self.plan = plan
        self.__post_init__()

    def start(self) -> None:
        """Takes over what earlier runs left in the table. The caller has fenced those runs. Then waits W, so that the
        indexes show their writes; the first run of a job need not wait."""
        items = self.store.partition(PARTITION)
        self.erased = erased_in(self.store.partition(ERASED))
        self.forms = with_notes({}, map(read_form, self.store.partition(FORMS)))
        for obsolete in (*self.fan_outs.reload(items), *self.backlog.reload(items)):
            self.store.delete(obsolete)
        rows = changed_rows(items, self.store)
        self.open_changes.reload(items, rows, self.clock.now())
        if self.run.number > 1:
            self.clock.sleep(self.wait)

    def adopt(self, plan: Plan, setup: PublishSetup | None = None) -> None:
        """Works by this plan from now on: the plan of a version of the registry. Call it after `start`, and between rounds.
        Begins the walks that the edit makes necessary. `setup`: for this plan; None leaves it as it is."""
        self.check_lease()
        self.setup = setup or self.setup
        if not self.walks.claimed:
            self.walks.load(self.store.partition(WALKS))

        def is_empty(pk: str) -> bool:
            page = self.store.page(pk, None, 1)
            return not page.items and page.after is None

        for request in self.walks.adopt(plan, self.clock.now(), self.clock.date(), is_empty):
            self._keep(request)
        self.plan = plan
        self._forget_forms()
        self._activate(self.backlog.stopped)

    def hold(self) -> None:
        """Publishes nothing until `end_hold`: the job is far behind, and writes rows first."""
        self.check_lease()
        self._keep_walks(self.walks.hold(self.plan, self.clock.date()))

    def end_hold(self) -> None:
        """Publishes each root once, as the rows are now, and from now on again what changes."""
        self.check_lease()
        self._keep_walks(self.walks.end_hold(self.plan))

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
        """Settles the open changes that are due, and closes those that the indexes have shown long enough. The documents that it
        publishes count as corrections, unless the walk of a product goes on, which would have published them too."""
        self.open_changes.confirm(self.clock.now())
        if due := self.open_changes.due(self.clock.now()):
            work = split(due, min(len(due), self.settings.lanes))
            name = "published" if self.walks.publishes(self.backlog.stopped) else "corrections"
            self._round("settled", settle_part, work, published_as=name)
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
        self._learn_forms(results)
        for result in results:
            for item, changes in result.opened.items():
                self.open_changes.add(item, changes, self.clock.now(), again=True)
        return [report for result in results for report in result.replayed]

    def end_replays(self, reports: Iterable[ReplayReport]) -> None:
        """Records which dead letters are replayed, once their documents are published. A letter that was refused again
        stays, with the time and the reason."""
        for report in reports:
            if report.outcome == "refused":
                self.store.write(refuse_replay(report, datetime.fromtimestamp(self.clock.date(), UTC)))
            else:
                self.store.write(end_replay(report.record, report.outcome))
            self.tally[f"replayed: {report.outcome}"] += 1

    def erase(self, entity: str, sk: str, erasure: Erasure) -> ErasedRow:
        """Erases the row with this encoded key. `erasure`: which records it covers. Background work then publishes the documents
        without it, and `retire_entries` ends the erasure."""
        self.check_lease()
        plan = self.plan.entities[entity]
        key, opens = plan.key(sk), changes_key(self.run.number, self.number, "erase", 0)
        self.number += 1
        known = self.open_changes.by_row.get(key)
        former = known.former | frozenset(known.slots) if known is not None else frozenset[JoinKey]()
        replays = notes_of_row(self.store.partition(REPLAYS), key)
        former = former.union(*map(noted_keys, replays))
        expires_at = self._next_round({}).expires_at
        erasing = erase(key, plan, erasure, former=former, opens=opens, expires_at=expires_at)
        edged = keep_edges(erasing, lambda erased: (erased.row, erased.opened.former)) if plan.edges else erasing
        (erased,) = StepRunner(store=self.store).run([edged])
        self.erased |= {name_of(erasure_key(entity, sk))}
        self.open_changes.add(opens, [erased.opened], self.clock.now(), again=True)
        for note in replays:
            self.store.write(end_note(key_of_item(note), "superseded"))
        return erased

    def retire_entries(self, entity: str, sk: str) -> RetiredEntries:
        """Lets the ledger's items of an erased root expire, after its erasure has kept their sequences. An item stays while a
        product of it has not published its tombstone."""
        self.check_lease()
        own = [product for product in self.active.products.values() if product.product.root == entity]
        products = {product.number: product.product.name for product in own}
        partitions = {group_partition(product.ledger) for product in own}
        partitions |= {pk for pk in ledgers_in(self.store.partition(SEQUENCES)) if pk.startswith(ledgers_of(entity))}
        found = self.store.get([Key(pk, sk) for pk in partitions])
        entries = {key: dict(read_entries(item)) for key, item in found.items()}
        note = erasure_key(entity, sk)
        known = read_erasure(self.store.get([note]).get(note))
        sequences = {number: entry.seq for some in entries.values() for number, entry in some.items()}
        self.store.write(write_erasure(note, known._replace(sequences={**known.sequences, **sequences})))
        gone = [key for key, some in entries.items() if all(entry.hash == NO_DOCUMENT for entry in some.values())]
        for key in gone:
            self.store.write(retire_entries(key, found[key], self._next_round({}).expires_at))
        ended = [
            (key, products[number], entry.seq)
            for key, some in entries.items()
            for number, entry in some.items()
            if number in products and entry.hash == NO_DOCUMENT
        ]
        kept = frozenset(name for key, name, _ in ended if key not in gone)
        return RetiredEntries({name: sequence for _, name, sequence in ended}, kept)

    def _forget_forms(self) -> None:
        """Forgets the forms of decimals that no record settles by the present definitions."""
        entities = {name: one.entity for name, one in self.plan.entities.items()}
        obsolete = list(obsolete_notes(self.forms, entities))
        for note in obsolete:
            self.store.delete(forget_form(note))
        self.forms = without_notes(self.forms, obsolete)

    def _close_open_changes(self) -> None:
        """Closes the changes that the indexes have shown long enough, and keeps the durable items few."""
        due = self.open_changes.next_due()
        if due is None or not (due <= self.clock.now() or self.open_changes.fragmented()):
            return
        self.check_lease()
        before = spending(self.store)
        close_open_changes(self.open_changes, self.store, self.run.number, self.number, self.clock.now())
        self.tally.update(spending(self.store) - before)


def split(work: Sequence[T], tasks: int) -> list[Sequence[T]]:
    """The work, dealt out to so many tasks."""
    return [work[n::tasks] for n in range(tasks)]
