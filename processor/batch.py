"""One round of the path: a micro-batch from its records to its published documents, in two parts with a barrier between them.

    write_part     records of some partitions -> decode, dedupe, write state, find roots; dead letters and open changes kept
    publish_part   the roots of one publish slot -> assemble, publish
    resume_part    the next pages of fan-outs -> their roots; publish_part follows
    settle_part    open changes that are due -> what the indexes show of them, and their roots again; publish_part follows

All write parts of a round end before its first publish part begins. Both parts are the same under Spark and in `try`; who runs
them, and where requests and messages go, is the caller's. Everything that a part needs is in `Round`, as plain data.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import TypeVar
from zlib import crc32

from processor.lockstep import Lockstep, Outbox
from processor.model import canonical_json
from processor.model.change import Change, Record, Rejected
from processor.model.document import GONE, Match, Renderer
from processor.model.epochs import Partition
from processor.model.fan_out import FanOut, Found, Resumed
from processor.model.ledger import Mark, Run
from processor.model.open_changes import Entry, OpenChanges, Settled, durable, entry_of, item_key, places_of, portions
from processor.model.owed import Sent
from processor.model.plan import Plan, ProductPlan
from processor.model.step import Step
from processor.model.touch import Oversized, Root, Touch
from processor.rejects import reject_message
from processor.steps.assemble import assemble
from processor.steps.decode import decode
from processor.steps.dedupe import Net, dedupe, net
from processor.steps.find_roots import find_roots, resume
from processor.steps.keep_edges import Stands, keep_edges
from processor.steps.publish import Body, Failed, Result, Sender, publish
from processor.steps.settle import settle
from processor.steps.write_state import write_state
from statestore.errors import Terminal
from statestore.items import spell_version
from statestore.keys import Key
from statestore.limits import at
from statestore.store import Delete, Store, TooLarge

T = TypeVar("T")
CHUNK = 500
"""Steps in lockstep: enough to fill batched reads, few enough to bound what a part holds. A distinct read goes out once for them,
not for the part: a row's answer must not be older than the reading of the ledger of a document that shows it."""
OVERSIZED = "the row does not fit into an item of the table (400 KB)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What the parts of a round share. `run`: the run so far; `number`: of this round in the run; `batch`: the micro-batch, as
    headers show it. `starts`: where each partition's committed batches end. `forget`: when delete markers written now may be
    forgotten (seconds since 1970). `rejects`: the dead letter topic. `stopped`: the products that failed in rounds before."""

    plan: Plan
    run: Run
    number: int
    batch: int
    starts: Mapping[Partition, int]
    forget: int
    rejects: str
    stopped: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a write part did: the roots it touched, its accounting, where its partitions continue, and the changes that it opened,
    by the durable item that holds them. `rest`: the roots that are left for later."""

    roots: frozenset[Root]
    tally: Counter[str]
    ends: Mapping[Partition, int]
    opened: Mapping[Key, tuple[Entry, ...]]
    rest: tuple[FanOut, ...] = ()


def write_part(records: Iterable[Record], round_: Round, lockstep: Lockstep, rejects: Outbox) -> Written:
    """Writes the changes of `records`, which hold all of the batch's records of their partitions, in the order of offsets."""
    tally: Counter[str] = Counter()
    first: dict[Partition, tuple[int, int]] = {}
    ends: dict[Partition, int] = {}
    changes: list[Change] = []
    refuse = partial(_refuse, round_, rejects, tally)
    topics = {e.entity.topic: e.entity for e in round_.plan.entities.values()}
    for record in records:
        tally["read"] += 1
        _place(record, first, ends)
        decoded = decode(record, topics.get(record.topic))
        if isinstance(decoded, Change):
            changes.append(decoded)
        elif isinstance(decoded, Rejected):
            refuse(decoded)
        else:
            tally["ignored"] += 1
            tally[f"ignored: {decoded.why}"] += 1
    starts = {
        at: spell_version(epoch, min(offset, round_.starts.get(at, offset))) for at, (epoch, offset) in first.items()
    }
    written = _write(dedupe(changes), round_, lockstep, starts, refuse)
    for net_, touch in written:
        tally["superseded" if touch.how == "superseded" else "applied"] += 1
        tally["superseded"] += len(net_.parts) - 1
    rejects.flush()
    touches = [touch for _, touch in written if touch.changed is None or touch.changed]
    indexed = [touch for touch in touches if round_.plan.entities[touch.entity].indexed]
    opened = _open(indexed, round_, ends, lockstep.store)
    mine = replace(lockstep, open=(*lockstep.open, places_of(chain.from_iterable(opened.values()))))
    found = _union(_chunked(mine, (find_roots(touch, round_.plan) for touch in touches)))
    return Written(roots=found.roots, tally=tally, ends=ends, opened=opened, rest=found.rest)


