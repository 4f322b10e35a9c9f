"""Publishing one root: each request and each answer, from the ledger to the message."""

from dataclasses import replace
from typing import Any

import pytest

from processor.plan.step import Send, Step
from processor.progress.ledger import Mark, Run, hash_of
from processor.records.message import Message
from processor.steps.publish import (
    EncodedDocument,
    PublishContext,
    TooLargeDocument,
    Unpublishable,
    invalidate,
    publish,
)
from statestore.keys import Key
from statestore.store import Absent, Condition, Done, Equals, Item, Refused, Write
from tests.unit.steps.dialogue import dialogue

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


def entry(seq: int, value: bytes | None, *, mark: str, version: int = 4) -> Item:
    """The ledger entry of root 7 after a publisher reserved `value`."""
    key = {"PK": ENTRY.pk, "SK": ENTRY.sk}
    return {**key, "_f": 1, "seq": seq, "hash": hash_of(value), "mark": mark, "key": '{"id":7}', "version": version}


def reservation(seq: int, value: bytes | None, when: Condition) -> Write:
    values = {"_f": 1, "seq": seq, "hash": hash_of(value), "mark": "3.8.1.0", "key": '{"id":7}', "version": 4}
    return Write(ENTRY, values, when=when)


def message(seq: int, value: bytes | None) -> Send:
    headers = (("statestore.product", b"profile"), ("statestore.sequence", b"%d" % seq))
    return Send(Message("profiles", b'{"id":7}', value, headers))


def test_a_first_document_is_reserved_and_sent() -> None:
    outcome = dialogue(
        publishing(ADA),
        [(ENTRY, None)],
        [(ROW, {})],
        [(reservation(1, ADA, Absent()), Done(None))],
        [(message(1, ADA), None)],
    )
    assert outcome == "published"


