"""Publishing the documents of several products of one root in one step: one read and one write for each ledger group."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from processor.engine.plan.step import Step, WeakKey
from processor.engine.protocol.erasures import Erasure, erasure_key, name_of, write_erasure
from processor.engine.protocol.publish import PublishContext, Unpublishable, publish
from processor.language.product.avro import EncodedDocument
from statestore.keys import Key
from statestore.store import Done, Item, Refused
from statestore.values import item_size
from tests.unit.engine.protocol.dialogue import dialogue
from tests.unit.engine.protocol.published_root import (
    ADA,
    BOB,
    ENTRY,
    ROW,
    TASK,
    WEAK,
    context,
    documents,
    item,
    message,
    reservations,
    reserved,
    sends,
)

OTHER_GROUP = Key("LEDGER#user#1", "7")
OLD = "3.7.1.0"
"""A mark whose round ended."""


def together(
    contexts: Sequence[PublishContext], values: Mapping[int, bytes | EncodedDocument | Unpublishable | None]
) -> Step[Any]:
    """Publishes the documents of products, by their numbers; returns their outcomes, by their numbers."""
    by_name = {f"p{number}": value for number, value in values.items()}
    outcomes = yield from publish(TASK, contexts, "7", lambda: documents(by_name))
    return {int(name[1:]): outcome for name, outcome in outcomes.items()}


def contexts(*numbers: int) -> list[PublishContext]:
    return [context(number) for number in numbers]


def with_one_message(value: bytes | Unpublishable | None, before: Item | None, seq: int) -> dict[int, Any]:
    """Publishes product 0 with this value, and Ada of product 1, whose message alone goes out, with this sequence. `before`: the
    ledger item. Returns the outcomes."""
    return dialogue(
        together(contexts(0, 1), {0: value, 1: ADA}),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservations({1: reserved(seq, ADA)}, before), Done(before))],
        sends(message(seq, ADA, context(1))),
    )


def test_products_of_one_group_share_one_read_and_one_write() -> None:
    entries = {n: reserved(1, ADA) for n in (0, 1, 19)}
    outcomes = dialogue(
        together(contexts(0, 1, 19), {0: ADA, 1: ADA, 19: ADA}),
        [(WEAK, None)],
        [(ROW, {})],
        [(reservations(entries, None), Done(None))],
        sends(*(message(1, ADA, context(n)) for n in (0, 1, 19))),
    )
    assert outcomes == dict.fromkeys((0, 1, 19), "published")


def test_a_write_sets_only_the_entries_of_products_that_changed_under_the_turn_of_all() -> None:
    before = item(3, {0: reserved(1, ADA, mark=OLD), 1: reserved(2, BOB, mark=OLD), 2: reserved(9, BOB, mark=OLD)})
    assert with_one_message(ADA, before, seq=3) == {0: "unchanged", 1: "published"}


def test_each_product_is_acknowledged_by_its_own_mark() -> None:
    """Round 8, which reserved the second document, has not ended."""
    before = item(3, {0: reserved(1, ADA, mark=OLD), 1: reserved(2, ADA, mark="3.8.0.0")})
    assert with_one_message(ADA, before, seq=3) == {0: "unchanged", 1: "published"}


def test_products_of_two_groups_are_read_together_and_written_together() -> None:
    outcomes = dialogue(
        together(contexts(19, 20), {19: ADA, 20: BOB}),
        [(WEAK, None), (WeakKey(OTHER_GROUP), None)],
        [(ROW, {})],
        [
            (reservations({19: reserved(1, ADA)}, None), Done(None)),
            (reservations({20: reserved(1, BOB)}, None, OTHER_GROUP), Done(None)),
        ],
        sends(message(1, ADA, context(19)), message(1, BOB, context(20))),
    )
    assert outcomes == {19: "published", 20: "published"}


def test_a_refused_group_comes_again_and_the_other_group_is_sent() -> None:
    outcomes = dialogue(
        together(contexts(18, 19, 20), {18: ADA, 19: ADA, 20: BOB}),
        [(WEAK, None), (WeakKey(OTHER_GROUP), None)],
        [(ROW, {})],
        [
            (reservations({18: reserved(1, ADA), 19: reserved(1, ADA)}, None), Refused({"turn": 1})),
            (reservations({20: reserved(1, BOB)}, None, OTHER_GROUP), Done(None)),
        ],
        sends(message(1, BOB, context(20))),
    )
    assert outcomes == {18: "contended", 19: "contended", 20: "published"}


def test_a_refused_write_contends_the_products_of_its_group_without_a_message_too() -> None:
    before = item(3, {0: reserved(1, ADA, mark=OLD)})
    outcomes = dialogue(
        together(contexts(0, 1), {0: ADA, 1: ADA}),
        [(WEAK, before)],
        [(ROW, {})],
        [(reservations({1: reserved(1, ADA)}, before), Refused(item(4, {0: reserved(2, BOB, mark=OLD)})))],
    )
    assert outcomes == {0: "contended", 1: "contended"}


def test_a_product_whose_document_cannot_be_made_stops_no_other() -> None:
    reason = Unpublishable("no Bobs")
    assert with_one_message(reason, None, seq=1) == {0: reason, 1: "published"}


def test_a_root_without_a_document_of_one_product_needs_no_tombstone_of_that_product() -> None:
    """The message's key is known by the other product."""
    assert with_one_message(None, None, seq=1) == {0: "unchanged", 1: "published"}


