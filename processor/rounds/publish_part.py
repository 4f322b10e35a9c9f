"""The publish part: the roots of one lane -> assemble, publish.

A lane's task publishes its roots as one transaction. A document that cannot be made stops its product, not the other
products. When a topic refuses a message, the broker aborts the transaction, so the task begins again without that
topic's product. The messages that the first attempt reserved then count as not acknowledged, since the round records
the attempt that committed. Where the topic takes only smaller messages than the round knew, the next attempt knows it.

A document that does not fit its topic, because it is too large or beyond its Avro types, stops nothing: a dead letter takes its
place, and its root goes to the backlog.
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
from processor.product.avro_datum import avro_datum
from processor.product.avro_document import avro_schema_text
from processor.product.document import GONE, Match, Renderer
from processor.progress.ledger import Mark
from processor.records import canonical_json
from processor.records.entity import Entity
from processor.records.framing import framed
from processor.records.message import MAX_MESSAGE_BYTES
from processor.records.mismatch import Mismatch
from processor.records.record import Value
from processor.rounds.freshness import UNKNOWN, RootTimes
from processor.rounds.round import CHUNK, LaneResult, Round
from processor.rounds.step_runner import StepRunner
from processor.steps.assemble import assemble
from processor.steps.publish import (
    EncodedDocument,
    PublishContext,
    PublishOutcome,
    UnfitDocument,
    Unpublishable,
    publish,
)

VERSION_HEADER = "statestore.product_version"
NextAttempt = Callable[[Round], tuple[int, StepRunner]]
"""Begins an attempt of a lane: its number, and a runner whose outbox is a new transaction."""
AskLimit = Callable[[str], int]
"""Asks the broker for the most bytes of a message of a topic."""
Encode = Callable[[Value], bytes]


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
        known = {**round_.message_limits, **limits}
        attempted = replace(round_, stopped=round_.stopped | refused.keys(), message_limits=known)
        attempt, runner = next_attempt(attempted)
        try:
            result = publish_part(lane, attempt, roots, attempted, runner)
        except TopicRefused as refusal:
            products = [p.product.name for p in round_.plan.products.values() if p.product.topic == refusal.topic]
            if not products:
                raise
            limit = ask_limit(refusal.topic) if refusal.too_large and ask_limit is not None else MAX_MESSAGE_BYTES
            if any(limit < known.get(name, MAX_MESSAGE_BYTES) for name in products):
                limits |= dict.fromkeys(products, limit)
            else:
                refused |= dict.fromkeys(products, str(refusal))
        else:
            return replace(result, failed={**result.failed, **refused}, limits=limits)


def publish_part(lane: int, attempt: int, roots: RootTimes, round_: Round, runner: StepRunner) -> LaneResult:
    """One attempt. Returns when the broker acknowledged all messages; raises TopicRefused when a topic refuses one."""
    assert runner.outbox is not None
    tally: Counter[str] = Counter()
    mark = Mark(round_.run.number, round_.number, lane, attempt)
    failed: dict[str, str] = {}
    backlog: set[Root] = set()
    unfit: dict[Root, str] = {}
    fits: set[Root] = set()
    times: list[float] = []
    # the documents of a root are neighbours, because they ask for the same rows
    todo = sorted(roots, key=itemgetter(1, 0))
    publishers = {name: _publisher(round_, round_.plan.products[name], mark, tally, runner) for name in dict(todo)}
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
            if isinstance(outcome, UnfitDocument):
                tally["unfit"] += outcome.new
                unfit[name, root] = outcome.reason
                continue
            tally[outcome] += 1
            if outcome == "contended":
                todo.append((name, root))
                continue
            if (name, root) in round_.unfit:
                fits.add((name, root))
            if outcome == "published" and roots[name, root] != UNKNOWN:
                times.append(roots[name, root])
    runner.outbox.flush()
    tally += Counter(backlog=len(backlog))
    return LaneResult(
        lane=lane,
        attempt=attempt,
        tally=tally,
        times=tuple(times),
        failed=failed,
        backlog=frozenset(backlog | unfit.keys()),
        unfit=unfit,
        fits=frozenset(fits),
    )


def encoded_document(plan: Plan, product: ProductPlan, root: str, tally: Counter[str]) -> Step[EncodedDocument]:
    """Assembles a root's document and encodes it as JSON."""
    return _encoded(plan, product, _renderer(plan, product, tally), canonical_json.encode, root)


def _encoded(plan: Plan, product: ProductPlan, renderer: Renderer, encode: Encode, root: str) -> Step[EncodedDocument]:
    top = None if product.retracted else (yield from assemble(plan, product, root, renderer.tally))
    if top is None:
        return EncodedDocument(key="", value=None)
    document, key = renderer.document(top), _message_key(plan, product, top)
    if document is GONE:
        return EncodedDocument(key, None)
    try:
        return EncodedDocument(key, encode(document))
    except (ValueError, TypeError) as error:
        misfit = error.plain if isinstance(error, Mismatch) else type(error).__name__
        return EncodedDocument(key, canonical_json.encode(document), misfit)


def _renderer(plan: Plan, product: ProductPlan, tally: Counter[str]) -> Renderer:
    return Renderer(product=product.product, entities=_entities(plan), tally=tally)


def _encoder(round_: Round, planned: ProductPlan, runner: StepRunner) -> Encode:
    """Encodes documents as the topic has them: JSON, or framed Avro. It raises ValueError or TypeError for a document that Avro
    does not hold. A trial asks no schema registry, and has JSON of the same documents."""
    product, entities = planned.product, _entities(round_.plan)
    if product.format != "avro" or planned.retracted:
        return canonical_json.encode
    to_datum, number = avro_datum(product, entities).write, round_.schema_ids.get(product.name)
    if number is None:

        def encode(document: Value) -> bytes:
            to_datum(document)
            return canonical_json.encode(document)

        return encode
    assert runner.open_writer is not None
    write = runner.open_writer(avro_schema_text(product, entities))
    return lambda document: framed(number, write(to_datum(document)))


def _entities(plan: Plan) -> dict[str, Entity]:
    return {name: entity.entity for name, entity in plan.entities.items()}


def _message_key(plan: Plan, product: ProductPlan, top: Match) -> str:
    return canonical_json.dumps_flat({c: top.columns[c] for c in plan.entities[product.product.root].entity.key})


def _publisher(
    round_: Round, product: ProductPlan, mark: Mark, tally: Counter[str], runner: StepRunner
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
        limit=min(round_.message_limits.get(product.product.name, MAX_MESSAGE_BYTES), MAX_MESSAGE_BYTES),
        rejects_topic=round_.rejects_topic,
        letter_bytes=round_.letter_bytes,
        refused_by=round_.refused_by,
        names_roots=round_.log_values,
        entity=product.product.root,
        erased=round_.erased,
    )
    renderer, encode = _renderer(round_.plan, product, tally), _encoder(round_, product, runner)
    document = partial(_encoded, round_.plan, product, renderer, encode)
    return lambda root: publish(context, root, partial(document, root))
