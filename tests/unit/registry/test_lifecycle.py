"""The life of an assignment."""

from itertools import pairwise, product

from registry.lifecycle import NEXT, may_follow, reads, writes
from registry.model import State


def test_an_assignment_lives_through_all_states_in_order() -> None:
    life = [*State, State.PLANNED]
    assert all(may_follow(before, after) for before, after in pairwise(life))


def test_no_step_skips_one_but_giving_up() -> None:
    steps = {(before, after) for before, after in product(State, State) if may_follow(before, after)}
    in_order = set(zip(State, [*list(State)[1:], State.PLANNED], strict=True))
    assert steps - in_order == {
        (State.PLANNED, State.FREE),
        (State.WRITING, State.RETIRING),
        (State.BACKFILLING, State.RETIRING),
    }


def test_jobs_one_step_apart_are_safe_together() -> None:
    """A job a step behind or ahead never reads a slot that its neighbour does not write."""
    for before, nexts in NEXT.items():
        for after in nexts:
            assert not reads(before) or writes(after)
            assert not reads(after) or writes(before)


def test_only_a_serving_slot_is_read_and_every_state_between_planned_and_free_is_written() -> None:
    assert [state for state in State if reads(state)] == [State.SERVING]
    assert [state for state in State if not writes(state)] == [State.PLANNED, State.FREE]