def test_a_tombstone_takes_its_key_from_the_ledger_item_of_another_group() -> None:
    before = item(3, {20: reserved(4, ADA, mark=OLD)}, OTHER_GROUP)
    outcomes = dialogue(
        together(contexts(0, 20), {0: None, 20: None}),
        [(WEAK, None), (WeakKey(OTHER_GROUP), before)],
        [(ROW, None)],
        [
            (ENTRY, None),
            (reservations({20: reserved(5, None, topic="of p20")}, before, OTHER_GROUP), Done(before)),
        ],
        sends(message(5, None, context(20))),
    )
    assert outcomes == {0: "unchanged", 20: "published"}


def test_the_sequences_of_an_erased_root_go_on_above_those_of_all_its_tombstones() -> None:
    note = erasure_key("user", "7")
    task = replace(TASK, erased=frozenset([name_of(note)]))
    values = {"p0": ADA, "p1": ADA}
    erased = dict(write_erasure(note, Erasure({}, {0: 8, 1: 3, 5: 1})).set)
    outcomes = dialogue(
        publish(task, contexts(0, 1), "7", lambda: documents(values)),
        [(ENTRY, None), (note, erased)],
        [(ROW, {})],
        [(reservations({0: reserved(9, ADA), 1: reserved(9, ADA)}, None), Done(None))],
        sends(message(9, ADA, context(0)), message(9, ADA, context(1))),
    )
    assert outcomes == {"p0": "published", "p1": "published"}


def test_an_erased_root_gets_a_tombstone_only_in_a_topic_that_may_show_its_document() -> None:
    """Product 0 has the tombstone of the erasure, product 1 another topic with messages. Product 20 has entries of its own, first
    for its topic, then for an earlier one."""
    note = erasure_key("user", "7")
    task = replace(TASK, erased=frozenset([name_of(note)]))
    erased = dict(write_erasure(note, Erasure({}, {0: 8})).set)
    before = item(50, {20: reserved(5, None, mark="3.7.1.0", topic="of p20")}, OTHER_GROUP)
    of = [replace(context(0), earlier=3), replace(context(1), earlier=3), context(20)]
    outcomes = dialogue(
        publish(task, of, "7", lambda: documents(dict.fromkeys(("p0", "p1", "p20")))),
        [(ENTRY, None), (OTHER_GROUP, before), (note, erased)],
        [(ROW, None)],
        [(reservations({1: reserved(9, None, topic="of p1")}, None), Done(None))],
        sends(message(9, None, of[1])),
    )
    assert outcomes == {"p0": "unchanged", "p1": "published", "p20": "unchanged"}
    earlier = item(50, {20: reserved(5, None, mark="3.7.1.0", topic="others")}, OTHER_GROUP)
    assert dialogue(
        publish(task, of[2:], "7", lambda: documents({"p20": None})),
        [(OTHER_GROUP, earlier), (note, erased)],
        [(ROW, None)],
        [(reservations({20: reserved(6, None, topic="of p20")}, earlier, OTHER_GROUP), Done(earlier))],
        sends(message(6, None, of[2])),
    ) == {"p20": "published"}


def test_one_item_holds_twenty_usual_entries_within_one_kilobyte() -> None:
    entries = {n: reserved(10**6, ADA, mark="999.999999.63.0", version=99) for n in range(20)}
    write = reservations(entries, None)
    assert item_size({"PK": ENTRY.pk, "SK": "octocat@example.org", **write.set}) <= 1024
