"""Publishes the document of one root, once, fenced.

1. Read the ledger, before assembling.
2. Assemble. (The caller passes the step: steps do not know each other.)
3. Stop only if the ledger has the same hash, of the same version and topic of the product, and the broker acknowledged it.
   A root whose key no message ever had needs no tombstone.
4. Reserve the next sequence with the value's hash, under the sequence read. Refused: start again at the ledger.
5. Send. The end of the round, once the broker acknowledged all messages, acknowledges the reservation.

A document that does not fit its topic, because it is too large or has a value that its Avro type does not hold, goes the same
way, as a dead letter: the ledger has another hash for it, so the document goes out as soon as it fits.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from zlib import crc32

from processor.plan.step import Send, Step
from processor.progress.erasures import Erased, erasure_key, may_be_erased, read_erasure
from processor.progress.ledger import (
    INVALIDATED,
    UNFIT,
    LedgerEntry,
    Mark,
    Run,
    entry_key,
    hash_of,
    read_entry,
    read_run,
    reserve,
    run_key,
)
from processor.records.dead_letters import RefusedBy, message_bytes, reject_message
from processor.records.message import MAX_MESSAGE_BYTES, Message
from processor.records.record import Record, Rejected
from processor.records.reject_reasons import ReasonCode
from statestore.store import Done


class Unpublishable(NamedTuple):
    """A document that cannot be published, and the reason."""

    reason: str


class UnfitDocument(NamedTuple):
    """A document that does not fit its topic, and the reason of its dead letter. `new`: the dead letter went out now."""

    reason: str
    new: bool


PublishOutcome = Literal["published", "unchanged", "contended"] | Unpublishable | UnfitDocument


class EncodedDocument(NamedTuple):
    """A document as it goes out: the message's key and value; value None where there is no document. `misfit`: why Avro does not
    hold the document, without values of rows; then the value is JSON, and does not go out."""

    key: str
    value: bytes | None
    misfit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishContext:
    """The facts that all messages of a product share in one task. `version`: the product's. `runs`: how far the known
    runs came, this task's own among them. `earlier`: the highest sequence of the topic before the table's first message.
    `limit`: the most bytes of a message of the topic. The dead letter of a document that does not fit goes to
    `rejects_topic`, whose messages have at most `letter_bytes`, and names `refused_by`. `names_roots`: whether the reason
    of a failure may show values of rows. `entity`: of the roots; `erased`: of which rows."""

    topic: str
    product: str
    version: int
    headers: tuple[tuple[str, bytes], ...]
    mark: Mark
    runs: Mapping[int, Run]
    earlier: int = 0
    limit: int = MAX_MESSAGE_BYTES
    rejects_topic: str = ""
    letter_bytes: int | None = None
    refused_by: RefusedBy | None = None
    names_roots: bool = False
    entity: str = ""
    erased: Erased = frozenset()


def publish(context: PublishContext, root: str, assembled: Callable[[], Step[EncodedDocument]]) -> Step[PublishOutcome]:
    """Publishes one root's document. `contended`: another publisher reserved meanwhile, so the caller tries again with
    fresh reads.
    Unpublishable: the step reserved nothing. UnfitDocument: the ledger says that a dead letter took its place."""
    entry = yield from _entry(context, root)
    document = yield from _checked(assembled(), root if context.names_roots else None)
    if isinstance(document, Unpublishable):
        return document
    key = document.key or entry.key
    if not key:
        return "unchanged"
    headers = (*context.headers, ("statestore.sequence", b"%d" % (entry.seq + 1)))
    message = Message(context.topic, key.encode(), document.value, headers)
    unfit = _unfit(context, document, message)
    digest = (UNFIT if unfit else "") + hash_of(document.value)
    if entry.shows(digest, context.version, context.topic) and (yield from _acknowledged(context, entry)):
        return UnfitDocument(unfit.reason, new=False) if unfit else "unchanged"
    reserved = LedgerEntry(entry.seq + 1, digest, context.mark, key, context.version, context.topic)
    (outcome,) = yield (reserve(context.product, root, entry, reserved),)
    if not isinstance(outcome, Done):
        return "contended"
    if unfit:
        yield (Send(_letter(context, root, reserved, unfit)),)
        return UnfitDocument(unfit.reason, new=True)
    yield (Send(message),)
    return "published"


class _Unfit(NamedTuple):
    """Why a document does not fit its topic."""

    code: ReasonCode
    reason: str


def _unfit(context: PublishContext, document: EncodedDocument, message: Message) -> _Unfit | None:
    """Why the document does not fit its topic; None where it does."""
    named = f"the document of product {context.product}"
    if document.misfit:
        return _Unfit("document-misfit", f"{named} does not fit its Avro schema: {document.misfit}")
    size = message_bytes(message)
    if size <= context.limit:
        return None
    raised = (
        "" if context.limit >= MAX_MESSAGE_BYTES else f"raise its max.message.bytes (to {MAX_MESSAGE_BYTES:,}), or "
    )
    return _Unfit(
        "document-too-large",
        f"{named} takes {size:,} bytes, and topic {context.topic} takes messages of {context.limit:,}: {raised}give its lists a "
        "limit",
    )


def _letter(context: PublishContext, root: str, entry: LedgerEntry, unfit: _Unfit) -> Message:
    """The dead letter in place of a document: the key of its message, no value. A record has an offset, a document has its
    sequence. In place of a partition the letter has a hash of the root. Its entity is that of the root."""
    record = Record(
        topic=context.topic,
        partition=crc32(root.encode()),
        offset=entry.seq,
        epoch=entry.version,
        key=entry.key.encode(),
        value=None,
    )
    rejected = Rejected(record=record, reason=unfit.reason, code=unfit.code, entity=context.entity)
    return reject_message(rejected, context.rejects_topic, context.letter_bytes, context.refused_by)


def _checked(assembled: Step[EncodedDocument], root: str | None) -> Step[EncodedDocument | Unpublishable]:
    """The document, or the reason why it cannot go out, which names the root if it is given. The runner raises the error of a
    request outside of the step, so such an error is never taken for a bad document."""
    named = "a document (log_values = true names it)" if root is None else f"the document of {root}"
    try:
        document = yield from assembled
    except Exception as error:
        cause = type(error).__name__ + ("" if root is None else f": {error}")
        return Unpublishable(f"{named} cannot be made ({cause}): correct the product or the row")
    return document


def invalidate(product: str, root: str, key: str, mark: Mark, earlier: int = 0) -> Step[None]:
    """Invalidates a ledger entry, so that the next document of the root goes out even if it is equal. `key`: the key of
    its message; `earlier`: as in `PublishContext`. A crash after this costs at most one needless message."""
    while True:
        (item,) = yield (entry_key(product, root),)
        entry = read_entry(item, earlier)
        invalidated = LedgerEntry(seq=entry.seq + 1, hash=INVALIDATED, mark=mark, key=key)
        (outcome,) = yield (reserve(product, root, entry, invalidated),)
        if isinstance(outcome, Done):
            return


def _entry(context: PublishContext, root: str) -> Step[LedgerEntry]:
    """The ledger's entry. That of an erased root may be gone: then the erasure has the sequence of the tombstone."""
    key = entry_key(context.product, root)
    if not may_be_erased(context.erased, context.entity, root):
        (item,) = yield (key,)
        return read_entry(item, context.earlier)
    item, noted = yield (key, erasure_key(context.entity, root))
    sequence = read_erasure(noted).sequences.get(context.product)
    return LedgerEntry(seq=sequence) if item is None and sequence else read_entry(item, context.earlier)


def _acknowledged(context: PublishContext, entry: LedgerEntry) -> Step[bool]:
    if entry.mark is None:
        return True
    number = entry.mark.run
    run = context.runs.get(number)
    if run is None:
        (item,) = yield (run_key(number),)
        run = read_run(number, item)
    return run.acknowledges(entry.mark)
