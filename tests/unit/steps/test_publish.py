"""Publishing one root: each request and each answer, from the ledger to the message."""

from dataclasses import replace

import pytest

from processor.plan.step import Step
from processor.progress.ledger import Mark, Run
from processor.steps.publish import (
    EncodedDocument,
    Unpublishable,
    invalidate,
    publish,
)
from statestore.keys import Key
from statestore.store import Absent, Done, Equals, Item, Refused, Write
from tests.unit.steps.dialogue import dialogue
from tests.unit.steps.published_root import (
    ADA,
    BOB,
    CONTEXT,
    ENTRY,
    ROW,
    document,
    entry,
    message,
    publishing,
    reservation,
)


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


def test_a_root_without_a_document_gets_a_tombstone_in_each_topic_that_its_product_changes_to() -> None:
    """The other topic may show a document from the time before."""
    before = entry(6, None, mark="3.7.1.0", version=3, topic="others")
    outcome = dialogue(
        publishing(None),
        [(ENTRY, before)],
        [(ROW, None)],
        [(reservation(7, None, Equals("seq", 6)), Done(before))],
        [(message(7, None), None)],
    )
    assert outcome == "published"


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


def test_a_root_without_a_known_key_gets_no_tombstone_in_a_topic_with_earlier_messages() -> None:
    step = publish(replace(CONTEXT, earlier=9), "7", lambda: document(None))
    assert dialogue(step, [(ENTRY, None)], [(ROW, None)]) == "unchanged"


def test_an_erased_root_whose_entry_keeps_no_key_gets_no_tombstone_in_another_topic() -> None:
    before = {**entry(6, None, mark="3.7.1.0", version=3, topic="others"), "key": "", "ttl": 1}
    assert dialogue(publishing(None), [(ENTRY, before)], [(ROW, None)]) == "unchanged"


def test_a_root_that_is_still_gone_gets_no_second_tombstone() -> None:
    assert dialogue(publishing(None), [(ENTRY, entry(6, None, mark="3.7.1.0"))], [(ROW, None)]) == "unchanged"


def test_invalidating_an_entry_begins_again_after_a_refusal() -> None:
    mark = Mark(run=3, round=8, lane=0, attempt=0)
    invalidated = {"_f": 1, "seq": 6, "hash": "?", "mark": "3.8.0.0", "key": '{"id":7}', "version": 0, "topic": ""}
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
