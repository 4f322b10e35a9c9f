"""Publishes the document of one root, once, fenced.

1. Read the ledger, before anything is assembled.
2. Assemble (a step handed in: steps do not know each other).
3. Nothing to do only if the same value stands in the ledger, acknowledged.
4. Reserve the next sequence with the value's hash, under the sequence read. Refused: start again at the ledger, afresh.
5. Send. The end of the round, once the broker acknowledged all, is the mark of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from processor.model.ledger import (
    DOUBTED,
    Entry,
    Mark,
    Run,
    entry_key,
    hash_of,
    read_entry,
    read_run,
    reserve,
    run_key,
)
from processor.model.step import MAX_MESSAGE_BYTES, Message, Send, Step
from statestore.store import Done

Published = Literal["published", "unchanged", "contended"]


class Failed(NamedTuple):
    """A document that cannot be published, and why."""

    reason: str


Result = Published | Failed


class Body(NamedTuple):
    """A document as it goes out: the message's key and value; value None where there is no document."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    """What all messages of a task share. `runs`: how far the runs known here came, this one's own among them."""

    topic: str
    product: str
    headers: tuple[tuple[str, bytes], ...]
    mark: Mark
    runs: Mapping[int, Run]


def publish(sender: Sender, root: str, assembled: Callable[[], Step[Body]]) -> Step[Result]:
    """Publishes one root's document. `contended`: another publisher reserved meanwhile; to be tried again with fresh reads.
    Failed: nothing was reserved."""
    (item,) = yield (entry_key(sender.product, root),)
    entry = read_entry(item)
    body = yield from _checked(assembled(), root)
    if isinstance(body, Failed):
        return body
    digest = hash_of(body.value)
    if entry.hash == digest and (yield from _acknowledged(sender, entry)):
        return "unchanged"
    key = body.key or entry.key
    reserved = Entry(entry.seq + 1, digest, sender.mark, key)
    (outcome,) = yield (reserve(sender.product, root, entry, reserved),)
    if not isinstance(outcome, Done):
        return "contended"
    headers = (*sender.headers, ("statestore.sequence", b"%d" % reserved.seq))
    message = Message(sender.topic, key.encode(), body.value, headers)
    yield (Send(message),)
    return "published"


def _checked(assembled: Step[Body], root: str) -> Step[Body | Failed]:
    """The document, or why it cannot go out. What a request fails of is raised outside of the step, and is never taken for it."""
    try:
        body = yield from assembled
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        return Failed(f"the document of {root} cannot be made ({why}): correct the product or the row")
    if body.value is not None and len(body.value) > MAX_MESSAGE_BYTES:
        size = f"{len(body.value):,} bytes, more than the {MAX_MESSAGE_BYTES:,} of a message"
        return Failed(f"the document of {root} has {size}: give its lists a limit")
    return body


def doubt(product: str, root: str, key: str, mark: Mark) -> Step[None]:
    """Makes the ledger forget which document was published, so that the next one goes out whatever it is; `key`: of its
    message. A crash after this leaves nothing worse than one message too many."""
    while True:
        (item,) = yield (entry_key(product, root),)
        entry = read_entry(item)
        doubted = Entry(seq=entry.seq + 1, hash=DOUBTED, mark=mark, key=key)
        (outcome,) = yield (reserve(product, root, entry, doubted),)
        if isinstance(outcome, Done):
            return


def _acknowledged(sender: Sender, entry: Entry) -> Step[bool]:
    if entry.mark is None:
        return True
    number = entry.mark.run
    run = sender.runs.get(number)
    if run is None:
        (item,) = yield (run_key(number),)
        run = read_run(number, item)
    return run.kept(entry.mark)
