"""The write stage: records of some partitions -> decode, dedupe, write state, find roots. Keeps dead letters and open
changes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice
from operator import itemgetter
from typing import TypeVar

from processor.counts import DEAD_LETTERS_OF, IGNORED_AS, IN_TOPIC, Count, Outcome
from processor.engine.plan.row_image import version_of
from processor.engine.plan.step import RefusedChange, Root, Step, Touch
from processor.engine.protocol.decode import NetChange, TopicEntities, dedupe, net_change
from processor.engine.protocol.epochs import Place, Published, published_before
from processor.engine.protocol.find_roots import ShownRows, find_roots
from processor.engine.protocol.gates import SeenTransactions, followed_topics
from processor.engine.protocol.open_changes import keep_segment
from processor.engine.protocol.pending import FoundRoots
from processor.engine.protocol.replays import kept_letter
from processor.engine.protocol.segments import Segment, group_of, make_segments, open_change
from processor.engine.protocol.walks import TruncateGoal
from processor.engine.protocol.write_state import keep_edges, never_visible, write_state
from processor.engine.rounds.decoding import SettledDecode, shown_keys, split_erased
from processor.engine.rounds.round import CHUNK, Round, StageResult
from processor.engine.rounds.round_counts import count_absent, count_nulled, count_records, count_updates
from processor.engine.rounds.step_runner import StepRunner
from processor.errors import TruncateRefused
from processor.values import canonical_json
from processor.values.dead_letters import LetterGroup, letter_group, reject_message
from processor.values.decimal_forms import NO_FORMS
from processor.values.entity import Entity
from processor.values.record import Change, Record, Rejected, Truncated
from registry.model import KeptLetter
from statestore.keys import Key
from statestore.store import Store

T = TypeVar("T")

NO_TRUNCATE = TruncateGoal("")


def write_stage(records: Iterable[Record], round_: Round, runner: StepRunner) -> StageResult:
    """Writes the changes of `records`, which are all of the batch's records of their partitions, in the order of
    offsets."""
    assert runner.outbox is not None
    task = _Task(round_=round_, runner=runner)
    decoded = list(task.changes(records))
    truncates = tuple((one.entity, version_of(one)) for one in decoded if isinstance(one, Truncated))
    decoded_changes = (one for one in decoded if isinstance(one, Change))
    changes, erased = split_erased(decoded_changes, round_.remembered.erased, round_.topics.incarnations, runner.store)
    for change in erased:
        if not change.part:
            task.ignore(change.record, "erased")
    absent = count_absent(changes)
    task.tally.update(count_nulled(changes))
    written = task.write(dedupe(changes))
    runner.outbox.flush()
    updates = count_updates((touch for _, touch in written), round_.plan)
    written = [(net, touch) for net, touch in written if touch.changed is None or touch.changed]
    touches = [touch for _, touch in written]
    indexed = [touch for touch in touches if round_.plan.entities[touch.entity].concerns_indexes(touch.changed)]
    name = ".".join(f"{topic}.{partition}" for topic, _, partition in sorted(task.first)[:1])
    opened = open_touched(indexed, round_, name, runner.store)
    runner = replace(runner, overlays=(*runner.overlays, group_of(opened)))
    shown = shown_rows(runner.store)
    found = list(run_in_chunks(runner, (find_roots(touch, round_.plan, shown) for touch in touches)))
    roots: dict[Root, float] = {}
    for time, of in sorted(zip(map(_time, written), found, strict=True), key=itemgetter(0), reverse=True):
        roots |= dict.fromkeys(of.roots, time)  # the oldest time of a root comes last
    return StageResult(
        tally=task.tally,
        roots=roots,
        shown=shown,
        fan_outs=tuple(chain.from_iterable(f.fan_outs for f in found)),
        opened=opened,
        truncates=truncates,
        letters=task.letters,
        kept=tuple(task.kept),
        forms=tuple(task.decoding.settled),
        updates=updates,
        absent=absent,
        seen=task.transactions.records(),
    )


def run_in_chunks(runner: StepRunner, steps: Iterable[Step[T]]) -> Iterator[T]:
    """The results of the steps, which run `CHUNK` at a time."""
    steps = iter(steps)
    while chunk := list(islice(steps, CHUNK)):
        yield from runner.run(chunk)


def shown_rows(store: Store) -> ShownRows | None:
    """Where a task keeps what its way up shows; None for a store without an overlay."""
    return None if store.consistent else ShownRows()


def union(found: Iterable[FoundRoots]) -> FoundRoots:
    """All roots and fan-outs together."""
    all_ = list(found)
    return FoundRoots(frozenset().union(*(f.roots for f in all_)), tuple(chain.from_iterable(f.fan_outs for f in all_)))


@dataclass(slots=True, kw_only=True)
class _Task:
    """A task of the write stage: decodes records and writes changes, and accounts for each record."""

    round_: Round
    runner: StepRunner
    decoding: SettledDecode = field(init=False)
    transactions: SeenTransactions = field(init=False)
    tally: Counter[str] = field(default_factory=Counter)
    letters: dict[LetterGroup, str] = field(default_factory=dict)
    kept: list[KeptLetter] = field(default_factory=list)
    first: dict[Place, int] = field(default_factory=dict)
    """The first offset that the task read of each epoch and partition."""

    def __post_init__(self) -> None:
        store, schemas = self.runner.store, self.runner.schemas
        self.decoding = SettledDecode(store=store, schemas=schemas, forms=self.round_.remembered.forms)
        self.transactions = SeenTransactions(followed_topics(self.round_.plan))

    def changes(self, records: Iterable[Record]) -> Iterator[Change | Truncated]:
        """The changes and the truncates among the records. Raises TruncateRefused before the task writes a row."""
        entities = TopicEntities(planned.entity for planned in self.round_.plan.entities.values())
        for decoded in self.decoding.decode_all(records, entities):
            record = decoded.record
            entity = entities.of(record, self.runner.schemas)
            if isinstance(decoded, Change) and decoded.former is not None:
                decoded = _check_move(decoded, self.round_)
            self.tally[Count.READ] += 1
            self.transactions.see(decoded, entity)
            place = record.topic, record.epoch, record.partition
            self.first[place] = min(record.offset, self.first.get(place, record.offset))
            if isinstance(decoded, Change):
                yield decoded
                yield from decoded.others
            elif isinstance(decoded, Rejected):
                if self._is_erased(record, entity):
                    self.ignore(record, "erased")
                else:
                    self._reject(decoded)
            elif isinstance(decoded, Truncated):
                _check_truncate(record, self.round_.plan.entities[decoded.entity].entity, self.round_)
                count_records(self.tally, Count.APPLIED, record.topic)
                self.tally[Count.TRUNCATES] += 1
                yield decoded
            else:
                self.ignore(record, decoded.why)

    def ignore(self, record: Record, why: str) -> None:
        """Accounts for a record that changes nothing."""
        count_records(self.tally, Count.IGNORED, record.topic)
        self.tally[f"{IGNORED_AS}{why}"] += 1
        self.tally[f"{IGNORED_AS}{why}{IN_TOPIC}{record.topic}"] += 1

    def write(self, nets: Sequence[NetChange]) -> list[tuple[NetChange, Touch]]:
        """Writes net changes. A change that the step refuses becomes a dead letter, and the change of its key before it
        counts instead."""
        published = cache(self._published)
        written: list[tuple[NetChange, Touch]] = []
        while nets:
            outcomes = list(run_in_chunks(self.runner, (self._step(net.change, published) for net in nets)))
            again = []
            for net, outcome in zip(nets, outcomes, strict=True):
                if isinstance(outcome, Touch):
                    written.append((net, outcome))
                    continue
                last, entity = net.changes[-1], outcome.change.entity
                refused = Rejected(record=last.record, reason=outcome.reason, code=outcome.code, entity=entity)
                self._reject(refused, counts=not last.part)
                if len(net.changes) > 1:
                    again.append(net_change(list(net.changes[:-1])))
            nets = again
        self._count(written)
        return written

    def _published(self, entity: str, place: Place) -> Published:
        until = self.round_.remembered.truncates.get(entity, NO_TRUNCATE).since
        return published_before(self.round_.topics.committed, place, self.first[place], until)

    def _step(self, change: Change, published: Callable[[str, Place], Published]) -> Step[Touch | RefusedChange]:
        entity, record = self.round_.plan.entities[change.entity], change.record
        writing = write_state(
            change,
            entity,
            published=published(entity.name, (record.topic, record.epoch, record.partition)),
            expires_at=self.round_.rules.expires_at,
            reads=entity.name in self.round_.remembered.read_first,
            is_shown=self._is_shown if entity.name in self.round_.remembered.proven else never_visible,
        )
        return keep_edges(writing, entity)

    def _is_shown(self, row: Key) -> bool:
        return not any(overlay.is_open(row) for overlay in self.runner.overlays)

    def _is_erased(self, record: Record, entity: Entity | None) -> bool:
        """Whether a record that cannot be decoded came before the erasure of a row whose key it shows."""
        if not self.round_.remembered.erased or entity is None:
            return False
        forms = self.decoding.forms.get(entity.name, NO_FORMS)
        shown = shown_keys(record, entity, self.runner.schemas, forms)
        changes = (Change(entity.name, key, None, record) for key in shown)
        return bool(
            split_erased(changes, self.round_.remembered.erased, self.round_.topics.incarnations, self.runner.store)[1]
        )

    def _reject(self, rejected: Rejected, counts: bool = True) -> None:
        """Keeps a dead letter. `counts`: whether the account takes its record as a dead letter: it counts by its first change."""
        record, code, round_ = rejected.record, rejected.code, self.round_
        if counts:
            count_records(self.tally, Count.DEAD_LETTERS, record.topic)
        self.tally[f"{DEAD_LETTERS_OF}{code}"] += 1
        shown = rejected.reason if round_.rules.log_values else rejected.plain or rejected.reason
        group = letter_group(rejected)
        self.letters.pop(group, None)  # so that the last letter of all comes last
        self.letters[group] = f"{record.topic}/{record.partition} offset {record.offset}: {shown}"
        assert self.runner.outbox is not None
        letter = reject_message(rejected, round_.rules.dead_letter_topic, round_.setup.letter_bytes, round_.refused_by)
        self.runner.outbox.send(letter)
        self.kept.append(kept_letter(rejected, round_.date))

    def _count(self, written: Iterable[tuple[NetChange, Touch]]) -> None:
        counted: Counter[tuple[Outcome, str]] = Counter()
        for net, touch in written:
            topic = net.changes[-1].record.topic
            if not net.changes[-1].part:
                counted[Count.SUPERSEDED if touch.outcome == "superseded" else Count.APPLIED, topic] += 1
            counted[Count.SUPERSEDED, topic] += sum(not change.part for change in net.changes[:-1])
        for (outcome, topic), records in counted.items():
            if records:
                count_records(self.tally, outcome, topic, records)


def _check_move(change: Change, round_: Round) -> Change | Rejected:
    """The change, or the dead letter of an update that moves a row to another key where each partition of the topic may have the
    changes of that key: records without a Kafka key go to any partition."""
    record = change.record
    if record.key is not None or round_.topics.partitions.get(record.topic, 1) == 1:
        return change
    one, other = (canonical_json.dumps(list(key)) for key in (change.former or (), change.key))
    tail = (
        "and the records of the topic have no Kafka key, so its partitions have the changes of one key in no order: give "
        "the table a primary key, or message.key.columns to the connector, or the topic one partition; then "
        "`verify --source --repair`"
    )
    plain = f"the update moves the row to another key, {tail}"
    return Rejected(
        record=record,
        reason=f"the update moves the row from key {one} to {other}, {tail}" if len(change.others) == 1 else plain,
        plain=plain,
        code="key-moved",
        entity=change.entity,
        transaction=change.transaction,
    )


def _check_truncate(record: Record, entity: Entity, round_: Round) -> None:
    """Raises TruncateRefused where the job may not delete the rows. Offsets of two partitions have no common order, and a
    truncate is in one of them only."""
    partitions = round_.topics.partitions.get(record.topic, 1) if entity.truncate == "delete" else 1
    if entity.truncate != "delete" or partitions > 1:
        raise TruncateRefused(entity.name, record.topic, record.partition, record.offset, partitions)


def open_touched(touches: Iterable[Touch], round_: Round, task: str, store: Store) -> tuple[Segment, ...]:
    """Makes the open changes of touched rows durable, in as few items as possible. `task`: the name of the task, its own in
    this round. Opens nothing where every index shows the rows at once."""
    if store.consistent:
        return ()
    changes = (open_change(touch.entity, touch.row, touch.former_keys) for touch in touches)
    opened = tuple(make_segments(changes, round_.run.number, round_.number, task))
    for segment in opened:
        keep_segment(segment, store)
    return opened


def _time(written: tuple[NetChange, Touch]) -> float:
    """Kafka's time of the oldest record of a change, in seconds since 1970."""
    return min([change.record.timestamp for change in written[0].changes]) / 1000
