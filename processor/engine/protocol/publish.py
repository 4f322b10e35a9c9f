"""Publishes the documents of one root, once, fenced: those of all products that may have changed.

1. Read the ledger items of the root, before assembling. The read is weak: it may miss the last writes.
2. Assemble. (The caller passes the step: steps do not know each other.)
3. Leave out each product whose entry has the same hash, of the same version and topic, if the broker acknowledged it. A root
   whose key no message ever had needs no tombstones.
4. Reserve the next sequence of each other product with its value's hash, one write a group, under the turn read. Refused: the
   products of this group start again at the ledger, which the next attempt reads strongly consistent. A group without a
   reservation is read again so: if it has another turn, then its products start again.
5. Send. The end of the round, once the broker acknowledged all messages, acknowledges the reservations.

A document that does not fit its topic, because it is too large or has a value that its Avro type does not hold, goes the same
way, as a dead letter: the ledger has another hash for it, so the document goes out as soon as it fits.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from zlib import crc32

from processor.counts import BYTES_OF, READS_OF, RENDER_OF, WRITES_OF
from processor.engine.plan.plan import LedgerPlace
from processor.engine.plan.step import Request, Send, Step, WeakKey
from processor.engine.protocol.erasures import Erased, erasure_key, may_be_erased, read_erasure
from processor.engine.protocol.ledger import (
    INVALIDATED,
    NO_DOCUMENT,
    PLACES,
    UNFIT,
    LedgerEntry,
    Mark,
    Placed,
    Run,
    due_in,
    group_key,
    hash_of,
    message_key,
    places_of,
    read_entry,
    read_places,
    read_run,
    reserve,
    run_key,
    shown_places,
    turn_of,
)
from processor.engine.protocol.ticks import DueRoot, write_due
from processor.language.product.avro import EncodedDocument
from processor.language.product.document import Headers, MessageParts
from processor.values.dead_letters import RefusedBy, message_bytes, reject_message
from processor.values.reasons import ReasonCode
from processor.values.record import MAX_MESSAGE_BYTES, Message, Record, Rejected, partition_of_key
from statestore.keys import Key
from statestore.store import Done, Item

MOST_SEQUENCE = 10**18


class Unpublishable(NamedTuple):
    """A document that cannot be published, and the reason."""

    reason: str


class UnfitDocument(NamedTuple):
    """A document that does not fit its topic, and the reason of its dead letter. `letter`: it went out now, else None."""

    reason: str
    letter: Rejected | None


PublishOutcome = Literal["published", "unchanged", "contended"] | Unpublishable | UnfitDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishContext:
    """The facts that all messages of a product share in one task. `partition`, `number`: the product's place in the ledger;
    `version`: the product's. `earlier`: the highest sequence of the topic before the product's first message. `limit`: the most
    bytes of a message of the topic; `envelope`: the most bytes of a message next to its key and its value. The dead letter of a
    document that does not fit goes to `dead_letter_topic`, whose messages have at most `letter_bytes`, and names `refused_by`.
    `parts`: makes what the product adds to messages; None without any. `routed`: its columns choose the partition, among the
    `partitions` of the topic."""

    topic: str
    product: str
    partition: str
    number: int
    version: int
    headers: tuple[tuple[str, bytes], ...]
    earlier: int = 0
    limit: int = MAX_MESSAGE_BYTES
    dead_letter_topic: str = ""
    letter_bytes: int | None = None
    refused_by: RefusedBy | None = None
    parts: MessageParts | None = None
    partitions: int = 1
    routed: bool = False
    envelope: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "envelope", message_bytes(self.message(b"", None, MOST_SEQUENCE)))

    def message(self, key: bytes, value: bytes | None, seq: int, own: Headers = (), partition: int = -1) -> Message:
        """The message with this sequence. `own`: the headers of the product; `partition`: -1 for that of the key."""
        return Message(self.topic, key, value, (*self.headers, ("statestore.sequence", b"%d" % seq), *own), partition)

    def headers_of(self, document: EncodedDocument, key: str) -> Headers:
        """The product's headers of a document, or of the tombstone of the root with this key."""
        return self.parts.headers_of_key(key) if self.parts and document.value is None else document.headers


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductWork:
    """What a task does for each product: the bytes of its messages, the seconds of its rendering; and by the products that share
    them, how many writes to the ledger and reads.

    A read is a key or a lookup that a step asks: an item of the ledger, the row of the root, or one key of a join. A read that
    several products share is divided equally, and so is a write of one item. The runner sends several reads in one request, and
    equal lookups once. A part that the documents of several products show takes time of the first one only."""

    sent_bytes: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    writes: Counter[tuple[str, ...]] = field(default_factory=Counter)
    reads: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def tally(self) -> Counter[str]:
        """The counters of the products."""
        tally = Counter({f"{BYTES_OF}{name}": count for name, count in self.sent_bytes.items()})
        tally.update({f"{RENDER_OF}{name}": round(1e6 * seconds) for name, seconds in self.seconds.items()})
        for prefix, shared in ((WRITES_OF, self.writes), (READS_OF, self.reads)):
            for names, count in shared.items():
                part, rest = divmod(1_000 * count, len(names))
                tally.update({f"{prefix}{name}": part + (n < rest) for n, name in enumerate(names)})
        return tally


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishTask:
    """The facts that all messages of a task share. `entity`: of the roots; `mark`: of its reservations. `runs`: how far the known
    runs came, this task's own among them. `erased`: the erased rows. `contended`: roots whose ledger the task reads strongly
    consistent, because a weak read missed a write. `consistent`: whether the store has no late reads, so that it reads each
    ledger so. `clock`: of the round, in seconds since 1970. `work`: what the task counts by product; `due`: the ticks at
    which its roots are due."""

    entity: str
    mark: Mark
    runs: Mapping[int, Run]
    erased: Erased = frozenset()
    contended: Collection[str] = ()
    consistent: bool = False
    clock: int = 0
    work: ProductWork = field(default_factory=ProductWork)
    due: list[int] = field(default_factory=list)


