"""Slots: the example of DESIGN.md section 4, the order of preferences, and what holds for any needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import NoSlot
from registry.model import Assignment, Need, State
from registry.slots import assign


def need(entity: str, *columns: str) -> Need:
    return Need(entity=entity, columns=columns)


def held(entity: str, slot: int, *columns: str, state: State = State.SERVING) -> Assignment:
    return Assignment(entity=entity, slot=slot, columns=columns, state=state)


def places(found: tuple[Assignment, ...]) -> dict[str, dict[int, str]]:
    board: dict[str, dict[int, str]] = {}
    for one in found:
        board.setdefault(one.entity, {})[one.slot] = "#".join(one.columns)
    return board


def test_the_example_of_the_design_comes_out_as_it_is_printed_there() -> None:
    groups = [
        [need("star", "username"), need("pull_request", "author")],
        [need("user", "username")],
        [need("star", "repo_owner", "repo_name")],
        [need("payment_info", "user_id")],
        [need("user", "id")],
    ]
    assert places(assign([], groups, 20)) == {
        "user": {1: "username", 2: "id"},
        "star": {1: "username", 2: "repo_owner#repo_name"},
        "pull_request": {1: "author"},
        "payment_info": {1: "user_id"},
    }


def test_columns_in_another_order_are_another_index_since_both_sides_of_a_join_spell_them_alike() -> None:
    found = assign([], [[need("star", "owner", "name")], [need("star", "name", "owner")]], 2)
    assert [one.columns for one in found] == [("owner", "name"), ("name", "owner")]


def test_a_group_gathers_on_the_slot_that_a_member_sits_on_already() -> None:
    kept = [held("a", 2, "x")]
    assert places(assign(kept, [[need("b", "y"), need("a", "x"), need("c", "z")]], 3)) == {
        "a": {2: "x"},
        "b": {2: "y"},
        "c": {2: "z"},
    }


def test_a_member_for_whom_the_shared_slot_is_taken_gets_another() -> None:
    kept = [held("a", 2, "x"), held("b", 2, "other")]
    assert places(assign(kept, [[need("a", "x"), need("b", "y"), need("c", "z")]], 3)) == {
        "a": {2: "x"},
        "b": {1: "y", 2: "other"},
        "c": {2: "z"},
    }


def test_the_slot_of_most_members_is_preferred_and_of_as_many_the_lowest() -> None:
    kept = [held("a", 1, "x"), held("b", 3, "x"), held("c", 3, "x")]
    group = [need("a", "x"), need("b", "x"), need("c", "x"), need("d", "x")]
    assert places(assign(kept, [group], 3))["d"] == {3: "x"}
    assert places(assign(kept, [[*group[:2], group[3]]], 3))["d"] == {1: "x"}


def test_without_a_common_slot_each_member_gets_its_own_lowest() -> None:
    kept = [held("a", 1, "p"), held("b", 2, "q")]
    assert places(assign(kept, [[need("a", "x"), need("b", "y")]], 2)) == {"a": {1: "p", 2: "x"}, "b": {1: "y", 2: "q"}}


def test_two_needs_of_one_entity_in_one_group_get_two_slots() -> None:
    found = assign([], [[need("a", "author"), need("a", "reviewer"), need("b", "x")]], 3)
    assert places(found) == {"a": {1: "author", 2: "reviewer"}, "b": {1: "x"}}


def test_a_slot_that_was_freed_is_used_again() -> None:
    assert places(assign([held("a", 1, "old", state=State.FREE)], [[need("a", "new")]], 1)) == {"a": {1: "new"}}


def test_an_entity_without_a_free_slot_is_named_with_what_it_holds_and_what_could_be_freed() -> None:
    kept = [held("a", 1, "x"), held("a", 2, "p", "q")]
    with pytest.raises(NoSlot) as error:
        assign(kept, [[need("a", "x")], [need("a", "z")]], 2)
    assert str(error.value) == (
        "entity a: no slot is free for z; all 2 are taken (GSI_1 x, GSI_2 p#q); "
        "no join asks for GSI_2 p#q any more: retire and free one of these"
    )
    assert error.value.unused == (kept[1],)


def test_when_joins_need_every_slot_the_error_says_that() -> None:
    with pytest.raises(NoSlot, match="joins need every one of them"):
        assign([], [[need("a", "x")], [need("a", "z")]], 1)


NEEDS = st.builds(need, st.sampled_from("abcd"), *([st.sampled_from("xyz")]), st.sampled_from("pqr")) | st.builds(
    need, st.sampled_from("abcd"), st.sampled_from("xyzpqr")
)
GROUPS = st.lists(st.lists(NEEDS, max_size=5), max_size=8)
SLOTS = 15  # six single columns and nine pairs: an entity can never need more


@given(GROUPS)
def test_assignments_never_collide_and_answer_every_need(groups: list[list[Need]]) -> None:
    found = assign([], groups, SLOTS)
    assert len({(one.entity, one.slot) for one in found}) == len(found)
    assert {(one.entity, frozenset(one.columns)) for one in found} == {
        (one.entity, frozenset(one.columns)) for group in groups for one in group
    }
    assert all(1 <= one.slot <= SLOTS for one in found)


@given(GROUPS, GROUPS)
def test_what_is_assigned_never_moves(before: list[list[Need]], after: list[list[Need]]) -> None:
    first = assign([], before, SLOTS)
    assert assign(first, before, SLOTS) == first
    assert set(first) <= set(assign(first, after, SLOTS))


@given(GROUPS, GROUPS)
def test_extending_the_groups_is_the_same_as_starting_with_all(
    before: list[list[Need]], more: list[list[Need]]
) -> None:
    assert assign(assign([], before, SLOTS), [*before, *more], SLOTS) == assign([], [*before, *more], SLOTS)
