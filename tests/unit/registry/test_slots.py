"""Slots: the example product `user_profile`, the order of preferences, and properties for any needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.errors import NoSlot
from registry.fields import order_field, split_order
from registry.model import Assignment, AssignmentState, Index
from registry.slots import assign, equal_groups


def need(entity: str, *columns: str) -> Index:
    return Index(entity=entity, columns=columns)


def assigned(entity: str, slot: int, *columns: str, state: AssignmentState = AssignmentState.SERVING) -> Assignment:
    return Assignment(entity=entity, slot=slot, columns=columns, state=state)


def places(found: tuple[Assignment, ...]) -> dict[str, dict[int, str]]:
    board: dict[str, dict[int, str]] = {}
    for one in found:
        board.setdefault(one.entity, {})[one.slot] = "#".join(one.columns)
    return board


def test_the_example_gets_the_slots_that_the_readme_shows() -> None:
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


def test_columns_in_another_order_are_another_index_since_both_sides_of_a_join_encode_them_in_one_order() -> None:
    found = assign([], [[need("star", "owner", "name")], [need("star", "name", "owner")]], 2)
    assert [one.columns for one in found] == [("owner", "name"), ("name", "owner")]


def test_a_group_takes_the_slot_that_a_member_already_has() -> None:
    stored = [assigned("a", 2, "x")]
    assert places(assign(stored, [[need("b", "y"), need("a", "x"), need("c", "z")]], 3)) == {
        "a": {2: "x"},
        "b": {2: "y"},
        "c": {2: "z"},
    }


def test_a_member_for_whom_the_shared_slot_is_taken_gets_another() -> None:
    stored = [assigned("a", 2, "x"), assigned("b", 2, "other")]
    assert places(assign(stored, [[need("a", "x"), need("b", "y"), need("c", "z")]], 3)) == {
        "a": {2: "x"},
        "b": {1: "y", 2: "other"},
        "c": {2: "z"},
    }


def test_the_slot_of_most_members_is_preferred_and_of_as_many_the_lowest() -> None:
    stored = [assigned("a", 1, "x"), assigned("b", 3, "x"), assigned("c", 3, "x")]
    group = [need("a", "x"), need("b", "x"), need("c", "x"), need("d", "x")]
    assert places(assign(stored, [group], 3))["d"] == {3: "x"}
    assert places(assign(stored, [[*group[:2], group[3]]], 3))["d"] == {1: "x"}


def test_without_a_common_slot_each_member_gets_its_own_lowest() -> None:
    stored = [assigned("a", 1, "p"), assigned("b", 2, "q")]
    assert places(assign(stored, [[need("a", "x"), need("b", "y")]], 2)) == {
        "a": {1: "p", 2: "x"},
        "b": {1: "y", 2: "q"},
    }


def test_two_needs_of_one_entity_in_one_group_get_two_slots() -> None:
    found = assign([], [[need("a", "author"), need("a", "reviewer"), need("b", "x")]], 3)
    assert places(found) == {"a": {1: "author", 2: "reviewer"}, "b": {1: "x"}}


def test_a_slot_that_was_freed_is_used_again() -> None:
    assert places(assign([assigned("a", 1, "old", state=AssignmentState.FREE)], [[need("a", "new")]], 1)) == {
        "a": {1: "new"}
    }


def test_an_entity_without_a_free_slot_is_named_with_its_assignments_and_those_to_free() -> None:
    stored = [assigned("a", 1, "x"), assigned("a", 2, "p", "q")]
    with pytest.raises(NoSlot) as error:
        assign(stored, [[need("a", "x")], [need("a", "z")]], 2)
    assert str(error.value) == (
        "entity a: no slot is free for z; all 2 are taken (GSI_1 x, GSI_2 p#q); "
        "no join asks for GSI_2 p#q any more: retire and free one of these, or add a slot (`statestore add-slots 3`)"
    )
    assert error.value.unused == (stored[1],)


def test_when_joins_need_every_slot_the_error_says_that_and_names_the_verb_that_adds_slots() -> None:
    with pytest.raises(
        NoSlot, match=r"joins need every one of them: remove a join, or add a slot \(`statestore add-slots 2`\)"
    ):
        assign([], [[need("a", "x")], [need("a", "z")]], 1)
    with pytest.raises(NoSlot, match=r"all 20 are taken .*joins need every one of them: remove a join$"):
        assign([], [[need("a", f"x{n}")] for n in range(21)], 20)


NEEDS = st.builds(need, st.sampled_from("abcd"), *([st.sampled_from("xyz")]), st.sampled_from("pqr")) | st.builds(
    need, st.sampled_from("abcd"), st.sampled_from("xyzpqr")
)
GROUPS = st.lists(st.lists(NEEDS, max_size=5), max_size=8)
SLOTS = 15  # six single columns and nine pairs: an entity can never need more


@given(GROUPS)
def test_assignments_never_collide_and_answer_every_need(groups: list[list[Index]]) -> None:
    found = assign([], groups, SLOTS)
    assert len({(one.entity, one.slot) for one in found}) == len(found)
    assert {(one.entity, frozenset(one.columns)) for one in found} == {
        (one.entity, frozenset(one.columns)) for group in groups for one in group
    }
    assert all(1 <= one.slot <= SLOTS for one in found)


@given(GROUPS, GROUPS)
def test_an_assignment_never_moves(before: list[list[Index]], after: list[list[Index]]) -> None:
    first = assign([], before, SLOTS)
    assert assign(first, before, SLOTS) == first
    assert set(first) <= set(assign(first, after, SLOTS))


@given(GROUPS, GROUPS)
def test_extending_the_groups_is_the_same_as_starting_with_all(
    before: list[list[Index]], more: list[list[Index]]
) -> None:
    assert assign(assign([], before, SLOTS), [*before, *more], SLOTS) == assign([], [*before, *more], SLOTS)


def test_members_that_pairs_set_equal_through_others_are_one_group() -> None:
    found = equal_groups([("a", "b"), ("c", "d"), ("e", "f"), ("b", "d")])
    assert found == {"a": "a", "b": "a", "c": "a", "d": "a", "e": "e", "f": "e"}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_two_members_have_one_group_exactly_if_pairs_lead_from_one_to_the_other(pairs: list[tuple[int, int]]) -> None:
    found = equal_groups(pairs)
    for member in found:
        reached, grown = {member}, set[int]()
        while reached != grown:
            grown = set(reached)
            reached |= {other for pair in pairs if grown.intersection(pair) for other in pair}
        assert {other for other in found if found[other] == found[member]} == reached


@pytest.mark.parametrize("former", [AssignmentState.SERVING, AssignmentState.RETIRING])
def test_of_two_assignments_of_one_index_both_stay_and_a_need_takes_no_third(former: AssignmentState) -> None:
    """One of them moves to the other's slot."""
    stored = (
        assigned("star", 1, "username", state=former),
        assigned("star", 2, "username", state=AssignmentState.WRITING),
    )
    assert assign(stored, [[need("star", "username")]], 3) == stored


def ordered(entity: str, column: str, by: str) -> Index:
    return Index(entity, (column, order_field(by, descending=True)))


def test_an_index_with_an_order_takes_one_of_the_last_slots_or_none() -> None:
    groups = [[ordered("a", "x", name)] for name in "klmno"] + [[need("a", "x")]]
    found = places(assign([], groups, 20))["a"]

    assert {slot: fields.partition("#")[0] for slot, fields in found.items()} == dict.fromkeys((1, 17, 18, 19, 20), "x")
    assert places(assign([], groups, 17))["a"].keys() == {1, 17}
    assert places(assign([], groups, 16)) == {"a": {1: "x"}}


def test_an_index_without_an_order_takes_such_a_slot_last() -> None:
    groups = [[need("a", f"c{n}")] for n in range(17)]
    assert max(places(assign([], groups, 20))["a"]) == 17
    assert split_order(("x", order_field("[odd] name", descending=False))) == (("x",), (("[odd] name", False),))
