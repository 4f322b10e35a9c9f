"""The next steps of the job: from a planned slot to a live product, and from a retiring slot to a free one."""

from dataclasses import replace

import pytest

from registry.edits.apply import apply
from registry.edits.edit import Edit, edited
from registry.edits.operations import advance, completed, remove, retire
from registry.model import Assignment, AssignmentState, Requirements, Snapshot
from tests.unit.registry.edits.test_waiting import ALL, products, with_join


@pytest.fixture
def waiting(applied: Snapshot, github: Requirements) -> Snapshot:
    """The example, whose product waits for a planned slot of `star`, and one of `pull_request`."""
    return edited(applied, apply(applied, with_join(github), has_run=ALL))


def step(stored: Snapshot, *proven: str, published: tuple[str, ...] = ()) -> tuple[Snapshot, tuple[str, ...]]:
    change = advance(stored, proven=proven, published=published)
    return edited(stored, change), change.changes


def state(stored: Snapshot, entity: str, slot: int) -> str | None:
    return next((str(one.state) for one in stored.assignments_of(entity) if one.slot == slot), None)


def with_states(stored: Snapshot, *states: Assignment) -> Snapshot:
    return edited(stored, Edit(assignments=states, changes=("by hand",)))


def test_a_waiting_product_goes_live_after_its_slots_are_full(waiting: Snapshot) -> None:
    stored, lines = step(waiting, *ALL)
    assert lines == (
        "entity pull_request: GSI_2 repo is writing now",
        "entity star: GSI_3 repo_name is writing now",
    )
    stored, lines = step(stored, *ALL)
    assert lines == (
        "entity pull_request: GSI_2 repo is backfilling now",
        "entity star: GSI_3 repo_name is backfilling now",
    )
    assert step(stored, *ALL) == (
        edited(stored, advance(stored, proven=ALL, published=())),
        (
            "entity pull_request: GSI_2 repo is serving now",
            "entity star: GSI_3 repo_name is serving now",
            "product user_profile: version 2 is live now",
        ),
    )
    stored, _ = step(stored, *ALL)
    assert products(stored) == ([("user_profile", 2)], [])
    assert all(
        path.state == "serving" for one in stored.joins for path in (one.down, one.up) if isinstance(path, Assignment)
    )
    assert step(stored, *ALL, published=("user_profile",)) == (stored, ())


def test_a_slot_serves_only_once_its_entity_is_proven(waiting: Snapshot) -> None:
    stored, _ = step(step(waiting)[0])
    assert step(stored) == (stored, ())
    stored, lines = step(stored, "star")
    assert lines == ("entity star: GSI_3 repo_name is serving now",)
    assert products(stored) == ([("user_profile", 1)], [("user_profile", 2)])
    assert state(stored, "pull_request", 2) == "backfilling"


def test_a_product_goes_live_only_once_all_its_entities_are_proven(waiting: Snapshot) -> None:
    stored, _ = step(step(waiting)[0])
    stored, _ = step(stored, "star", "pull_request")
    assert products(stored)[1] == [("user_profile", 2)]
    assert step(stored, "star", "pull_request", "user", "repo")[1] == ()
    assert step(stored, *ALL)[1] == ("product user_profile: version 2 is live now",)


def test_the_layout_rises_with_the_step_to_writing_only(waiting: Snapshot) -> None:
    stored, layouts = waiting, []
    for _ in range(3):
        stored, _ = step(stored, *ALL)
        layouts.append({one.name: one.layout for one in stored.entities if one.layout > 1})
    assert layouts == [{"pull_request": 3, "star": 3}] * 3


def test_a_slot_without_a_product_becomes_full_too(applied: Snapshot) -> None:
    planned = Assignment(entity="repo", slot=4, columns=("name",), state=AssignmentState.PLANNED)
    stored = completed(with_states(applied, planned))
    assert state(stored, "repo", 4) == "serving"


def test_a_slot_that_retires_is_free_once_no_join_refers_to_it(applied: Snapshot, github: Requirements) -> None:
    fewer = replace(github.products[0], joins=github.products[0].joins[:3])
    stored = edited(applied, apply(applied, replace(github, products=(fewer,)), has_run=()))
    stored = edited(stored, retire(stored, "payment_info", 1))
    layouts = {one.name: one.layout for one in stored.entities}
    stored, lines = step(stored)
    assert lines == ("entity payment_info: GSI_1 user_id is free now",)
    assert state(stored, "payment_info", 1) is None
    assert {one.name: one.layout for one in stored.entities} == layouts
    used = tuple(replace(one, state=AssignmentState.RETIRING) for one in applied.assignments)
    assert step(with_states(applied, *used))[1] == ()


def test_a_retracted_product_goes_once_all_its_tombstones_are_published(applied: Snapshot) -> None:
    stored = edited(applied, remove(applied, "user_profile", tombstones=True))
    assert step(stored) == (stored, ())
    stored, lines = step(stored, published=("user_profile",))
    assert lines[0] == "product user_profile: removed"
    assert (stored.products, stored.joins) == ((), ())
    assert step(applied, published=("user_profile",)) == (applied, ())


def test_a_slot_moves_to_another_one_with_the_same_columns(applied: Snapshot) -> None:
    """Only psql begins a move. The joins read the old slot until the new one is full."""
    moved = Assignment(entity="star", slot=9, columns=("username",), state=AssignmentState.PLANNED)
    stored = with_states(applied, moved)
    for expected in ("writing", "backfilling"):
        stored, _ = step(stored, *ALL)
        assert (state(stored, "star", 1), state(stored, "star", 9)) == ("serving", expected)
        assert stored.access(applied.products[0].joins[0]).down == stored.assignments_of("star")[0]
    stored, lines = step(stored, *ALL)
    assert lines == (
        "entity star: GSI_1 username is retiring now",
        "entity star: GSI_9 username is serving now",
        "join star(username) = user(username): now down by GSI_9, up by GSI_1",
    )
    assert stored.products == applied.products
    assert step(stored, *ALL)[1] == ("entity star: GSI_1 username is free now",)


def test_completed_is_the_registry_when_nothing_waits(waiting: Snapshot) -> None:
    stored = completed(waiting)
    assert products(stored) == ([("user_profile", 2)], [])
    assert {one.state for one in stored.assignments} == {AssignmentState.SERVING}
