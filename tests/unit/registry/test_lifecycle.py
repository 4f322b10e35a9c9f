"""The life of an assignment."""

from itertools import pairwise, product

from registry.model import NEXT, AssignmentState, may_follow, reads, writes


def test_an_assignment_lives_through_all_states_in_order() -> None:
    life = [*AssignmentState, AssignmentState.PLANNED]
    assert all(may_follow(before, after) for before, after in pairwise(life))


def test_only_an_assignment_that_is_given_up_skips_a_state() -> None:
    steps = {
        (before, after) for before, after in product(AssignmentState, AssignmentState) if may_follow(before, after)
    }
    in_order = set(zip(AssignmentState, [*list(AssignmentState)[1:], AssignmentState.PLANNED], strict=True))
    assert steps - in_order == {
        (AssignmentState.PLANNED, AssignmentState.FREE),
        (AssignmentState.WRITING, AssignmentState.RETIRING),
        (AssignmentState.BACKFILLING, AssignmentState.RETIRING),
    }


def test_jobs_one_step_apart_are_safe_together() -> None:
    """A job a step behind or ahead never reads a slot that its neighbour does not write."""
    for before, nexts in NEXT.items():
        for after in nexts:
            assert not reads(before) or writes(after)
            assert not reads(after) or writes(before)


def test_only_a_serving_slot_is_read_and_every_state_between_planned_and_free_is_written() -> None:
    assert [state for state in AssignmentState if reads(state)] == [AssignmentState.SERVING]
    assert [state for state in AssignmentState if not writes(state)] == [AssignmentState.PLANNED, AssignmentState.FREE]
