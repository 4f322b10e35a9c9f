"""The write stage: records of some partitions -> decode, dedupe, write state, find roots. Keeps dead letters and open
changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Protocol, TypeVar

from processor.counts import DEAD_LETTERS_OF, IGNORED_AS, Count, Outcome
from processor.engine.plan.row_image import version_of
from processor.engine.plan.step import Step
from processor.engine.plan.touch import RefusedChange, Root, Touch
from processor.engine.protocol.committed import Place, Published, published_before
from processor.engine.protocol.dedupe import NetChange, dedupe, net_change
from processor.engine.protocol.fan_outs import FoundRoots
from processor.engine.protocol.find_roots import find_roots
from processor.engine.protocol.keep_edges import RowKeys, keep_edges
from processor.engine.protocol.overlay import group_of
from processor.engine.protocol.seen_transactions import SeenTransactions, followed_topics
from processor.engine.protocol.segment import Segment, make_segments, open_change
from processor.engine.protocol.walk import TruncateGoal
from processor.engine.protocol.write_state import write_state
from processor.engine.rounds.account import count_records
from processor.engine.rounds.keep_changes import keep_segment
from processor.engine.rounds.round import CHUNK, Round, StageResult
from processor.engine.rounds.settled_decode import SettledDecode
from processor.engine.rounds.split_erased import is_erased_letter, split_erased
from processor.engine.rounds.step_runner import Outbox, StepRunner
from processor.engine.rounds.update_counts import count_absent, count_updates
from processor.errors import TruncateRefused
from processor.values import canonical_json
from processor.values.dead_letters import reject_message
from processor.values.entity import Entity
from processor.values.record import Change, Record, Rejected, Truncated
from statestore.keys import Key
from statestore.store import Store

T = TypeVar("T")


class Reject(Protocol):
    """Keeps a dead letter. `counts`: whether the account takes its record as a dead letter: it counts by its first change."""

    def __call__(self, rejected: Rejected, counts: bool = True) -> None: ...


NO_TRUNCATE = TruncateGoal("")


def write_stage(records: Iterable[Record], round_: Round, runner: StepRunner) -> StageResult:
    """Writes the changes of `records`, which are all of the batch's records of their partitions, in the order of
    offsets."""
    assert runner.outbox is not None
    tally: Counter[str] = Counter()
    letters: dict[str, str] = {}
    reject = partial(_reject, round_, runner.outbox, tally, letters)
    first: dict[Place, int] = {}
    decoding = SettledDecode(store=runner.store, schemas=runner.schemas, forms=round_.forms)
    transactions = SeenTransactions(followed_topics(round_.plan))
    decoded = list(_changes(records, round_, runner, decoding, first, tally, reject, transactions))
    truncates = tuple((one.entity, version_of(one)) for one in decoded if isinstance(one, Truncated))
    decoded_changes = (one for one in decoded if isinstance(one, Change))
    changes, erased = split_erased(decoded_changes, round_.erased, round_.incarnations, runner.store)
    for change in erased:
        if not change.index:
            _ignore(change.record, "erased", tally)
    absent = count_absent(changes)
    written = _write(dedupe(changes), round_, runner, first, reject)
    counted: Counter[tuple[Outcome, str]] = Counter()
    for net, touch in written:
        topic = net.changes[-1].record.topic
        if not net.changes[-1].index:
            counted[Count.SUPERSEDED if touch.outcome == "superseded" else Count.APPLIED, topic] += 1
        if len(net.changes) > 1:
            counted[Count.SUPERSEDED, topic] += sum(not change.index for change in net.changes[:-1])
    for (outcome, topic), records_ in counted.items():
        count_records(tally, outcome, topic, records_)
    runner.outbox.flush()
    updates = count_updates((touch for _, touch in written), round_.plan)
    written = [(net, touch) for net, touch in written if touch.changed is None or touch.changed]
    touches = [touch for _, touch in written]
    indexed = [touch for touch in touches if round_.plan.entities[touch.entity].concerns_indexes(touch.changed)]
    task = ".".join(f"{topic}.{partition}" for topic, _, partition in sorted(first)[:1])
    opened = open_touched(indexed, round_, task, runner.store)
    runner = replace(runner, overlays=(*runner.overlays, group_of(opened)))
    found = list(run_in_chunks(runner, (find_roots(touch, round_.plan) for touch in touches)))
    roots: dict[Root, float] = {}
    for time, of in sorted(zip(map(_time, written), found, strict=True), key=itemgetter(0), reverse=True):
        roots |= dict.fromkeys(of.roots, time)  # the oldest time of a root comes last
    return StageResult(
        tally=tally,
        roots=roots,
        fan_outs=tuple(chain.from_iterable(f.fan_outs for f in found)),
        opened=opened,
        truncates=truncates,
        letters=letters,
        forms=tuple(decoding.settled),
        updates=updates,
        absent=absent,
        seen=transactions.records(),
    )


def run_in_chunks(runner: StepRunner, steps: Iterable[Step[T]]) -> Iterator[T]:
    """The results of the steps, which run `CHUNK` at a time."""
    steps = iter(steps)
    while chunk := list(islice(steps, CHUNK)):
        yield from runner.run(chunk)


def union(found: Iterable[FoundRoots]) -> FoundRoots:
    """All roots and fan-outs together."""
    all_ = list(found)
    return FoundRoots(frozenset().union(*(f.roots for f in all_)), tuple(chain.from_iterable(f.fan_outs for f in all_)))


def _changes(
    records: Iterable[Record],
    round_: Round,
    runner: StepRunner,
    decoding: SettledDecode,
    first: dict[Place, int],
    tally: Counter[str],
    reject: Reject,
    transactions: SeenTransactions,
) -> Iterator[Change | Truncated]:
    """The changes and the truncates among the records. Notes in `first` the first offset of each epoch and partition. Raises
    TruncateRefused before the task writes a row."""
    topics = {e.entity.topic: e.entity for e in round_.plan.entities.values()}
    for decoded in decoding.decode_all(records, topics):
        record = decoded.record
        if isinstance(decoded, Change) and decoded.former is not None:
            decoded = _check_move(decoded, round_)
        tally[Count.READ] += 1
        transactions.see(decoded, topics.get(record.topic))
        place = record.topic, record.epoch, record.partition
        if place not in first or record.offset < first[place]:
            first[place] = record.offset
        if isinstance(decoded, Change):
            yield decoded
            yield from decoded.others
        elif isinstance(decoded, Rejected):
            if _is_erased(record, topics.get(record.topic), round_, runner, decoding):
                _ignore(record, "erased", tally)
            else:
                reject(decoded)
        elif isinstance(decoded, Truncated):
            _check_truncate(record, topics[record.topic], round_)
            count_records(tally, Count.APPLIED, record.topic)
            tally[Count.TRUNCATES] += 1
            yield decoded
        else:
            _ignore(record, decoded.why, tally)


def _is_erased(
    record: Record, entity: Entity | None, round_: Round, runner: StepRunner, decoding: SettledDecode
) -> bool:
    erased, incarnations = round_.erased, round_.incarnations
    return is_erased_letter(record, entity, erased, incarnations, runner.store, runner.schemas, decoding.forms)


def _check_move(change: Change, round_: Round) -> Change | Rejected:
    """The change, or the dead letter of an update that moves a row to another key where each partition of the topic may have the
    changes of that key: records without a Kafka key go to any partition."""
    record = change.record
    if record.key is not None or round_.partitions.get(record.topic, 1) == 1:
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


def _ignore(record: Record, why: str, tally: Counter[str]) -> None:
    count_records(tally, Count.IGNORED, record.topic)
    tally[f"{IGNORED_AS}{why}"] += 1


def _reject(
    round_: Round,
    rejects: Outbox,
    tally: Counter[str],
    letters: dict[str, str],
    rejected: Rejected,
    counts: bool = True,
) -> None:
    record, code = rejected.record, rejected.code
    if counts:
        count_records(tally, Count.DEAD_LETTERS, record.topic)
    tally[f"{DEAD_LETTERS_OF}{code}"] += 1
    shown = rejected.reason if round_.log_values else rejected.plain or rejected.reason
    letters.pop(code, None)  # so that the last letter of all comes last
    letters[code] = f"{record.topic}/{record.partition} offset {record.offset}: {shown}"
    rejects.send(reject_message(rejected, round_.dead_letter_topic, round_.setup.letter_bytes, round_.refused_by))


def _check_truncate(record: Record, entity: Entity, round_: Round) -> None:
    """Raises TruncateRefused where the job may not delete the rows. Offsets of two partitions have no common order, and a
    truncate is in one of them only."""
    partitions = round_.partitions.get(record.topic, 1) if entity.truncate == "delete" else 1
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


def _write(
    nets: Sequence[NetChange],
    round_: Round,
    runner: StepRunner,
    first: Mapping[Place, int],
    reject: Reject,
) -> list[tuple[NetChange, Touch]]:
    """Writes net changes. A change that the step refuses becomes a dead letter, and the change of its key before it
    counts instead. `first`: the first offset that the task read of each epoch and partition."""
    known: dict[tuple[str, Place], Published] = {}

    def published(change: Change) -> Published:
        record = change.record
        place = record.topic, record.epoch, record.partition
        if (found := known.get((change.entity, place))) is None:
            until = round_.truncates.get(change.entity, NO_TRUNCATE).since
            found = known[change.entity, place] = published_before(round_.committed, place, first[place], until)
        return found

    def is_shown(entity: str, row: Key) -> bool:
        return entity in round_.proven and not any(overlay.is_open(row) for overlay in runner.overlays)

    def step(change: Change) -> Step[Touch | RefusedChange]:
        entity = round_.plan.entities[change.entity]
        writing = write_state(
            change,
            entity,
            published=published(change),
            expires_at=round_.expires_at,
            reads=entity.name in round_.read_first,
            is_shown=partial(is_shown, entity.name),
        )
        return keep_edges(writing, _row_keys) if entity.edges else writing

    written: list[tuple[NetChange, Touch]] = []
    while nets:
        outcomes = list(run_in_chunks(runner, (step(net.change) for net in nets)))
        again = []
        for net, outcome in zip(nets, outcomes, strict=True):
            if isinstance(outcome, Touch):
                written.append((net, outcome))
                continue
            last, entity = net.changes[-1], outcome.change.entity
            reject(
                Rejected(record=last.record, reason=outcome.reason, code=outcome.code, entity=entity), not last.index
            )
            if len(net.changes) > 1:
                again.append(net_change(list(net.changes[:-1])))
        nets = again
    return written


def _time(written: tuple[NetChange, Touch]) -> float:
    """Kafka's time of the oldest record of a change, in seconds since 1970."""
    return min([change.record.timestamp for change in written[0].changes]) / 1000


def _row_keys(outcome: Touch | RefusedChange) -> RowKeys | None:
    return (outcome.row, outcome.former_keys) if isinstance(outcome, Touch) else None