Documents = Mapping[str, EncodedDocument | Unpublishable]
"""Product -> its document of a root, or why there is none."""


@dataclass(slots=True)
class _RootLedger:
    """What the ledger says of a root: its items by partition, and the sequences of the tombstones of an erased root, by number. A
    new registry gives other numbers, so the next sequence of each product is above all of them. `sure`: whether the items are
    those of this moment."""

    items: dict[str, Item | None]
    sequences: Mapping[int, int]
    sure: bool

    def entry(self, context: PublishContext) -> LedgerEntry:
        """The entry of a product. That of an erased root may be gone: then the erasure has the sequence of the tombstone."""
        found = read_entry(self.items[context.partition], context.number, context.earlier)
        if found.mark is None and self.sequences:
            above = max(found.seq, *self.sequences.values())
            return LedgerEntry(seq=above, hash=NO_DOCUMENT if context.number in self.sequences else found.hash)
        return found

    def due(self, context: PublishContext) -> int | None:
        """The tick of the due item that the root of a product has, or had."""
        return due_in(self.items[context.partition], context.number)

    @property
    def key(self) -> str:
        """The key of the root's messages; empty for a root without any."""
        return next((key for key in map(message_key, self.items.values()) if key), "")


@dataclass(slots=True)
class _Group:
    """The reservations of a group; the due items to write before, by number of the product; the products of the reservations;
    their messages, which go out once the ledger has them; and the outcomes of all products. `placed`: where the messages of some
    go."""

    entries: dict[int, LedgerEntry] = field(default_factory=dict)
    placed: tuple[tuple[int, Placed], ...] = ()
    dues: tuple[tuple[int, DueRoot], ...] = ()
    reserved: list[str] = field(default_factory=list)
    sends: list[tuple[str, Send]] = field(default_factory=list)
    outcomes: dict[str, PublishOutcome] = field(default_factory=dict)

    def writers(self) -> tuple[str, ...]:
        """The products of the group's write; none, no write."""
        if not self.dues:
            return tuple(self.reserved)
        return tuple(dict.fromkeys((*self.reserved, *(due.root[0] for _, due in self.dues))))


