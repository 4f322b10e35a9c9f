"""Pause, publish again, remove, retire, move and add slots: their changes, and what they refuse."""

from dataclasses import replace

import pytest

from processor.tools.inspect.board import pending_lines
from registry.edits.apply import apply
from registry.edits.edit import Edit, edited
from registry.edits.operations import (
    NoMoreSlots,
    NoMove,
    NoTopic,
    ProductPaused,
    SlotUsed,
    add_slots,
    completed,
    move,
    pause,
    pause_topic,
    remove,
    republish,
    retire,
)
from registry.errors import NoAssignment, NoProduct
from registry.model import Assignment, AssignmentState, Requirements, Snapshot
from tests.unit.registry.edits.test_waiting import ALL, products, with_join


@pytest.fixture
def waiting(applied: Snapshot, github: Requirements) -> Snapshot:
    return edited(applied, apply(applied, with_join(github), has_run=ALL))


def test_a_pause_ends_with_a_resume_and_counts_once(applied: Snapshot) -> None:
    change = pause(applied, "user_profile", paused=True)
    assert change.changes == ("product user_profile: paused",)
    stored = edited(applied, change)
    assert (stored.products[0].paused, stored.products[0].version) == (True, 1)
    assert pause(stored, "user_profile", paused=True).changes == ()
    change = pause(stored, "user_profile", paused=False)
    assert change.changes == ("product user_profile: resumed",)
    assert edited(stored, change).products == applied.products


def test_all_work_is_paused_and_resumed(applied: Snapshot) -> None:
    change = pause(applied, None, paused=True)
    assert change.changes == ("all work: paused",)
    stored = edited(applied, change)
    assert stored.paused
    assert pause(stored, None, paused=True).changes == ()
    assert not edited(stored, pause(stored, None, paused=False)).paused


def test_a_topic_is_paused_and_resumed(applied: Snapshot) -> None:
    topic = applied.entities[0].topic
    change = pause_topic(applied, topic, paused=True)
    assert change.changes == (f"topic {topic}: paused",)
    stored = edited(applied, change)
    assert stored.paused_topics == (topic,)
    assert pause_topic(stored, topic, paused=True).changes == ()
    change = pause_topic(stored, topic, paused=False)
    assert change.changes == (f"topic {topic}: resumed",)
    assert edited(stored, change).paused_topics == ()
    with pytest.raises(NoTopic, match="no entity of the registry reads topic x"):
        pause_topic(stored, "x", paused=True)


def test_a_paused_product_stays_paused_while_it_waits_and_after_an_apply(
    waiting: Snapshot, github: Requirements
) -> None:
    stored = edited(waiting, pause(waiting, "user_profile", paused=True))
    assert [one.paused for one in (*stored.products, *stored.waiting)] == [True, True]
    assert apply(stored, with_join(github), has_run=ALL).changes == ()
    again = edited(stored, apply(stored, github, has_run=ALL))
    again = edited(again, apply(again, with_join(github), has_run=ALL))
    assert [(one.version, one.paused) for one in again.waiting] == [(3, True)]


def test_the_same_documents_wait_as_the_next_version(applied: Snapshot, waiting: Snapshot) -> None:
    change = republish(applied, "user_profile")
    assert change.changes == ("product user_profile: version 2, of the same documents, waits until its slots are full",)
    assert products(edited(applied, change)) == ([("user_profile", 1)], [("user_profile", 2)])
    assert republish(waiting, "user_profile") == Edit()


def test_a_removed_product_takes_its_joins_and_its_waiting_version(waiting: Snapshot) -> None:
    change = remove(waiting, "user_profile", tombstones=False)
    assert change.changes[:2] == ("product user_profile: version 2 waits no more", "product user_profile: removed")
    stored = edited(waiting, change)
    assert (stored.products, stored.waiting, stored.joins) == ((), (), ())
    assert stored.assignments == waiting.assignments


def test_a_product_that_is_retracted_stays_until_its_tombstones_are_out(waiting: Snapshot) -> None:
    change = remove(waiting, "user_profile", tombstones=True)
    assert change.changes[:2] == (
        "product user_profile: retracted, version 3 is tombstones",
        "product user_profile: version 2 waits no more",
    )
    stored = edited(waiting, change)
    assert [(one.version, one.retracted) for one in stored.products] == [(3, True)]
    assert remove(stored, "user_profile", tombstones=True).changes == ()


def test_a_paused_product_publishes_no_tombstones_before_it_is_resumed(applied: Snapshot) -> None:
    """A second operator would end the pause of the first one without a word."""
    stored = edited(applied, pause(applied, "user_profile", paused=True))
    with pytest.raises(ProductPaused, match=r"is paused, so .* `statestore resume user_profile --why REASON`"):
        remove(stored, "user_profile", tombstones=True)
    assert remove(stored, "user_profile", tombstones=False).removed == ("user_profile",)


def test_a_product_that_is_retracted_can_pause(applied: Snapshot) -> None:
    stored = edited(applied, remove(applied, "user_profile", tombstones=True))
    stored = edited(stored, pause(stored, "user_profile", paused=True))
    assert list(pending_lines(stored))[:2] == [
        "product user_profile: paused, the job publishes nothing of it until `statestore resume`",
        "product user_profile: the job replaces its documents by tombstones, then removes it",
    ]