def settle_part(due: Iterable[Entry], plan: Plan, lockstep: Lockstep) -> tuple[list[Settled], Found]:
    """Settles open changes: what the indexes show of them, and the roots that they touch."""
    probed = list(_chunked(lockstep, map(settle, due)))
    return [p.settled for p in probed], _union(_chunked(lockstep, (find_roots(p.touch, plan) for p in probed)))


def resume_part(fan_outs: Iterable[FanOut], plan: Plan, lockstep: Lockstep) -> tuple[list[Resumed], Found]:
    """Goes on with fan-outs, a page each: where each stands then, and the roots of the pages."""
    resumed = list(_chunked(lockstep, (resume(fan_out, plan) for fan_out in fan_outs)))
    return resumed, _union(r.found for r in resumed)


def tidy(changes: OpenChanges, store: Store, run: int, round_: int, now: float) -> None:
    """Closes what was shown long enough, and keeps the durable items few."""
    free = changes.close(now)
    if changes.crowded():
        gathered, replaced = changes.gathered(run, round_)
        for item, entries in gathered.items():
            _keep(item, entries, store)
        free += replaced
    for item in free:
        store.delete(Delete(key=item))


def publish_part(roots: Iterable[Root], round_: Round, slot: int, attempt: int, lockstep: Lockstep) -> Sent:
    """Publishes the documents of `roots`, all those of the publish slot in this round; returns when all are acknowledged. A
    document that cannot be made stops its product, not the others."""
    tally: Counter[str] = Counter()
    mark = Mark(round_.run.number, round_.number, slot, attempt)
    failed: dict[str, str] = {}
    owed: set[Root] = set()
    # the documents of a root side by side: they ask for the same rows
    todo = sorted(set(roots), key=itemgetter(1, 0))
    publishers = {name: _publisher(round_, round_.plan.products[name], mark, tally) for name in dict(todo)}
    while todo:
        chunk, todo = todo[:CHUNK], todo[CHUNK:]
        going = [root for root in chunk if root[0] not in round_.stopped and root[0] not in failed]
        owed.update(set(chunk).difference(going))
        steps = [publishers[name](root) for name, root in going]
        for (name, root), result in zip(going, lockstep.run(steps), strict=True):
            if isinstance(result, Failed):
                failed.setdefault(name, result.reason)
                owed.add((name, root))
                continue
            tally[result] += 1
            if result == "contended":
                todo.append((name, root))
    lockstep.outbox.flush()
    tally += Counter(owed=len(owed))
    return Sent(tally, failed, frozenset(owed))


def publish_slot(root: Root, slots: int) -> int:
    """Which publish slot a root belongs to, whichever the round and the product."""
    return crc32(root[1].encode()) % slots


def document_body(plan: Plan, product: ProductPlan, root: str, tally: Counter[str]) -> Step[Body]:
    """Assembles a root's document and encodes it."""
    return _body(plan, product, _renderer(plan, product, tally), root)


def _body(plan: Plan, product: ProductPlan, renderer: Renderer, root: str) -> Step[Body]:
    top = yield from assemble(plan, product, root)
    if top is None:
        return Body(key="", value=None)
    document = renderer.document(top)
    value = None if document is GONE else canonical_json.encode(document)
    return Body(_message_key(plan, product, top), value)


def _renderer(plan: Plan, product: ProductPlan, tally: Counter[str]) -> Renderer:
    entities = {name: entity.entity for name, entity in plan.entities.items()}
    return Renderer(product=product.product, entities=entities, tally=tally)