def publish(
    task: PublishTask, contexts: Sequence[PublishContext], root: str, assembled: Callable[[], Step[Documents]]
) -> Step[dict[str, PublishOutcome]]:
    """Publishes one root's documents; returns the outcome of each product. `contended`: another publisher reserved meanwhile, or
    the weak read missed a write, so the caller tries again with fresh reads. Unpublishable: the step reserved nothing for the
    product. UnfitDocument: the ledger says that a dead letter took its place."""
    ledger = yield from _read_ledger(task, contexts, root)
    documents = yield from assembled()
    key = (
        next((one.key for one in documents.values() if isinstance(one, EncodedDocument) and one.key), "") or ledger.key
    )
    encoded_key = key.encode()
    outcomes: dict[str, PublishOutcome] = {}
    dues: list[DueRoot] = []
    groups = {pk: _Group() for pk in ledger.items}
    for context in contexts:
        document, group = documents[context.product], groups[context.partition]
        if isinstance(document, Unpublishable):
            outcomes[context.product] = document
            continue
        if document.changes is not None:
            known = ledger.due(context)
            if known is None or not task.clock < known <= document.changes:
                known = document.changes
                due = DueRoot(known, (context.product, root))
                dues.append(due)
                group.dues += ((context.number, due),)
            task.due.append(known)
        if not key:
            group.outcomes[context.product] = "unchanged"
            continue
        entry, item = ledger.entry(context), ledger.items[context.partition]
        own_key, route = encoded_key, BY_KEY
        if context.parts is not None:
            own_key = context.parts.key(key).encode()
        if context.routed or (item is not None and PLACES in item):
            route = yield from _route(task, context, item, entry, document, own_key)
        seq = entry.seq + 1 + len(route.others)
        unfit = _unfit(context, document, own_key, seq)
        digest = (UNFIT if unfit else "") + hash_of(document.value, document.headers)
        there = route is BY_KEY or digest == NO_DOCUMENT or unfit is not None or route.there
        if there and entry.shows(digest, context.version, context.topic) and (yield from _acknowledged(task, entry)):
            group.outcomes[context.product] = UnfitDocument(unfit.reason, None) if unfit else "unchanged"
            continue
        topic = context.topic if digest == NO_DOCUMENT else ""
        group.entries[context.number] = reserved = LedgerEntry(seq, digest, task.mark, context.version, topic)
        group.reserved.append(context.product)
        if route.place >= 0:
            former = route.shown if unfit else (route.place, *(one for one in route.shown if one != route.place))
            group.placed += ((context.number, Placed(context.topic, former)),)
        if unfit:
            letter = _letter(task, context, root, own_key, reserved, unfit)
            limits = context.dead_letter_topic, context.letter_bytes, context.refused_by
            group.sends.append((context.product, Send(reject_message(letter, *limits))))
            group.outcomes[context.product] = UnfitDocument(unfit.reason, letter)
        elif context.parts is None and route is BY_KEY:
            group.sends.append((context.product, Send(context.message(encoded_key, document.value, seq))))
            group.outcomes[context.product] = "published"
        else:
            group.sends += ((context.product, Send(one)) for one in _messages(context, route, key, document, entry.seq))
            group.outcomes[context.product] = "published"
    if dues:
        yield tuple(map(write_due, dues))  # before the ledger names them
        task.work.writes.update((due.root[0],) for due in dues)
    return outcomes | (yield from _end_groups(task.work, ledger, root, key, groups))


