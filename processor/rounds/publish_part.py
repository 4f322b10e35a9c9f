"""The publish part: the roots of one lane -> assemble, publish.

A lane's task publishes its roots as one transaction. A document that cannot be made stops its product, not the other
products. When a topic refuses a message, the broker aborts the transaction, so the task begins again without that
topic's product. The messages that the first attempt reserved then count as not acknowledged, since the round records
the attempt that committed.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import itemgetter
from zlib import crc32

from processor.errors import TopicRefused
from processor.plan.plan import Plan, ProductPlan
from processor.plan.step import Step
from processor.plan.touch import Root
from processor.product.document import GONE, Match, Renderer
from processor.progress.ledger import Mark
from processor.records import canonical_json
from processor.rounds.freshness import UNKNOWN, RootTimes
from processor.rounds.round import CHUNK, LaneResult, Round
from processor.rounds.step_runner import StepRunner
from processor.steps.assemble import assemble
from processor.steps.publish import EncodedDocument, PublishContext, PublishOutcome, Unpublishable, publish

VERSION_HEADER = "statestore.product_version"
NextAttempt = Callable[[], tuple[int, StepRunner]]
"""Begins an attempt of a lane: its number, and a runner whose outbox is a new transaction."""


def lane_of(root: Root, lanes: int) -> int:
    """The lane that publishes a root, the same in every round and for every product."""
    return crc32(root[1].encode()) % lanes


def publish_lane(lane: int, roots: RootTimes, round_: Round, next_attempt: NextAttempt) -> LaneResult:
    """Publishes the documents of all roots of the lane in this round, in as many attempts as topics refuse messages."""
    refused: dict[str, str] = {}
    while True:
        attempt, runner = next_attempt()
        try:
            stopped = round_.stopped | refused.keys()
            result = publish_part(lane, attempt, roots, replace(round_, stopped=stopped), runner)
        except TopicRefused as refusal:
            products = (p.product for p in round_.plan.products.values())
            refused |= {p.name: str(refusal) for p in products if p.topic == refusal.topic}
        else:
            return replace(result, failed={**result.failed, **refused})


def publish_part(lane: int, attempt: int, roots: RootTimes, round_: Round, runner: StepRunner) -> LaneResult:
    """One attempt. Returns when the broker acknowledged all messages; raises TopicRefused when a topic refuses one."""
    assert runner.outbox is not None
    tally: Counter[str] = Counter()
    mark = Mark(round_.run.number, round_.number, lane, attempt)
    failed: dict[str, str] = {}
    backlog: set[Root] = set()
    times: list[float] = []
    # the documents of a root are neighbours, because they ask for the same rows
    todo = sorted(roots, key=itemgetter(1, 0))
    publishers = {name: _publisher(round_, round_.plan.products[name], mark, tally) for name in dict(todo)}
    while todo:
        chunk, todo = todo[:CHUNK], todo[CHUNK:]
        going = [root for root in chunk if root[0] not in round_.stopped and root[0] not in failed]
        backlog.update(set(chunk).difference(going))
        outcomes = runner.run(publishers[name](root) for name, root in going)
        for (name, root), outcome in zip(going, outcomes, strict=True):
            if isinstance(outcome, Unpublishable):
                failed.setdefault(name, outcome.reason)
                backlog.add((name, root))
                continue
            tally[outcome] += 1
            if outcome == "contended":
                todo.append((name, root))
            elif outcome == "published" and roots[name, root] != UNKNOWN:
                times.append(roots[name, root])
    runner.outbox.flush()
    tally += Counter(backlog=len(backlog))
    return LaneResult(
        lane=lane, attempt=attempt, tally=tally, times=tuple(times), failed=failed, backlog=frozenset(backlog)
    )


def encoded_document(plan: Plan, product: ProductPlan, root: str, tally: Counter[str]) -> Step[EncodedDocument]:
    """Assembles a root's document and encodes it."""
    return _encoded(plan, product, _renderer(plan, product, tally), root)


def _encoded(plan: Plan, product: ProductPlan, renderer: Renderer, root: str) -> Step[EncodedDocument]:
    top = None if product.retracted else (yield from assemble(plan, product, root, renderer.tally))
    if top is None:
        return EncodedDocument(key="", value=None)
    document = renderer.document(top)
    value = None if document is GONE else canonical_json.encode(document)
    return EncodedDocument(_message_key(plan, product, top), value)


def _renderer(plan: Plan, product: ProductPlan, tally: Counter[str]) -> Renderer:
    entities = {name: entity.entity for name, entity in plan.entities.items()}
    return Renderer(product=product.product, entities=entities, tally=tally)


def _message_key(plan: Plan, product: ProductPlan, top: Match) -> str:
    return canonical_json.dumps_flat({c: top.columns[c] for c in plan.entities[product.product.root].entity.key})


def _publisher(
    round_: Round, product: ProductPlan, mark: Mark, tally: Counter[str]
) -> Callable[[str], Step[PublishOutcome]]:
    context = PublishContext(
        topic=product.product.topic,
        product=product.product.name,
        version=product.version,
        headers=(
            ("statestore.product", product.product.name.encode()),
            (VERSION_HEADER, b"%d" % product.version),
            ("statestore.registry_version", b"%d" % round_.plan.version),
            ("statestore.batch", b"%d" % round_.batch),
        ),
        mark=mark,
        runs={round_.run.number: round_.run},
        earlier=round_.earlier_sequences.get(product.product.name, 0),
        names_roots=round_.log_values,
    )
    document = partial(_encoded, round_.plan, product, _renderer(round_.plan, product, tally))
    return lambda root: publish(context, root, partial(document, root))