def _message_key(plan: Plan, product: ProductPlan, top: Match) -> str:
    return canonical_json.flat({c: top.columns[c] for c in plan.entities[product.product.root].entity.key})


def _publisher(round_: Round, product: ProductPlan, mark: Mark, tally: Counter[str]) -> Callable[[str], Step[Result]]:
    sender = Sender(
        topic=product.product.topic,
        product=product.product.name,
        headers=(
            ("statestore.product", product.product.name.encode()),
            ("statestore.product_version", b"%d" % product.version),
            ("statestore.registry_version", b"%d" % round_.plan.version),
            ("statestore.batch", b"%d" % round_.batch),
        ),
        mark=mark,
        runs={round_.run.number: round_.run},
    )
    body = partial(_body, round_.plan, product, _renderer(round_.plan, product, tally))
    return lambda root: publish(sender, root, partial(body, root))


def _place(record: Record, first: dict[Partition, tuple[int, int]], ends: dict[Partition, int]) -> None:
    """Notes the first (epoch, offset) of the record's partition in this batch, and where the partition continues."""
    at, place = (record.topic, record.partition), (record.epoch, record.offset)
    if at not in first or place < first[at]:
        first[at] = place
    if record.offset >= ends.get(at, 0):
        ends[at] = record.offset + 1


def _refuse(round_: Round, rejects: Outbox, tally: Counter[str], rejected: Rejected) -> None:
    tally["dead letters"] += 1
    rejects.send(reject_message(rejected, round_.rejects))


def _open(
    touches: Sequence[Touch], round_: Round, partitions: Iterable[Partition], store: Store
) -> dict[Key, tuple[Entry, ...]]:
    """Makes the open changes of a write part durable, a few items for all of them."""
    entries = [entry_of(touch.entity, touch.row, touch.left) for touch in touches]
    part = ".".join(f"{topic}.{partition}" for topic, partition in sorted(partitions)[:1])
    opened: dict[Key, tuple[Entry, ...]] = {}
    for n, portion in enumerate(portions(entries)):
        item = item_key(round_.run.number, round_.number, part, n)
        opened[item] = portion
        _keep(item, portion, store)
    return opened


def _keep(item: Key, entries: Sequence[Entry], store: Store) -> None:
    """Makes open changes durable."""
    if isinstance(store.write(durable(item, entries)), TooLarge):
        raise Terminal(
            f"{at(entries[0].key)}: the keys that this row had while its changes were open fill an item: wait W, go on"
        )


def _write(
    nets: Sequence[Net],
    round_: Round,
    lockstep: Lockstep,
    starts: Mapping[Partition, str],
    refuse: Callable[[Rejected], None],
) -> list[tuple[Net, Touch]]:
    """Writes net changes. One whose row is too large is refused, and the change of its key before it counts instead."""

    def step(change: Change) -> Step[Touch | Oversized]:
        start = starts[change.record.topic, change.record.partition]
        entity = round_.plan.entities[change.entity]
        writing = write_state(change, entity, start=start, forget=round_.forget)
        return keep_edges(writing, _stands) if entity.edges else writing

    written: list[tuple[Net, Touch]] = []
    while nets:
        outcomes = list(_chunked(lockstep, (step(n.change) for n in nets)))
        again = []
        for n, outcome in zip(nets, outcomes, strict=True):
            if isinstance(outcome, Touch):
                written.append((n, outcome))
                continue
            refuse(Rejected(record=n.parts[-1].record, reason=OVERSIZED))
            if len(n.parts) > 1:
                again.append(net(list(n.parts[:-1])))
        nets = again
    return written


def _union(found: Iterable[Found]) -> Found:
    all_ = list(found)
    return Found(frozenset().union(*(f.roots for f in all_)), tuple(chain.from_iterable(f.rest for f in all_)))


def _stands(outcome: Touch | Oversized) -> Stands | None:
    return (outcome.row, outcome.left) if isinstance(outcome, Touch) else None


def _chunked(lockstep: Lockstep, steps: Iterable[Step[T]]) -> Iterable[T]:
    steps = iter(steps)
    while chunk := list(islice(steps, CHUNK)):
        yield from lockstep.run(chunk)