class _Route(NamedTuple):
    """Where the message of a root goes. `place`: its partition, -1 for that of its key; `shown`: the partitions that may show a
    document of the root; `others`: those of them that get a tombstone before the message. A task that was given up may know fewer
    partitions than the topic has: its reservation keeps all that it read."""

    place: int
    shown: tuple[int, ...] = ()
    others: tuple[int, ...] = ()

    @property
    def there(self) -> bool:
        """Whether a document that is shown is where the message goes."""
        return self.place < 0 or self.shown == (self.place,)


BY_KEY = _Route(-1)


def _route(
    task: PublishTask,
    context: PublishContext,
    item: Item | None,
    entry: LedgerEntry,
    document: EncodedDocument,
    key: bytes,
) -> Step[_Route]:
    """Where the message goes. A tombstone goes where a document may be shown. `item`: of the ledger. The root of a product that
    had `partition_by` before keeps its places, so its document leaves them."""
    places = read_places(item, context.number, context.topic)
    if places is None and not context.routed:
        return BY_KEY  # another product of the group has places
    by_key, acknowledged = partition_of_key(key, context.partitions), (yield from _acknowledged(task, entry))
    if places:
        shown = shown_places(entry, places, acknowledged=acknowledged)
    else:  # messages by key, of this product or of an earlier one of the topic, and what earlier ones placed
        own = places is None and shown_places(entry, (by_key,), acknowledged=acknowledged)
        by_keys = (by_key,) if own or context.earlier else ()
        places = shown = tuple(dict.fromkeys((*by_keys, *sorted(places_of(item, context.topic)))))
    if document.value is None:
        place = next((one for one in (*shown, *places) if one < context.partitions), by_key)
    else:
        place = partition_of_key(document.partition_key or key, context.partitions)
    return _Route(place, shown, tuple([one for one in shown if one != place and one < context.partitions]))


def _messages(
    context: PublishContext, route: _Route, key: str, document: EncodedDocument, before: int
) -> Iterator[Message]:
    """The message of a root, behind its tombstones in other partitions. `before`: the last sequence."""
    encoded, gone = (context.parts.key(key) if context.parts else key).encode(), document._replace(value=None)
    for number, other in enumerate(route.others, before + 1):
        yield context.message(encoded, None, number, context.headers_of(gone, key), other)
    own = context.headers_of(document, key)
    yield context.message(encoded, document.value, before + 1 + len(route.others), own, route.place)


def _end_groups(
    work: ProductWork, ledger: _RootLedger, root: str, key: str, groups: Mapping[str, _Group]
) -> Step[dict[str, PublishOutcome]]:
    """Reserves the messages of each group by its write, and sends those that the ledger has. Reads the item of a group without
    messages again where the ledger is not sure."""
    asked: dict[str, Request] = {}
    for pk, group in groups.items():
        if writers := group.writers():
            ticks = {number: due.tick for number, due in group.dues}
            asked[pk] = reserve(Key(pk, root), ledger.items[pk], group.entries, key, ticks, dict(group.placed))
            work.writes[writers] += 1
        elif group.outcomes and not ledger.sure:
            asked[pk] = Key(pk, root)
            work.reads[tuple(group.outcomes)] += 1
    answers = dict(zip(asked, (yield tuple(asked.values())) if asked else (), strict=True))
    outcomes: dict[str, PublishOutcome] = {}
    messages: list[Send] = []
    for pk, group in groups.items():
        if group.entries or group.dues:
            current = isinstance(answers[pk], Done)
        else:
            current = pk not in asked or turn_of(answers[pk]) == turn_of(ledger.items[pk])
        if current:
            for name, send in group.sends:
                messages.append(send)
                if group.outcomes[name] == "published":
                    work.sent_bytes[name] += len(send.message.key or b"") + len(send.message.value or b"")
        outcomes |= group.outcomes if current else dict.fromkeys(group.outcomes, "contended")
    if messages:
        yield tuple(messages)
    return outcomes


class _Unfit(NamedTuple):
    """Why a document does not fit its topic."""

    code: ReasonCode
    reason: str


