"""Publishing one root: each request and each answer, from the ledger to the message."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.plan import LedgerPlace
from processor.engine.plan.step import Step
from processor.engine.protocol.ledger import INVALIDATED, LedgerEntry, Mark, Run, read_entry
from processor.engine.protocol.publish import Documents, Unpublishable, invalidate, publish, unpublishable
from processor.language.product.avro import EncodedDocument
from processor.values.dead_letters import message_bytes
from statestore.keys import Key
from statestore.store import Done, Item, Refused, Write
from tests.unit.engine.protocol.dialogue import dialogue
from tests.unit.engine.protocol.published_root import (
    ADA,
    BOB,
    CONTEXT,
    ENTRY,
    KEY,
    ROW,
    TASK,
    WEAK,
    documents,
    entry,
    item,
    message,
    publishing,
    reservation,
    reservations,
)


def silent(seen: Item | None, current: Item | None = None) -> list[Any]:
    """The turns of a root whose ledger silences its document: a weak read, the rows, the ledger's item now (`seen` itself without
    `current`)."""
    return [[(WEAK, seen)], [(ROW, {})], [(ENTRY, current or seen)]]


def test_a_first_document_is_reserved_and_sent() -> None:
    outcome = dialogue(
        publishing(ADA),
        [(WEAK, None)],
        [(ROW, {})],
        [(reservation(1, ADA, None), Done(None))],
        [(message(1, ADA), None)],
    )
    assert outcome == "published"


def test_a_document_that_changed_is_reserved_under_the_turn_that_the_step_read() -> None:
    before = entry(5, BOB, mark="3.7.1.0")
    outcome = dialogue(
        publishing(ADA),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservation(6, ADA, before), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_the_ledger_is_read_before_anything_is_assembled() -> None:
    assembled: list[str] = []

    def assemble() -> Step[Documents]:
        assembled.append("began")
        return documents({"profile": ADA})

    step = publish(TASK, [CONTEXT], "7", assemble)
    assert next(step) == (WEAK,)
    assert assembled == []
    assert step.send((None,)) == (ROW,)
    assert assembled == ["began"]


def test_an_equal_document_that_the_broker_acknowledged_is_not_sent_again() -> None:
    outcome = dialogue(publishing(ADA), *silent(entry(5, ADA, mark="3.7.1.0")))
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
        [(WEAK, before)],
        [(ROW, {})],
        [(reservation(6, ADA, before), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_a_root_without_a_document_gets_no_tombstone_for_another_version_of_the_product() -> None:
    before = entry(6, None, mark="3.7.1.0", version=3)
    assert dialogue(publishing(None), *silent(before)) == "unchanged"


def test_a_root_without_a_document_gets_a_tombstone_in_each_topic_that_its_product_changes_to() -> None:
    """The other topic may show a document from the time before."""
    before = entry(6, None, mark="3.7.1.0", version=3, topic="others")
    outcome = dialogue(
        publishing(None),
        [(WEAK, before)],
        [(ROW, None)],
        [(reservation(7, None, before), Done(before))],
        [(message(7, None), None)],
    )
    assert outcome == "published"


EARLIER_RUN = Key("RUNS", "0000000002")


@pytest.mark.parametrize("run", [{"through": 5}, {"through": 9, "attempts": [[5, 0, 1]]}])
def test_the_step_reads_how_far_an_earlier_run_came(run: Item) -> None:
    """Round 5 of run 2 ended. Another lane of it, lane 0, committed its second attempt."""
    before = entry(5, ADA, mark="2.5.1.0")
    read, assembled, again = silent(before)
    assert dialogue(publishing(ADA), read, assembled, [(EARLIER_RUN, run)], again) == "unchanged"


@pytest.mark.parametrize("run", [None, {"through": 4}, {"through": 9, "attempts": [[5, 1, 1]]}])
def test_an_equal_document_that_an_earlier_run_did_not_commit_is_sent_again(run: Item | None) -> None:
    """Run 2 ended no round, or ended with round 4, or committed the second attempt of this lane."""
    before = entry(5, ADA, mark="2.5.1.0")
    outcome = dialogue(
        publishing(ADA),
        [(WEAK, before)],
        [(ROW, {})],
        [(EARLIER_RUN, run)],
        [(reservation(6, ADA, before), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_a_document_that_differs_needs_no_look_at_the_earlier_run() -> None:
    before = entry(5, BOB, mark="2.5.1.0")
    outcome = dialogue(
        publishing(ADA),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservation(6, ADA, before), Done(before))],
        [(message(6, ADA), None)],
    )
    assert outcome == "published"


def test_a_refused_reservation_sends_nothing() -> None:
    before, meanwhile = entry(5, BOB, mark="3.7.1.0"), entry(6, BOB, mark="3.8.0.0")
    outcome = dialogue(
        publishing(ADA),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservation(6, ADA, before), Refused(meanwhile))],
    )
    assert outcome == "contended"


def test_a_weak_read_of_an_older_item_silences_no_document() -> None:
    """The broker has Bob since then."""
    before, meanwhile = entry(5, ADA, mark="3.6.1.0"), entry(6, BOB, mark="3.7.1.0")
    assert dialogue(publishing(ADA), *silent(before, meanwhile)) == "contended"
    assert dialogue(publishing(None), *silent(None, meanwhile)) == "contended"


def test_the_ledger_of_a_contended_root_is_read_strongly_and_once() -> None:
    before = entry(5, ADA, mark="3.7.1.0")
    for task in (replace(TASK, contended={"7"}), replace(TASK, consistent=True)):
        step = publish(task, [CONTEXT], "7", lambda: documents({"profile": ADA}))
        assert dialogue(step, [(ENTRY, before)], [(ROW, {})]) == {"profile": "unchanged"}


def test_a_document_that_cannot_be_made_reserves_nothing() -> None:
    reason = Unpublishable("no Bobs")
    assert dialogue(publishing(reason), [(WEAK, None)], [(ROW, {})]) == reason


def test_a_root_that_is_gone_gets_a_tombstone_under_the_key_of_its_last_message() -> None:
    before = entry(5, ADA, mark="3.7.1.0")
    outcome = dialogue(
        publishing(None),
        [(WEAK, before)],
        [(ROW, None)],
        [(reservation(6, None, before), Done(before))],
        [(message(6, None), None)],
    )
    assert outcome == "published"


def test_a_root_that_never_had_a_document_gets_no_tombstone() -> None:
    assert dialogue(publishing(None), *silent(None)) == "unchanged"


def test_a_root_without_a_known_key_gets_no_tombstone_in_a_topic_with_earlier_messages() -> None:
    step = publishing(None, replace(CONTEXT, earlier=9))
    assert dialogue(step, *silent(None)) == "unchanged"


def test_an_erased_root_whose_entry_keeps_no_key_gets_no_tombstone_in_another_topic() -> None:
    before = {**entry(6, None, mark="3.7.1.0", version=3, topic="others"), "key": "", "ttl": 1}
    assert dialogue(publishing(None), *silent(before)) == "unchanged"


def test_a_root_that_is_still_gone_gets_no_second_tombstone() -> None:
    assert dialogue(publishing(None), *silent(entry(6, None, mark="3.7.1.0"))) == "unchanged"


def test_invalidating_an_entry_begins_again_after_a_refusal() -> None:
    mark = Mark(run=3, round=8, lane=0, attempt=0)
    five, six = entry(5, ADA, mark="3.7.1.0"), entry(6, BOB, mark="3.8.1.0")
    dialogue(
        invalidate(LedgerPlace("user", 0), "7", KEY, mark),
        [(ENTRY, five)],
        [(reservations({0: invalid(6)}, five), Refused(six))],
        [(ENTRY, six)],
        [(reservations({0: invalid(7)}, six), Done(six))],
    )


@pytest.mark.parametrize("value", [ADA, None], ids=["a document", "a tombstone"])
def test_a_message_has_room_up_to_the_last_byte_that_its_topic_takes(value: bytes | None) -> None:
    before = entry(5, BOB, mark="3.7.1.0")
    size = message_bytes(message(6, value).message)
    reserve = reservation(6, value, before), Done(before)
    turns: list[Any] = [[(WEAK, before)], [(ROW, {})], [reserve], [(message(6, value), None)]]
    for limit in (size, size + 1, size + 30):
        assert dialogue(publishing(value, replace(CONTEXT, limit=limit)), *turns) == "published"
    step = publishing(value, replace(CONTEXT, limit=size - 1))
    assert next(step) == (WEAK,)
    step.send((before,))
    (write,) = step.send(({},))
    assert isinstance(write, Write)
    assert read_entry(dict(write.set), 0).unfit


def test_the_key_of_a_message_counts_towards_the_room_in_its_topic() -> None:
    step = publishing(EncodedDocument(key="k" * 200, value=ADA), replace(CONTEXT, limit=200 + len(ADA)))
    assert next(step) == (WEAK,)
    step.send((None,))
    (write,) = step.send(({},))
    assert isinstance(write, Write)
    assert read_entry(dict(write.set), 0).unfit


def test_the_reason_of_a_document_that_cannot_be_made_names_values_only_where_the_job_may() -> None:
    error = ValueError("octocat@example.org")
    assert unpublishable(error, None).reason == (
        "a document (log_values = true names it) cannot be made (ValueError): correct the product or the row"
    )
    assert unpublishable(error, "7").reason == (
        "the document of 7 cannot be made (ValueError: octocat@example.org): correct the product or the row"
    )


def test_an_invalidated_entry_equals_no_document() -> None:
    before = item(60, {0: invalid(6)})
    task = replace(TASK, runs={3: Run(number=3, through=8)})
    outcomes = dialogue(
        publish(task, [CONTEXT], "7", lambda: documents({"profile": None})),
        [(WEAK, before)],
        [(ROW, None)],
        [(reservation(7, None, before), Done(before))],
        [(message(7, None), None)],
    )
    assert outcomes == {"profile": "published"}


def test_an_erased_root_that_comes_again_loses_the_expiry_of_its_item() -> None:
    before = {**entry(6, None, mark="3.7.1.0"), "ttl": 1}
    write = reservation(7, ADA, before)._replace(remove=("ttl",))
    outcome = dialogue(
        publishing(ADA),
        [(WEAK, before)],
        [(ROW, {})],
        [(write, Done(before))],
        [(message(7, ADA), None)],
    )
    assert outcome == "published"


def invalid(seq: int) -> LedgerEntry:
    return LedgerEntry(seq=seq, hash=INVALIDATED, mark=Mark(run=3, round=8, lane=0, attempt=0))
