"""The publish stage: the roots of one lane -> assemble, publish.

A lane's task publishes its roots as one transaction. A document that cannot be made stops its product, not the other
products. When a topic refuses a message, the broker aborts the transaction, so the task begins again without that
topic's product. The messages that the first attempt reserved then count as not acknowledged, since the round records
the attempt that committed. Where the topic takes only smaller messages than the round knew, the next attempt knows it.

A document that does not fit its topic, because it is too large or beyond its Avro types, stops nothing: a dead letter takes its
place, and its root goes to the backlog.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from time import perf_counter
from zlib import crc32

from processor.counts import ASSEMBLED_OF, MESSAGES_OF, Count
from processor.engine.plan.plan import Plan, ProductPlan, RootTree, merge, root_message_key
from processor.engine.plan.step import Root, Step
from processor.engine.protocol.assemble import ROOT_ROW, RootReads, assemble, assemble_tree
from processor.engine.protocol.ledger import Mark, group_partition
from processor.engine.protocol.publish import (
    Documents,
    ProductWork,
    PublishContext,
    PublishOutcome,
    PublishTask,
    UnfitDocument,
    Unpublishable,
    publish,
    unpublishable,
)
from processor.engine.protocol.replays import kept_letter
from processor.engine.protocol.ticks import job_clock
from processor.engine.rounds.root_costs import RootCost, RootCosts, cost_of, heaviest, root_name
from processor.engine.rounds.round import CHUNK, LaneResult, Round
from processor.engine.rounds.round_counts import UNKNOWN, RootTimes
from processor.engine.rounds.step_runner import StepRunner
from processor.errors import TopicRefused
from processor.language.product.avro import DocumentEncoder, Encode, EncodedDocument, framed_avro, json_of_avro
from processor.language.product.document import Match, Renderer, SharedLevel, message_key, message_parts
from processor.language.product.expressions.expression import ClockTime
from processor.language.product.product import Product
from processor.values.entity import Entity
from processor.values.record import MAX_MESSAGE_BYTES
from registry.model import KeptLetter

VERSION_HEADER = "statestore.product_version"
TOMBSTONE = EncodedDocument("", None)
"""The document of a root that is gone, or of a retracted product."""
NextAttempt = Callable[[Round], tuple[int, StepRunner]]
"""Begins an attempt of a lane: its number, and a runner whose outbox is a new transaction."""
AskLimit = Callable[[str], int]
"""Asks the broker for the most bytes of a message of a topic."""


def lane_of(root: Root, lanes: int) -> int:
    """The lane that publishes a root, the same in every round and for every product."""
    return crc32(root[1].encode()) % lanes


def publish_lane(
    lane: int, roots: RootTimes, round_: Round, next_attempt: NextAttempt, ask_limit: AskLimit | None = None
) -> LaneResult:
    """Publishes the documents of all roots of the lane in this round, in as many attempts as topics refuse messages. Raises
    TopicRefused where the topic of dead letters refuses one."""
    refused: dict[str, str] = {}
    limits: dict[str, int] = {}
    while True:
        remembered = replace(round_.remembered, stopped=round_.remembered.stopped.union(refused))
        attempted = replace(round_, remembered=remembered, setup=round_.setup.learn(limits))
        attempt, runner = next_attempt(attempted)
        try:
            result = publish_stage(lane, attempt, roots, attempted, runner)
        except TopicRefused as refusal:
            products = [p.product.name for p in round_.plan.products.values() if p.product.topic == refusal.topic]
            if not products:
                raise
            limit = ask_limit(refusal.topic) if refusal.too_large and ask_limit is not None else MAX_MESSAGE_BYTES
            if any(limit < attempted.setup.message_limits.get(name, MAX_MESSAGE_BYTES) for name in products):
                limits |= dict.fromkeys(products, limit)
            else:
                refused |= dict.fromkeys(products, str(refusal))
        else:
            return replace(result, failed={**result.failed, **refused}, limits=limits)


def publish_stage(lane: int, attempt: int, roots: RootTimes, round_: Round, runner: StepRunner) -> LaneResult:
    """One attempt. Returns when the broker acknowledged all messages; raises TopicRefused when a topic refuses one."""
    assert runner.outbox is not None
    tally: Counter[str] = Counter()
    mark = Mark(round_.run.number, round_.number, lane, attempt)
    failed: dict[str, str] = {}
    backlog: set[Root] = set()
    unfit: dict[Root, str] = {}
    fits: set[Root] = set()
    times: list[float] = []
    due: list[int] = []
    kept: list[KeptLetter] = []
    sent: Counter[str] = Counter()
    made: Counter[str] = Counter()
    work = ProductWork()
    products, todo = round_.plan.products, sorted(roots, key=itemgetter(1, 0))
    publishers = {
        tree: _RootPublisher(round_, tree, mark, tally, runner, work, due) for tree in _trees_of(products, todo)
    }
    while todo:
        end = _end_of_chunk(todo)
        chunk, todo = todo[:end], todo[end:]
        going = [root for root in chunk if root[0] not in round_.remembered.stopped and root[0] not in failed]
        backlog.update(set(chunk).difference(going))
        together: dict[tuple[str, str], list[str]] = {}  # products that show one root publish it together
        for name, root in going:
            together.setdefault((products[name].product.tree, root), []).append(name)
        results = runner.run(publishers[tree].publish(root, names) for (tree, root), names in together.items())
        for (tree, root), outcomes in zip(together, results, strict=True):
            for name, outcome in outcomes.items():
                if isinstance(outcome, Unpublishable):
                    failed.setdefault(name, outcome.reason)
                    backlog.add((name, root))
                    continue
                if isinstance(outcome, UnfitDocument):
                    if outcome.letter is not None:
                        tally[Count.UNFIT] += 1
                        kept.append(kept_letter(outcome.letter, round_.date))
                    unfit[name, root] = outcome.reason
                    continue
                tally[outcome] += 1
                made[name] += 1
                if outcome == Count.CONTENDED:
                    publishers[tree].begin_again(root)
                    todo.append((name, root))
                    continue
                if (name, root) in round_.remembered.unfit:
                    fits.add((name, root))
                if outcome == Count.PUBLISHED:
                    sent[name] += 1
                    if roots[name, root] != UNKNOWN:
                        times.append(roots[name, root])
    runner.outbox.flush()
    tally += Counter({Count.BACKLOG: len(backlog)})
    tally.update({f"{MESSAGES_OF}{name}": count for name, count in sent.items()})
    tally.update({f"{ASSEMBLED_OF}{name}": count for name, count in made.items()})
    for publisher in publishers.values():
        work.reads.update(publisher.reads())
    tally.update(work.tally())
    return LaneResult(
        lane=lane,
        attempt=attempt,
        tally=tally,
        times=tuple(times),
        failed=failed,
        backlog=frozenset(backlog | unfit.keys()),
        unfit=unfit,
        fits=frozenset(fits),
        kept=tuple(kept),
        due=(min(due),) if due else (),
        costs=_costs(publishers.values(), shows=round_.rules.log_values),
    )


def _costs(publishers: Iterable["_RootPublisher"], *, shows: bool) -> RootCosts:
    """The roots of a task that cost the most. `shows`: whether their names may show values."""
    costs = heaviest({(one.entity, *root): cost for one in publishers for root, cost in one.costs.items()})
    return {root_name(*root, shows=shows): cost for root, cost in costs.items()}


def _end_of_chunk(todo: Sequence[Root]) -> int:
    """Where a chunk of sorted roots ends: it has all products of its last root, which read and write one ledger item."""
    end = min(CHUNK, len(todo))
    while end < len(todo) and todo[end][1] == todo[end - 1][1]:
        end += 1
    return end


def encoded_document(plan: Plan, product: ProductPlan, root: str, tally: Counter[str]) -> Step[EncodedDocument]:
    """Assembles a root's document of one product at the clock of the job, and encodes it as JSON."""
    top = None if product.retracted else (yield from assemble(plan, product, root, tally))
    if top is None:
        return EncodedDocument(key="", value=None)
    entities = plan.declared_entities
    clock = ClockTime((yield from job_clock(product.product.clock)))
    renderer = Renderer(product=product.product, entities=entities, tally=tally, clock=clock)
    parts = message_parts(product.product, entities)
    key = message_key(product.product, root_message_key(plan.root_entity(product), top.columns))
    return DocumentEncoder(renderer, parts=parts).encoded(top, key)


