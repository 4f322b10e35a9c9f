"""What operators ask of a running driver, between its rounds: erasures of rows, replays of dead letters, and edits of the
registry.

An erasure (`Eraser`):

    1. `erase` takes the row from the table, and opens a change of it.
    2. The driver's background work finds its roots, and `release` publishes the documents without it.
    3. `is_back` looks whether an earlier run has written the row again.
    4. `retire_entries` ends the erasure.

A replay of dead letters (`LiveReplays`), a portion at a time, in turn with batches:

    1. Read letters of the oldest request.
    2. Replay a portion (`Driver.replay`). Each change is open before its row is written. The outcome of a letter whose replay has
       ended is in the table: only note that.
    3. Wait until every change of the portion is settled, and the roots that settling found are published.
    4. Record the end of each replay in the table, and then the outcomes in the registry. The next portion: again 2.

A run that dies leaves letters without an outcome, and the next run takes them again. An ended replay does nothing again. Its
change stays durable until it is settled, whatever run opened it.

The follower (`RegistryFollower`) takes each new version of the registry, and the next steps that the rounds made possible:

    1. Read the registry. At a new version: record that the job applies it, then let the driver adopt its plan.
    2. Walks bring the stored rows up to it (`processor.engine.protocol.walks`).
    3. Take the next steps of assignments and products in the registry (`registry.edits.operations`): a new version, so again 1.

One version at a time: no round runs by two, and a step needs the version before it applied. The registry refuses a step when an
operator has edited it meanwhile.
"""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_of
from processor.engine.protocol.epochs import Incarnations
from processor.engine.protocol.erasures import (
    ErasedRow,
    Erasure,
    erase,
    erasure_key,
    name_of,
    read_erasure,
    write_erasure,
)
from processor.engine.protocol.gate_items import without_roots
from processor.engine.protocol.identity import SEQUENCES, ledgers_in
from processor.engine.protocol.ledger import (
    NO_DOCUMENT,
    RetiredEntries,
    due_in,
    group_partition,
    ledgers_of,
    read_entries,
    retire_entries,
)
from processor.engine.protocol.replays import PARTITION as REPLAY_NOTES
from processor.engine.protocol.replays import (
    ReplayReport,
    end_note,
    ended_replays,
    letter_position,
    note_key,
    noted_keys,
    notes_of_row,
)
from processor.engine.protocol.segments import changes_key, make_segment
from processor.engine.protocol.ticks import DueRoot, due_key
from processor.engine.protocol.walks import Walk, WalkName
from processor.engine.protocol.write_state import keep_edges
from processor.engine.rounds.driver import Driver
from processor.engine.rounds.events import JobEvent
from processor.engine.rounds.round import PublishSetup
from processor.engine.rounds.step_runner import StepRunner
from processor.errors import KafkaError, PlanError
from processor.language.definitions.problems import DefinitionError
from processor.values.dead_letters import DeadLetter
from registry.edits.operations import advance
from registry.errors import RegistryRefused, SnapshotOutdated
from registry.model import (
    GONE,
    REFUSED,
    Applied,
    Lease,
    LetterOutcome,
    LetterPosition,
    Progress,
    ReplayRequests,
    Snapshot,
)
from statestore.items import DELETED, JoinKey, key_of_item
from statestore.keys import Key
from statestore.store import Delete


