"""Publishes the document of one root, once, fenced.

1. Read the ledger, before assembling.
2. Assemble. (The caller passes the step: steps do not know each other.)
3. Stop only if the ledger has the same hash, of the same version of the product, and the broker acknowledged it.
4. Reserve the next sequence with the value's hash, under the sequence read. Refused: start again at the ledger.
5. Send. The end of the round, once the broker acknowledged all messages, acknowledges the reservation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from processor.plan.step import Send, Step
from processor.progress.ledger import (
    INVALIDATED,
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
from processor.records.message import MAX_MESSAGE_BYTES, Message
from statestore.store import Done


class Unpublishable(NamedTuple):
    """A document that cannot be published, and the reason."""

    reason: str


PublishOutcome = Literal["published", "unchanged", "contended"] | Unpublishable


class EncodedDocument(NamedTuple):
    """A document as it goes out: the message's key and value; value None where there is no document."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishContext:
    """The facts that all messages of a product share in one task. `version`: the product's. `runs`: how far the known
    runs came, this task's own among them. `earlier`: the highest sequence of the topic before the table's first message.
    `names_roots`: whether the reason of a failure may show values of rows."""

    topic: str
    product: str
    version: int
    headers: tuple[tuple[str, bytes], ...]
    mark: Mark
    runs: Mapping[int, Run]
    earlier: int = 0
    names_roots: bool = False


def publish(context: PublishContext, root: str, assembled: Callable[[], Step[EncodedDocument]]) -> Step[PublishOutcome]:
    """Publishes one root's document. `contended`: another publisher reserved meanwhile, so the caller tries again with
    fresh reads.
    Unpublishable: the step reserved nothing."""
    (item,) = yield (entry_key(context.product, root),)
    entry = read_entry(item, context.earlier)
    document = yield from _checked(assembled(), root if context.names_roots else None)
    if isinstance(document, Unpublishable):
        return document
    digest = hash_of(document.value)
    if entry.shows(digest, context.version) and (yield from _acknowledged(context, entry)):
        return "unchanged"
    key = document.key or entry.key
    reserved = LedgerEntry(entry.seq + 1, digest, context.mark, key, context.version)
    (outcome,) = yield (reserve(context.product, root, entry, reserved),)
    if not isinstance(outcome, Done):
        return "contended"
    headers = (*context.headers, ("statestore.sequence", b"%d" % reserved.seq))
    message = Message(context.topic, key.encode(), document.value, headers)
    yield (Send(message),)
    return "published"


def _checked(assembled: Step[EncodedDocument], root: str | None) -> Step[EncodedDocument | Unpublishable]:
    """The document, or the reason why it cannot go out, which names the root if it is given. The runner raises the error of a
    request outside of the step, so such an error is never taken for a bad document."""
    named = "a document (log_values = true names it)" if root is None else f"the document of {root}"
    try:
        document = yield from assembled
    except Exception as error:
        cause = type(error).__name__ + ("" if root is None else f": {error}")
        return Unpublishable(f"{named} cannot be made ({cause}): correct the product or the row")
    if document.value is not None and len(document.value) > MAX_MESSAGE_BYTES:
        size = f"{len(document.value):,} bytes, more than the {MAX_MESSAGE_BYTES:,} of a message"
        return Unpublishable(f"{named} has {size}: give its lists a limit")
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


def _acknowledged(context: PublishContext, entry: LedgerEntry) -> Step[bool]:
    if entry.mark is None:
        return True
    number = entry.mark.run
    run = context.runs.get(number)
    if run is None:
        (item,) = yield (run_key(number),)
        run = read_run(number, item)
    return run.acknowledges(entry.mark)