def test_a_document_that_changed_is_reserved_under_the_sequence_that_the_step_read() -> None:
    before = entry(5, BOB, mark="3.7.1.0")
    outcome = dialogue(
        publishing(ADA),
        [(ENTRY, before)],
        [(ROW, {})],
        [(reservation(6, ADA, Equals("seq", 5)), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_the_ledger_is_read_before_anything_is_assembled() -> None:
    assembled: list[str] = []

    def assemble() -> Step[EncodedDocument]:
        assembled.append("began")
        return document(ADA)

    step = publish(CONTEXT, "7", assemble)
    assert next(step) == (ENTRY,)
    assert assembled == []
    assert step.send((None,)) == (ROW,)
    assert assembled == ["began"]


def test_an_equal_document_that_the_broker_acknowledged_is_not_sent_again() -> None:
    outcome = dialogue(publishing(ADA), [(ENTRY, entry(5, ADA, mark="3.7.1.0"))], [(ROW, {})])
    assert outcome == "unchanged"


@pytest.mark.parametrize(
    ("mark", "version"),
    [("3.8.1.0", 4), ("3.7.1.1", 4), ("3.7.1.0", 3)],
    ids=["a round that did not end", "an attempt without a commit", "another version of the product"],
)
def test_an_equal_document_that_nobody_acknowledged_or_of_another_version_is_sent_again(
    mark: str, version: int
) -> None:
    before = entry(5, ADA, mark=mark, version=version)
    outcome = dialogue(
        publishing(ADA),
        [(ENTRY, before)],
        [(ROW, {})],
        [(reservation(6, ADA, Equals("seq", 5)), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_a_root_without_a_document_gets_no_tombstone_for_another_version_of_the_product() -> None:
    before = entry(6, None, mark="3.7.1.0", version=3)
    assert dialogue(publishing(None), [(ENTRY, before)], [(ROW, None)]) == "unchanged"


EARLIER_RUN = Key("RUNS", "0000000002")


@pytest.mark.parametrize("run", [{"through": 5}, {"through": 9, "attempts": [[5, 0, 1]]}])
def test_the_step_reads_how_far_an_earlier_run_came(run: Item) -> None:
    """Round 5 of run 2 ended. Another lane of it, lane 0, committed its second attempt."""
    before = entry(5, ADA, mark="2.5.1.0")
    assert dialogue(publishing(ADA), [(ENTRY, before)], [(ROW, {})], [(EARLIER_RUN, run)]) == "unchanged"


@pytest.mark.parametrize("run", [None, {"through": 4}, {"through": 9, "attempts": [[5, 1, 1]]}])
def test_an_equal_document_that_an_earlier_run_did_not_commit_is_sent_again(run: Item | None) -> None:
    """Run 2 ended no round, or ended with round 4, or committed the second attempt of this lane."""
    before = entry(5, ADA, mark="2.5.1.0")
    outcome = dialogue(
        publishing(ADA),
        [(ENTRY, before)],
        [(ROW, {})],
        [(EARLIER_RUN, run)],
        [(reservation(6, ADA, Equals("seq", 5)), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_a_document_that_differs_needs_no_look_at_the_earlier_run() -> None:
    before = entry(5, BOB, mark="2.5.1.0")
    outcome = dialogue(
        publishing(ADA),
        [(ENTRY, before)],
        [(ROW, {})],
        [(reservation(6, ADA, Equals("seq", 5)), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_a_refused_reservation_sends_nothing() -> None:
    meanwhile = entry(6, BOB, mark="3.8.0.0")
    outcome = dialogue(
        publishing(ADA),
        [(ENTRY, entry(5, BOB, mark="3.7.1.0"))],
        [(ROW, {})],
        [(reservation(6, ADA, Equals("seq", 5)), Refused(meanwhile))],
    )
    assert outcome == "contended"


def test_a_document_that_cannot_be_made_reserves_nothing() -> None:
    def impossible() -> Step[EncodedDocument]:
        yield (ROW,)
        raise ValueError("no Bobs")

    for context, cause in (
        (CONTEXT, "a document (log_values = true names it) cannot be made (ValueError)"),
        (replace(CONTEXT, names_roots=True), "the document of 7 cannot be made (ValueError: no Bobs)"),
    ):
        outcome = dialogue(publish(context, "7", impossible), [(ENTRY, None)], [(ROW, {})])
        assert outcome == Unpublishable(f"{cause}: correct the product or the row")


LIMITED = replace(CONTEXT, limit=200, rejects_topic="rejects")
LONG = b'{"name":"%s"}' % (b"A" * 200)
REASON = (
    "the document of product profile takes 381 bytes, and topic profiles takes messages of 200: raise its max.message.bytes "
    "(to 8,388,608), or give its lists a limit"
)


def letter(seq: int) -> Send:
    facts = {"reason": REASON, "code": "document-too-large"}
    facts |= {"topic": "profiles", "partition": "1790921346", "offset": f"{seq}"}
    facts |= {"epoch": "4", "timestamp": "0"}
    headers = tuple((f"statestore.reject.{name}", text.encode()) for name, text in facts.items())
    return Send(Message("rejects", b'{"id":7}', None, headers))


def marked(seq: int, value: bytes, *, mark: str) -> Item:
    """The ledger entry of root 7 after a dead letter went out in place of `value`."""
    return {**entry(seq, value, mark=mark), "hash": f"large:{hash_of(value)}"}


def test_a_dead_letter_goes_out_in_place_of_a_document_larger_than_its_topic_takes() -> None:
    before = entry(5, BOB, mark="3.7.1.0")
    reserved = reservation(6, LONG, Equals("seq", 5))
    outcome = dialogue(
        publish(LIMITED, "7", lambda: document(LONG)),
        [(ENTRY, before)],
        [(ROW, {})],
        [(reserved._replace(set={**reserved.set, "hash": f"large:{hash_of(LONG)}"}), Done(before))],
        [(letter(6), None)],
    )
    assert outcome == TooLargeDocument(REASON, new=True)


def test_the_same_too_large_document_gets_no_second_dead_letter() -> None:
    outcome = dialogue(
        publish(LIMITED, "7", lambda: document(LONG)), [(ENTRY, marked(6, LONG, mark="3.7.1.0"))], [(ROW, {})]
    )
    assert outcome == TooLargeDocument(REASON, new=False)


def test_a_document_goes_out_once_its_topic_takes_it() -> None:
    before = marked(6, LONG, mark="3.7.1.0")
    outcome = dialogue(
        publish(replace(LIMITED, limit=400), "7", lambda: document(LONG)),
        [(ENTRY, before)],
        [(ROW, {})],
        [(reservation(7, LONG, Equals("seq", 6)), Done(before))],
        [(message(7, LONG), None)],
    )
    assert outcome == "published"


def test_a_root_that_is_gone_gets_a_tombstone_under_the_key_of_its_last_message() -> None:
    before = entry(5, ADA, mark="3.7.1.0")
    outcome = dialogue(
        publishing(None),
        [(ENTRY, before)],
        [(ROW, None)],
        [(reservation(6, None, Equals("seq", 5)), Done(before))],
        [(message(6, None), None)],
    )
    assert outcome == "published"


def test_a_root_that_never_had_a_document_gets_no_tombstone() -> None:
    assert dialogue(publishing(None), [(ENTRY, None)], [(ROW, None)]) == "unchanged"


def test_a_root_that_is_still_gone_gets_no_second_tombstone() -> None:
    assert dialogue(publishing(None), [(ENTRY, entry(6, None, mark="3.7.1.0"))], [(ROW, None)]) == "unchanged"


def test_invalidating_an_entry_begins_again_after_a_refusal() -> None:
    mark = Mark(run=3, round=8, lane=0, attempt=0)
    invalidated = {"_f": 1, "seq": 6, "hash": "?", "mark": "3.8.0.0", "key": '{"id":7}', "version": 0}
    five, six = entry(5, ADA, mark="3.7.1.0"), entry(6, BOB, mark="3.8.1.0")
    dialogue(
        invalidate("profile", "7", '{"id":7}', mark),
        [(ENTRY, five)],
        [(Write(ENTRY, invalidated, when=Equals("seq", 5)), Refused(six))],
        [(ENTRY, six)],
        [(Write(ENTRY, {**invalidated, "seq": 7}, when=Equals("seq", 6)), Done(six))],
    )


def test_an_invalidated_entry_equals_no_document() -> None:
    before = {**entry(6, ADA, mark="3.8.0.0"), "hash": "?"}
    context = replace(CONTEXT, runs={3: Run(number=3, through=8)})
    outcome = dialogue(
        publish(context, "7", lambda: document(None)),
        [(ENTRY, before)],
        [(ROW, None)],
        [(reservation(7, None, Equals("seq", 6)), Done(before))],
        [(message(7, None), None)],
    )
    assert outcome == "published"