def test_a_retracted_product_comes_back_with_an_apply(applied: Snapshot, github: Requirements) -> None:
    stored = edited(applied, remove(applied, "user_profile", tombstones=True))
    stored = edited(stored, apply(stored, github, has_run=ALL))
    assert [(one.version, one.retracted) for one in (*stored.products, *stored.waiting)] == [(2, True), (3, False)]


def test_a_product_that_only_waits_is_withdrawn(applied: Snapshot, github: Requirements) -> None:
    gone = edited(applied, remove(applied, "user_profile", tombstones=False))
    stored = edited(gone, apply(gone, github, has_run=ALL))
    assert products(stored) == ([], [("user_profile", 2)])
    for tombstones in (True, False):
        after = edited(stored, remove(stored, "user_profile", tombstones=tombstones))
        assert products(after) == ([], [])


def test_an_unknown_product_is_named(applied: Snapshot) -> None:
    with pytest.raises(NoProduct, match="the registry has no product x"):
        republish(applied, "x")
    with pytest.raises(NoProduct):
        pause(applied, "x", paused=True)
    with pytest.raises(NoProduct) as error:
        remove(applied, "x", tombstones=True)
    assert error.value.name == "x"


def test_a_slot_that_a_live_or_a_waiting_product_uses_does_not_retire(waiting: Snapshot) -> None:
    for entity, slot in (("star", 1), ("star", 3), ("payment_info", 1)):
        with pytest.raises(SlotUsed, match="joins of product user_profile use it") as error:
            retire(waiting, entity, slot)
        assert error.value.products == ("user_profile",)
    with pytest.raises(NoAssignment, match="GSI_9 of entity star holds nothing"):
        retire(waiting, "star", 9)


@pytest.mark.parametrize("state", ["planned", "writing", "backfilling", "serving", "retiring"])
def test_a_slot_that_nothing_uses_retires(applied: Snapshot, state: str) -> None:
    unused = Assignment(entity="repo", slot=2, columns=("name",), state=AssignmentState(state))
    stored = edited(applied, Edit(assignments=(unused,), changes=("by hand",)))
    after = edited(stored, retire(stored, "repo", 2))
    left = [str(one.state) for one in after.assignments_of("repo")]
    assert left == ([] if state == "planned" else ["retiring"])


def test_a_moved_slot_serves_in_its_new_place_and_frees_the_old_one(applied: Snapshot) -> None:
    change = move(applied, "star", 1, 7)
    assert change.changes == ("entity star: GSI_7 will hold username (planned)",)
    after = completed(edited(applied, change))
    assert [(one.slot, *one.columns) for one in after.assignments_of("star")] == [
        (2, "repo_owner", "repo_name"),
        (7, "username"),
    ]
    assert {one.join for one in after.joins} == {one.join for one in applied.joins}
    assert {one.state for one in after.assignments} == {AssignmentState.SERVING}


def test_two_slots_change_places_by_moves_over_a_third(applied: Snapshot) -> None:
    stored = applied
    for slot, target in ((1, 3), (2, 1), (3, 2)):
        stored = completed(edited(stored, move(stored, "star", slot, target)))
    assert [(one.slot, *one.columns) for one in stored.assignments_of("star")] == [
        (1, "repo_owner", "repo_name"),
        (2, "username"),
    ]


@pytest.mark.parametrize(
    ("slot", "target", "reason"),
    [
        (1, 2, "GSI_1 username cannot move to GSI_2: that slot holds repo_owner#repo_name; choose a free one"),
        (1, 1, "that slot holds username"),
        (1, 21, "the table has GSI_1 to GSI_20"),
        (1, 0, "the table has GSI_1 to GSI_20"),
        (3, 4, "it is planned, and only a slot that serves moves"),
    ],
)
def test_a_move_to_a_slot_that_cannot_take_it_is_refused(
    waiting: Snapshot, slot: int, target: int, reason: str
) -> None:
    with pytest.raises(NoMove, match=reason):
        move(waiting, "star", slot, target)


def test_a_second_move_of_the_same_columns_waits_for_the_first(applied: Snapshot) -> None:
    stored = edited(applied, move(applied, "star", 1, 7))
    with pytest.raises(NoMove, match="it moves to GSI_7 already"):
        move(stored, "star", 1, 8)
    back = edited(stored, retire(stored, "star", 7))
    assert back.assignments == applied.assignments
    with pytest.raises(NoAssignment):
        move(applied, "star", 9, 8)


def test_slots_are_added_and_never_go(empty: Snapshot) -> None:
    few = replace(empty, slots=5)
    change = add_slots(few, 8)
    assert change.changes == ("slots: GSI_1 to GSI_8, 5 before",)
    assert (edited(few, change).slots, edited(few, change).version) == (8, 1)
    assert add_slots(few, 5) == Edit()
    for slots, message in (
        (4, "has 5 slots, and cannot have 4: slots never go; give a number from 6 to 20"),
        (21, "6 to 20"),
    ):
        with pytest.raises(NoMoreSlots, match=message):
            add_slots(few, slots)
    with pytest.raises(
        NoMoreSlots, match="the registry has 20 slots, and cannot have 21: slots never go; a table has no more"
    ):
        add_slots(empty, 21)
