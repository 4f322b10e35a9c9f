"""Root 7 of a product, whose document the tests of publishing send: its document, its ledger entry and its message."""

from typing import Any

from processor.plan.step import Send, Step
from processor.progress.ledger import Mark, Run, hash_of
from processor.records.message import Message
from processor.steps.publish import EncodedDocument, PublishContext, publish
from statestore.keys import Key
from statestore.store import Condition, Item, Write

ENTRY = Key("LEDGER#profile", "7")
ROW = Key("TABLE#user", "7")
ADA = b'{"name":"Ada"}'
BOB = b'{"name":"Bob"}'
CONTEXT = PublishContext(
    topic="profiles",
    product="profile",
    version=4,
    headers=(("statestore.product", b"profile"),),
    mark=Mark(run=3, round=8, lane=1, attempt=0),
    runs={3: Run(number=3, through=7)},
)


def document(value: bytes | None) -> Step[EncodedDocument]:
    """The step that assembles root 7: one read, then a document with this value."""
    yield (ROW,)
    return EncodedDocument(key="" if value is None else '{"id":7}', value=value)


def publishing(value: bytes | None) -> Step[Any]:
    return publish(CONTEXT, "7", lambda: document(value))


def entry(seq: int, value: bytes | None, *, mark: str, version: int = 4, topic: str = "profiles") -> Item:
    """The ledger entry of root 7 after a publisher reserved `value`."""
    key = {"PK": ENTRY.pk, "SK": ENTRY.sk}
    values = {"_f": 1, "seq": seq, "hash": hash_of(value), "mark": mark, "key": '{"id":7}'}
    return {**key, **values, "version": version, "topic": topic}


def reservation(seq: int, value: bytes | None, when: Condition) -> Write:
    values = {"_f": 1, "seq": seq, "hash": hash_of(value), "mark": "3.8.1.0", "key": '{"id":7}'}
    return Write(ENTRY, {**values, "version": 4, "topic": "profiles"}, when=when)


def message(seq: int, value: bytes | None) -> Send:
    headers = (("statestore.product", b"profile"), ("statestore.sequence", b"%d" % seq))
    return Send(Message("profiles", b'{"id":7}', value, headers))