def _trees_of(products: Mapping[str, ProductPlan], roots: Iterable[Root]) -> set[str]:
    """The trees of these products."""
    return {products[name].product.tree for name in {name for name, _ in roots}}


def _encode(round_: Round, product: Product, entities: Mapping[str, Entity], runner: StepRunner) -> Encode | None:
    """How the topic has the documents; None for JSON. A trial asks no schema registry, and has JSON of the same documents."""
    if product.format != "avro":
        return None
    number = round_.setup.schema_ids.get(product.name)
    if number is None:
        return json_of_avro(product, entities)
    assert runner.open_writer is not None
    return framed_avro(product, entities, number, runner.open_writer)


class _RootPublisher:
    """Publishes the roots of one tree in a task: for each root, the documents of some of its products together. `contended`:
    the roots whose publication begins again; `costs`: what each root read, by its encoded key and the key of its messages."""

    def __init__(
        self,
        round_: Round,
        tree: str,
        mark: Mark,
        tally: Counter[str],
        runner: StepRunner,
        work: ProductWork,
        due: list[int],
    ) -> None:
        self._round, self._tally, self._runner, self._work = round_, tally, runner, work
        self.contended: set[str] = set()
        self.costs: dict[tuple[str, str], RootCost] = {}
        self._products, self._whole = round_.plan.products, round_.plan.trees[tree]
        self._root = self._whole.group or round_.plan.entities[self._whole.root].entity
        self._task = PublishTask(
            entity=self._root.name,
            mark=mark,
            runs={round_.run.number: round_.run},
            erased=round_.remembered.erased,
            contended=self.contended,
            consistent=runner.store.consistent,
            clock=round_.clock,
            work=work,
            due=due,
        )
        self._entities, self._shared = round_.plan.declared_entities, SharedLevel()
        self._contexts: dict[str, PublishContext] = {}
        self._encoders: dict[str, DocumentEncoder] = {}
        self._trees: dict[tuple[str, ...], RootTree] = {}
        self._published: Counter[tuple[str, ...]] = Counter()
        self._asked: defaultdict[tuple[str, ...], Counter[int]] = defaultdict(Counter)

    def begin_again(self, root: str) -> None:
        """Lets the publication of a root begin again, with reads of its own."""
        self.contended.add(root)
        if self._runner.shown is not None and self._whole.group is None:
            self._runner.shown.forget(self._round.plan.entities[self._whole.root].key(root))

    def _is_shown(self, root: str, names: Sequence[str]) -> bool:
        """Whether the way up has shown the root's row with all that these products read of it."""
        if self._runner.shown is None or not self._runner.shown.rows:
            return False
        plan, tree = self._round.plan, self._whole
        return plan.entities[tree.root].key(root) in self._runner.shown.rows and plan.shows_root(tree.root, names)

    def publish(self, root: str, names: Sequence[str]) -> Step[dict[str, PublishOutcome]]:
        """Publishes the documents of these products of a root."""
        contexts = [self._context(name) for name in names]
        self._published[tuple(names)] += 1
        return publish(self._task, contexts, root, partial(self._documents, root, names))

    def _documents(self, root: str, names: Sequence[str]) -> Step[Documents]:
        """The documents of a root: its rows are found once for all products. If that fails, each product is on its own, so that
        only those fail that use the wrong row."""
        shown = tuple([name for name in names if not self._products[name].retracted])
        gone: dict[str, EncodedDocument | Unpublishable] = dict.fromkeys(names, TOMBSTONE)
        if not shown:
            return gone
        named, tree = root if self._round.rules.log_values else None, self._tree(shown)
        reads = RootReads(self._asked[shown])
        try:
            is_shown = self._is_shown(root, shown)
            top = yield from assemble_tree(self._round.plan, tree, root, self._tally, reads, shown=is_shown)
        except Exception as error:
            if len(shown) == 1:
                return gone | {shown[0]: unpublishable(error, named)}
            for name in shown:
                gone |= yield from self._documents(root, (name,))
            return gone
        if top is None:
            return gone
        key = root_message_key(self._root, top.columns)
        self.costs[root, key] = cost_of(reads, shown)
        return gone | {name: self._document(top, key, name, named) for name in shown}

    def _document(self, top: Match, key: str, name: str, named: str | None) -> EncodedDocument | Unpublishable:
        began = perf_counter()
        try:
            return self._encoder(name).encoded(top, key)
        except Exception as error:
            return unpublishable(error, named)
        finally:
            self._work.seconds[name] = self._work.seconds.get(name, 0.0) + perf_counter() - began

    def reads(self) -> Counter[tuple[str, ...]]:
        """The reads of the ledger and of the assembled rows so far, by the products that use them."""
        reads: Counter[tuple[str, ...]] = Counter()
        for names, count in self._published.items():
            for _, group in groupby(sorted(names, key=self._partition), self._partition):
                reads[tuple(group)] += count
        for names, asked in self._asked.items():
            users = {node.number: tuple(node.users) for node in self._trees[names].nodes} | {ROOT_ROW: names}
            for number, count in asked.items():
                reads[users[number]] += count
        return reads

    @property
    def entity(self) -> str:
        """That of the roots."""
        return self._root.name

    def _tree(self, names: tuple[str, ...]) -> RootTree:
        """The tree of these products."""
        if names not in self._trees:
            self._trees[names] = merge([self._products[name] for name in names], self._whole)
        return self._trees[names]

    def _encoder(self, name: str) -> DocumentEncoder:
        if name not in self._encoders:
            product = self._products[name].product
            renderer = Renderer(
                product=product,
                entities=self._entities,
                tally=self._tally,
                shape=self._whole.shape[name],
                shared=self._shared if product.format == "json" else None,
                clock=ClockTime(self._round.clock),
            )
            encode = _encode(self._round, product, self._entities, self._runner)
            self._encoders[name] = DocumentEncoder(renderer, encode, self._context(name).parts)
        return self._encoders[name]

    def _partition(self, name: str) -> str:
        return self._context(name).partition

    def _context(self, name: str) -> PublishContext:
        if name not in self._contexts:
            round_, product = self._round, self._products[name]
            self._contexts[name] = PublishContext(
                topic=product.product.topic,
                product=name,
                partition=group_partition(product.ledger),
                number=product.number,
                version=product.version,
                headers=(
                    ("statestore.product", name.encode()),
                    (VERSION_HEADER, b"%d" % product.version),
                    ("statestore.registry_version", b"%d" % round_.plan.version),
                    ("statestore.batch", b"%d" % round_.batch),
                ),
                earlier=round_.setup.earlier_sequences.get(name, 0),
                limit=min(round_.setup.message_limits.get(name, MAX_MESSAGE_BYTES), MAX_MESSAGE_BYTES),
                dead_letter_topic=round_.rules.dead_letter_topic,
                letter_bytes=round_.setup.letter_bytes,
                refused_by=round_.refused_by,
                parts=message_parts(product.product, self._entities),
                partitions=round_.setup.partitions.get(name, 1),
                routed=bool(product.product.partition_by),
            )
        return self._contexts[name]