@dataclass(frozen=True, slots=True)
class Eraser:
    """The erasures of one driver, which no round of it overlaps."""

    driver: Driver

    def erase(self, entity: str, sk: str, erasure: Erasure) -> ErasedRow:
        """Erases the row with this encoded key. `erasure`: which records it covers. Background work then publishes the documents
        without it, and `retire_entries` ends the erasure."""
        rounds, progress, store = self.driver.rounds, self.driver.progress, self.driver.store
        rounds.check_lease()
        plan = progress.plan.entities[entity]
        key, opens = plan.key(sk), changes_key(rounds.run.number, rounds.number, "erase", 0)
        rounds.number += 1
        known = [change for change in progress.open_changes.changes() if change.key == key]
        former = frozenset[JoinKey]().union(*(change.former.union(change.slots) for change in known))
        replays = notes_of_row(store.partition(REPLAY_NOTES), key)
        former = former.union(*map(noted_keys, replays))
        expires_at = rounds.next_round().rules.expires_at
        erasing = erase(key, plan, erasure, former=former, opens=opens, expires_at=expires_at)
        (erased,) = StepRunner(store=store).run([keep_edges(erasing, plan)])
        progress.erased |= {name_of(erasure_key(entity, sk))}
        progress.costs.forget()
        progress.open_changes.add([make_segment(opens.sk, [erased.opened])], self.driver.clock.now(), again=True)
        for note in replays:
            store.write(end_note(key_of_item(note), "superseded"))
        return erased

    def release(self) -> None:
        """Publishes what this run has found, whatever the gates say, and takes it out of the items that name it: an erasure does
        not wait, and leaves no key."""
        held, store = self.driver.progress.held, self.driver.store
        if found := held.found():
            portions = held.portions_of(found)
            self.driver.release(found)
            for item in store.get(list(portions)).values():
                store.write(without_roots(item, found.keys()))

    def is_back(self, entity: str, sk: str) -> bool:
        """Whether the table has the row again. The marker has the epoch of the erased row. A task of an earlier run that still
        slept may have had a record of a later epoch, which the erasure covers too."""
        key = self.driver.plan.entities[entity].key(sk)
        item = self.driver.store.get([key]).get(key)
        return item is not None and DELETED not in item

    def retire_entries(self, entity: str, sk: str) -> RetiredEntries:
        """Lets the ledger's items of an erased root expire, after its erasure has kept their sequences. An item stays while a
        product of it has not published its tombstone."""
        rounds, progress, store = self.driver.rounds, self.driver.progress, self.driver.store
        rounds.check_lease()
        own = [product for product in progress.active.products.values() if product.product.roots == entity]
        products = {product.number: product.product.name for product in own}
        partitions = {group_partition(product.ledger) for product in own}
        partitions |= {pk for pk in ledgers_in(store.partition(SEQUENCES)) if pk.startswith(ledgers_of(entity))}
        found = store.get([Key(pk, sk) for pk in partitions])
        entries = {key: dict(read_entries(item)) for key, item in found.items()}
        note = erasure_key(entity, sk)
        known = read_erasure(store.get([note]).get(note))
        sequences = {number: entry.seq for some in entries.values() for number, entry in some.items()}
        store.write(write_erasure(note, known._replace(sequences={**known.sequences, **sequences})))
        gone = [key for key, some in entries.items() if all(entry.hash == NO_DOCUMENT for entry in some.values())]
        for key in gone:
            store.write(retire_entries(key, found[key], rounds.next_round().rules.expires_at))
            for number, name in products.items():
                if (tick := due_in(found[key], number)) is not None:
                    store.delete(Delete(key=due_key(DueRoot(tick, (name, sk)))))
        ended = [
            (key, products[number], entry.seq)
            for key, some in entries.items()
            for number, entry in some.items()
            if number in products and entry.hash == NO_DOCUMENT
        ]
        kept = frozenset(name for key, name, _ in ended if key not in gone)
        return RetiredEntries({name: sequence for _, name, sequence in ended}, kept)


