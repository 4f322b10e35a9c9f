"""Root 7, whose documents the tests of publishing send: the documents, the ledger items and the messages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from processor.engine.plan.step import Send, Step, WeakKey
from processor.engine.protocol.ledger import NO_DOCUMENT, LedgerEntry, Mark, Run, hash_of, pack
from processor.engine.protocol.publish import Documents, PublishContext, PublishTask, Unpublishable, publish
from processor.language.product.avro import EncodedDocument
from processor.values.record import Message
from statestore.keys import Key
from statestore.store import Absent, Equals, Item, Write

ENTRY = Key("LEDGER#user#0", "7")
WEAK = WeakKey(ENTRY)
ROW = Key("TABLE#user", "7")
ADA = b'{"name":"Ada"}'
BOB = b'{"name":"Bob"}'
KEY = '{"id":7}'
TASK = PublishTask(entity="user", mark=Mark(run=3, round=8, lane=1, attempt=0), runs={3: Run(number=3, through=7)})
CONTEXT = PublishContext(
    topic="profiles",
    product="profile",
    partition=ENTRY.pk,
    number=0,
    version=4,
    headers=(("statestore.product", b"profile"),),
)


def context(number: int) -> PublishContext:
    """Another product of the root, by its ledger number."""
    name = f"p{number}"
    partition, headers = f"LEDGER#user#{number // 20}", (("statestore.product", name.encode()),)
    return replace(CONTEXT, topic=f"of {name}", product=name, partition=partition, number=number, headers=headers)


def encoded(value: bytes | None) -> EncodedDocument:
    return EncodedDocument(key="" if value is None else KEY, value=value)


def documents(values: Mapping[str, bytes | EncodedDocument | Unpublishable | None]) -> Step[Documents]:
    """The step that assembles root 7: one read, then a document of each product."""
    yield (ROW,)
    return {n: encoded(value) if value is None or isinstance(value, bytes) else value for n, value in values.items()}


def publishing(value: bytes | EncodedDocument | Unpublishable | None, context: PublishContext = CONTEXT) -> Step[Any]:
    """Publishes the document of one product; returns its outcome."""
    outcomes = yield from publish(TASK, [context], "7", lambda: documents({context.product: value}))
    assert outcomes.keys() == {context.product}
    return outcomes[context.product]


def entry(seq: int, value: bytes | None, *, mark: str, version: int = 4, topic: str = "profiles") -> Item:
    """The ledger item of root 7 after a publisher reserved `value` for the first product. Its turn is ten times the sequence."""
    return item(seq * 10, {0: reserved(seq, value, mark=mark, version=version, topic=topic)})


def item(turn: int, entries: Mapping[int, LedgerEntry], at: Key = ENTRY) -> Item:
    """A ledger item of root 7."""
    return {"PK": at.pk, "SK": at.sk, **_values(turn, entries)}


def reserved(
    seq: int, value: bytes | None, *, mark: str = "3.8.1.0", version: int = 4, topic: str = "profiles"
) -> LedgerEntry:
    """An entry of the ledger. `mark`: its run, round, lane and attempt."""
    run, round_, lane, attempt = map(int, mark.split("."))
    digest = hash_of(value)
    return LedgerEntry(seq, digest, Mark(run, round_, lane, attempt), version, topic if digest == NO_DOCUMENT else "")


def reservation(seq: int, value: bytes | None, seen: Item | None) -> Write:
    """The write that reserves a message of the first product."""
    return reservations({0: reserved(seq, value)}, seen)


def reservations(entries: Mapping[int, LedgerEntry], seen: Item | None, at: Key = ENTRY) -> Write:
    """The write that reserves messages of a group."""
    turn = 0 if seen is None else seen["turn"]
    return Write(at, _values(turn + 1, entries), when=Absent() if seen is None else Equals("turn", turn))


def message(seq: int, value: bytes | None, context: PublishContext = CONTEXT) -> Send:
    headers = (*context.headers, ("statestore.sequence", b"%d" % seq))
    return Send(Message(context.topic, KEY.encode(), value, headers))


def sends(*messages: Send) -> Sequence[tuple[Send, None]]:
    return [(one, None) for one in messages]


def _values(turn: int, entries: Mapping[int, LedgerEntry]) -> dict[str, Any]:
    return {"_f": 1, "turn": turn, "key": KEY, **{f"e{number}": pack(one) for number, one in entries.items()}}