def _unfit(context: PublishContext, document: EncodedDocument, key: bytes, seq: int) -> _Unfit | None:
    """Why the document does not fit its topic; None where it does."""
    if document.misfit:
        named = f"the document of product {context.product}"
        return _Unfit("document-misfit", f"{named} does not fit its Avro schema: {document.misfit}")
    if not document.headers and len(key) + len(document.value or b"") + context.envelope <= context.limit:
        return None
    size = message_bytes(context.message(key, document.value, seq, document.headers))
    if size <= context.limit:
        return None
    raised = (
        "" if context.limit >= MAX_MESSAGE_BYTES else f"raise its max.message.bytes (to {MAX_MESSAGE_BYTES:,}), or "
    )
    return _Unfit(
        "document-too-large",
        f"the document of product {context.product} takes {size:,} bytes, and topic {context.topic} takes messages of "
        f"{context.limit:,}: {raised}give its lists a limit",
    )


def _letter(
    task: PublishTask, context: PublishContext, root: str, key: bytes, entry: LedgerEntry, unfit: _Unfit
) -> Rejected:
    """The dead letter in place of a document: the key of its message, no value. A record has an offset, a document has its
    sequence. In place of a partition the letter has a hash of the root. Its entity is that of the root."""
    record = Record(
        topic=context.topic,
        partition=crc32(root.encode()),
        offset=entry.seq,
        epoch=entry.version,
        key=key,
        value=None,
    )
    return Rejected(record=record, reason=unfit.reason, code=unfit.code, entity=task.entity)


def unpublishable(error: Exception, root: str | None) -> Unpublishable:
    """Why a document cannot go out; names the root if it is given. The runner raises the error of a request outside of the step,
    so such an error is never taken for a bad document."""
    named = "a document (log_values = true names it)" if root is None else f"the document of {root}"
    cause = type(error).__name__ + ("" if root is None else f": {error}")
    return Unpublishable(f"{named} cannot be made ({cause}): correct the product or the row")


def invalidate(
    ledger: LedgerPlace, root: str, key: str, mark: Mark, earlier: int = 0, shown: Placed | None = None
) -> Step[None]:
    """Invalidates a product's entry of a root, so that the next document goes out even if it is equal. `key`: the key of its
    message; `earlier`: as in `PublishContext`; `shown`: the partitions that show a document, where another one than that of the
    key may do so. A crash after this costs at most one needless message."""
    at = group_key(ledger, root)
    while True:
        (item,) = yield (at,)
        entry = read_entry(item, ledger.number, earlier)
        invalidated = LedgerEntry(seq=entry.seq + 1, hash=INVALIDATED, mark=mark)
        placed = {ledger.number: _with_places(shown, item, ledger.number)} if shown else {}
        (outcome,) = yield (reserve(at, item, {ledger.number: invalidated}, key, placed=placed),)
        if isinstance(outcome, Done):
            return


def _with_places(shown: Placed, item: Item | None, number: int) -> Placed:
    """The partitions with those that the ledger has."""
    known = read_places(item, number, shown.topic) or ()
    return Placed(shown.topic, tuple(dict.fromkeys((*known, *shown.partitions))))


def _read_ledger(task: PublishTask, contexts: Sequence[PublishContext], root: str) -> Step[_RootLedger]:
    keys = [Key(pk, root) for pk in dict.fromkeys([context.partition for context in contexts])]
    erased = may_be_erased(task.erased, task.entity, root)
    sure = task.consistent or erased or root in task.contended
    notes = (erasure_key(task.entity, root),) if erased else ()
    answers = yield (*(keys if sure else map(WeakKey, keys)), *notes)
    items = {key.pk: item for key, item in zip(keys, answers, strict=False)}
    return _RootLedger(items, read_erasure(answers[-1]).sequences if erased else {}, sure)


def _acknowledged(task: PublishTask, entry: LedgerEntry) -> Step[bool]:
    if entry.mark is None:
        return True
    number = entry.mark.run
    run = task.runs.get(number)
    if run is None:
        (item,) = yield (run_key(number),)
        run = read_run(number, item)
    return run.acknowledges(entry.mark)