MOST_LETTERS = 5_000
"""The letters that the driver holds: for more it reads the dead letter topic again."""
AGAIN_SECONDS = 30.0
"""Between two tries to read the dead letter topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedLetters:
    """The dead letters at some places, in portions, and the incarnations of their topics."""

    portions: Sequence[Sequence[DeadLetter]]
    incarnations: Incarnations = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedPortion:
    """A portion whose documents are not all published. `reasons`: those that the letters have. `rows`: those whose changes are
    not settled yet; `work`: the fan-outs and the walks that publish roots of the settled rows."""

    reports: tuple[ReplayReport, ...]
    reasons: Mapping[LetterPosition, str]
    rows: frozenset[Key]
    work: frozenset[tuple[object, ...]] = frozenset()


@dataclass(slots=True, kw_only=True)
class LiveReplays:
    """The replays of a run. `read`: reads dead letters; `whole`: reads the record of a cut one. `request`: the number of the
    request that it works at; `waiting`: its portions that the run has read; `portion`: the one that it replayed. `seconds`:
    between two looks for a request; `next_look`: when the next one is due, on the job's clock."""

    driver: Driver
    requests: ReplayRequests
    lease: Lease
    read: Callable[[Sequence[LetterPosition]], RequestedLetters]
    whole: Callable[[DeadLetter], DeadLetter] = lambda letter: letter
    request: int = 0
    waiting: tuple[Sequence[DeadLetter], ...] = ()
    incarnations: Incarnations = field(default_factory=dict)
    portion: ReplayedPortion | None = None
    seconds: float = 1.0
    next_look: float = -math.inf

    @property
    def pending(self) -> bool:
        """Whether letters wait that this run has read or replayed."""
        return self.portion is not None or bool(self.waiting)

    def turn(self) -> None:
        """Takes the next step of a request. Call it between rounds. A job that writes rows first begins no portion."""
        if self.portion is not None:
            self.portion = self._settled(self.portion)
            if not self._is_published(self.portion):
                return
            self._end(self.portion)
            self.portion = None
        if self.driver.progress.walks.behind:
            return
        if not self.waiting and self.driver.clock.now() >= self.next_look:
            self._take()
        if self.waiting:
            self._replay()

    def _take(self) -> None:
        """Reads the next letters of the oldest request, and notes those that are gone."""
        found = self.requests.next_letters(MOST_LETTERS)
        if found is None:
            self.next_look = self.driver.clock.now() + self.seconds
            return
        try:
            letters = self.read(found.places) if found.places else RequestedLetters(portions=())
        except KafkaError as error:  # batches go on: the job may lack the right to read this topic
            self.next_look = self.driver.clock.now() + AGAIN_SECONDS
            text = f"request {found.request} waits, the job tries again in {AGAIN_SECONDS:g} s: {error}"
            self.driver.report(JobEvent(what="replay", text=text, level="warning"))
            return
        there = {letter_position(letter.rejected.record) for portion in letters.portions for letter in portion}
        gone = [place for place in found.places if place not in there]
        self.request, self.waiting, self.incarnations = found.request, tuple(letters.portions), letters.incarnations
        if gone or not found.places:
            ended = self._ended(gone)
            outcomes = [ended.get(place, LetterOutcome(place, REFUSED, GONE)) for place in gone]
            self.requests.note(self.lease, self.request, outcomes)
        text = f"request {self.request}: replays {len(there)} dead letters, in turn with batches"
        self.driver.report(JobEvent(what="replay", text=text))

    def _replay(self) -> None:
        """Replays the next portion, without the letters whose replay has ended. Takes none of a request that an operator
        withdrew."""
        found = self.requests.next_letters(1)
        if found is None or found.request != self.request:
            self.waiting = ()
            return
        letters, self.waiting = self.waiting[0], self.waiting[1:]
        if ended := self._ended([letter_position(letter.rejected.record) for letter in letters]):
            self.requests.note(self.lease, self.request, list(ended.values()))
        self.driver.rounds.incarnations = self.incarnations
        reports = self.driver.replay(
            self._whole(one) for one in letters if letter_position(one.rejected.record) not in ended
        )
        rows = {change.key for report in reports for _, change in report.opened}
        reasons = {letter_position(one.rejected.record): one.rejected.reason for one in letters}
        self.portion = ReplayedPortion(reports=tuple(reports), reasons=reasons, rows=frozenset(rows))

    def _whole(self, letter: DeadLetter) -> DeadLetter:
        """The letter with its whole record. A letter whose source topic is out of reach stays cut, and is refused."""
        try:
            return self.whole(letter)
        except KafkaError:
            return letter

    def _ended(self, places: Collection[LetterPosition]) -> dict[LetterPosition, LetterOutcome]:
        """The outcomes of those letters whose replay has ended, or that somebody dropped. Without the words of that person, which
        an erasure takes from the table."""
        keys = {note_key(place): place for place in places}
        found = ended_replays(self.driver.store.get(keys.keys()).values()) if keys else {}
        return {keys[key]: LetterOutcome(keys[key], outcome.partition(" ")[0]) for key, outcome in found.items()}

    def _settled(self, portion: ReplayedPortion) -> ReplayedPortion:
        """The portion as it is now. A row is settled when its change is closed, or need not find its roots again."""
        changes = self.driver.progress.open_changes.changes() if portion.rows else ()
        rows = portion.rows & {change.key for change in changes if change.again}
        begun = frozenset(self._unpublished()) if portion.rows and not rows else frozenset[tuple[object, ...]]()
        work = (portion.work & frozenset(self._unpublished())) | begun
        return replace(portion, rows=rows, work=work)

    def _is_published(self, portion: ReplayedPortion) -> bool:
        """Whether the documents of the portion are published, as far as this run can."""
        return not (portion.rows or portion.work) or not self.driver.unsettled

    def _unpublished(self) -> Iterator[tuple[object, ...]]:
        """The work that publishes roots which earlier rounds found: fan-outs, and the walks of products that the job holds."""
        progress = self.driver.progress
        yield from progress.fan_outs.waiting
        paused = {name for name, product in self.driver.plan.products.items() if product.paused}
        for name, walk in progress.walks.walks.items():
            if name[0] == "publish" and not walk.done and name[1] not in paused | progress.backlog.stopped.keys():
                yield name

    def _end(self, portion: ReplayedPortion) -> None:
        self.driver.end_replays(portion.reports)
        self.requests.note(
            self.lease, self.request, [outcome_of(report, portion.reasons) for report in portion.reports]
        )


