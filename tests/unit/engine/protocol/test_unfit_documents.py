"""Publishing a document that does not fit its topic: a dead letter goes out in its place, and the document once it fits."""

from dataclasses import replace

from processor.engine.plan.step import Send
from processor.engine.protocol.ledger import UNFIT, LedgerEntry
from processor.engine.protocol.publish import UnfitDocument
from processor.language.product.avro import EncodedDocument
from processor.values.dead_letters import RefusedBy, rejected_record
from processor.values.record import Message, Rejected
from statestore.store import Done, Item
from tests.unit.engine.protocol.dialogue import dialogue
from tests.unit.engine.protocol.published_root import (
    ADA,
    BOB,
    CONTEXT,
    ENTRY,
    KEY,
    ROW,
    WEAK,
    entry,
    item,
    message,
    publishing,
    reservation,
    reservations,
    reserved,
)

LIMITED = replace(CONTEXT, limit=200, dead_letter_topic="rejects", refused_by=RefusedBy("1.2.3", 9))
LONG = b'{"name":"%s"}' % (b"A" * 200)
REASON = (
    "the document of product profile takes 381 bytes, and topic profiles takes messages of 200: raise its max.message.bytes "
    "(to 8,388,608), or give its lists a limit"
)


def letter(seq: int, code: str = "document-too-large", reason: str = REASON) -> Send:
    facts = {"reason": reason, "code": code}
    facts |= {"topic": "profiles", "partition": "1790921346", "offset": f"{seq}"}
    facts |= {"epoch": "4", "timestamp": "0", "entity": "user", "release": "1.2.3", "registry_version": "9"}
    headers = tuple((f"statestore.reject.{name}", text.encode()) for name, text in facts.items())
    return Send(Message("rejects", b'{"id":7}', None, headers))


def kept(sent: Send) -> Rejected:
    """The refused document that a dead letter keeps."""
    return rejected_record(sent.message)


def marked(seq: int, value: bytes, *, mark: str) -> Item:
    """The ledger item of root 7 after a dead letter went out in place of `value`."""
    return item(seq * 10, {0: unfit(seq, value, mark)})


def unfit(seq: int, value: bytes, mark: str = "3.8.1.0") -> LedgerEntry:
    entry = reserved(seq, value, mark=mark)
    return entry._replace(hash=UNFIT + entry.hash)


def test_a_dead_letter_goes_out_in_place_of_a_document_larger_than_its_topic_takes() -> None:
    before = entry(5, BOB, mark="3.7.1.0")
    outcome = dialogue(
        publishing(LONG, LIMITED),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservations({0: unfit(6, LONG)}, before), Done(before))],
        [(letter(6), None)],
    )
    assert outcome == UnfitDocument(REASON, kept(letter(6)))


def test_the_same_too_large_document_gets_no_second_dead_letter() -> None:
    before = marked(6, LONG, mark="3.7.1.0")
    outcome = dialogue(publishing(LONG, LIMITED), [(WEAK, before)], [(ROW, {})], [(ENTRY, before)])
    assert outcome == UnfitDocument(REASON, None)


MISFIT = "age: expected int, found a number"


MISFIT_DOCUMENT = EncodedDocument(key=KEY, value=ADA, misfit=MISFIT)
"""A document whose age is beyond its Avro type."""


def test_a_dead_letter_goes_out_in_place_of_a_document_that_avro_does_not_hold() -> None:
    before = entry(5, BOB, mark="3.7.1.0")
    reason = f"the document of product profile does not fit its Avro schema: {MISFIT}"
    outcome = dialogue(
        publishing(MISFIT_DOCUMENT, LIMITED),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservations({0: unfit(6, ADA)}, before), Done(before))],
        [(letter(6, "document-misfit", reason), None)],
    )
    assert outcome == UnfitDocument(reason, kept(letter(6, "document-misfit", reason)))
    now = marked(6, ADA, mark="3.7.1.0")
    again = dialogue(publishing(MISFIT_DOCUMENT, LIMITED), [(WEAK, now)], [(ROW, {})], [(ENTRY, now)])
    assert again == UnfitDocument(reason, None)


def test_a_document_goes_out_once_its_topic_takes_it() -> None:
    before = marked(6, LONG, mark="3.7.1.0")
    outcome = dialogue(
        publishing(LONG, replace(LIMITED, limit=400)),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservation(7, LONG, before), Done(before))],
        [(message(7, LONG), None)],
    )
    assert outcome == "published"