def outcome_of(report: ReplayReport, reasons: Mapping[LetterPosition, str]) -> LetterOutcome:
    """The outcome of a letter, without values of its record. A letter that was refused for its own reason again gets no other."""
    place = letter_position(report.record)
    is_known = report.reason == reasons.get(place)
    return LetterOutcome(place, report.outcome, "" if is_known else report.plain or report.reason)


class EditedRegistry(Protocol):
    """The registry, as the follower uses it."""

    def snapshot(self) -> Snapshot: ...

    def applied(self, lease: Lease, version: int) -> None: ...

    def advance(self, lease: Lease, version: int, *, proven: frozenset[str], published: frozenset[str]) -> Applied: ...


@dataclass(slots=True, kw_only=True)
class RegistryFollower:
    """The follower of a run.

    prepare: makes the job ready for a plan before the driver adopts it, and says how it publishes by it; None: as before.
    check: raises PlanError for a plan that the job refuses.
    fit: the plan that the job works by meanwhile, before it can work by the plan of the registry.
    keep_progress: shows operators how far the walks are. shown: the walks as it showed them last.
    snapshot: the version that the job has applied, None before the first.
    refused: the version that the job cannot run by; refusal: why. obstacle: why a step waits.
    seconds: between two looks at the registry. next_look: when the next one is due, on the job's clock.
    """

    driver: Driver
    registry: EditedRegistry
    lease: Lease
    prepare: Callable[[Plan], PublishSetup | None]
    check: Callable[[Plan], None] = lambda _: None
    fit: Callable[[Plan], Plan] = lambda plan: plan
    keep_progress: Callable[[list[Progress]], None] = lambda _: None
    shown: Mapping[WalkName, Walk] = field(default_factory=dict)
    snapshot: Snapshot | None = None
    refused: int = 0
    refusal: str = ""
    obstacle: str = ""
    seconds: float = 1.0
    next_look: float = -math.inf

    @property
    def pending(self) -> bool:
        """Whether a step can be taken now. The driver knows whether walks remain that lead to further steps."""
        return not self.obstacle and self._step()

    def turn(self) -> None:
        """Takes new versions and next steps until there are none. Call it between rounds, and first after the driver's start."""
        now = self.driver.clock.now()
        if now < self.next_look:
            return
        self.next_look = now + self.seconds
        self._adopt()
        while self._advance():
            self._adopt()
        walks = self.driver.progress.walks
        if walks.moved and walks.walks != self.shown:
            before, self.shown = self.shown, dict(walks.walks)
            for name in walks.moved:
                walk = self.shown.get(name)
                if walk is not None and walk.done and not (name in before and before[name].done):
                    self.driver.report(
                        JobEvent(what="walk done", text=f"{' '.join(name)} is done: {walk.rows:,} rows read")
                    )
            self.keep_progress(walks.progress(self.driver.clock.date()))

    def _adopt(self) -> None:
        """Takes the registry's version, if it is a new one."""
        known = self.snapshot
        while True:
            found = self.registry.snapshot()
            if known is not None and found.version in (known.version, self.refused):
                return
            try:
                plan = plan_of(found)
                self.check(plan)
            except (DefinitionError, PlanError) as error:
                if known is None:
                    raise
                self.refused = found.version
                self.refusal = _refusal(known.version, found.version, error)
                self.driver.report(JobEvent(what="version refused", text=self.refusal, level="warning"))
                return
            try:
                self.registry.applied(self.lease, found.version)
            except SnapshotOutdated:
                continue
            setup = self.prepare(plan)
            self.driver.adopt(self.fit(plan), setup)
            self.snapshot, self.refused, self.refusal = found, 0, ""
            if known is not None:
                text = f"takes registry version {found.version}, after version {known.version}"
                self.driver.report(JobEvent(what="version taken", text=text, fields={"version": found.version}))
            return

    def _advance(self) -> bool:
        """Takes the next steps; returns whether there were any."""
        if self.snapshot is None or not self._step():
            return False
        try:
            self.registry.advance(self.lease, self.snapshot.version, **self._reached())
        except SnapshotOutdated:
            return False
        except RegistryRefused as refusal:  # another job lives, and has not applied this version
            if self.obstacle != str(refusal):
                self.obstacle = str(refusal)
                self.driver.report(JobEvent(what="step waits", text=f"the next step waits: {refusal}"))
            return False
        self.obstacle = ""
        return True

    def _step(self) -> bool:
        return self.snapshot is not None and bool(advance(self.snapshot, **self._reached()).changes)

    def _reached(self) -> dict[str, frozenset[str]]:
        walks, plan = self.driver.progress.walks, self.driver.plan
        return {"proven": walks.proven(plan), "published": walks.published(plan)}


def _refusal(known: int, found: int, error: Exception) -> str:
    return f"the job cannot run version {found} of the registry, and continues with version {known}: {error}"
