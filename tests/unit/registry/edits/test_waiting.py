"""Products over stored rows: they wait for their slots, and the live version stays meanwhile."""

from dataclasses import replace

import pytest

from registry.edits.apply import apply
from registry.edits.edit import edited
from registry.errors import RootChanged, SlotRetires, TopicTaken
from registry.model import AssignmentState, Index, JoinAccess, JoinSpec, ProductEntry, Requirements, Snapshot

ALL = ("user", "star", "pull_request", "payment_info", "repo")
BY_REPO = JoinSpec(child="star", child_columns=("repo_name",), parent="pull_request", parent_columns=("repo",))


def with_join(required: Requirements) -> Requirements:
    """The product with one more join, over new slots of `star` and `pull_request`."""
    (product,) = required.products
    up = Index(entity="pull_request", columns=("repo",))
    path = JoinAccess(join=BY_REPO, down=Index(entity="star", columns=("repo_name",)), up=up)
    changed = replace(product, joins=(*product.joins, BY_REPO))
    return replace(required, products=(changed,), paths=(*required.paths, path))


def products(snapshot: Snapshot) -> tuple[list[tuple[str, int]], list[tuple[str, int]]]:
    """The live and the waiting products, each with its version."""
    return [(p.name, p.version) for p in snapshot.products], [(p.name, p.version) for p in snapshot.waiting]


def test_a_changed_product_waits_and_its_new_slots_are_planned(applied: Snapshot, github: Requirements) -> None:
    change = apply(applied, with_join(github), has_run=("star",))
    assert change.changes == (
        "entity pull_request: GSI_2 holds repo",
        "entity star: GSI_3 will hold repo_name (planned)",
        "join star(repo_name) = pull_request(repo): added, down by GSI_3, up by GSI_2",
        "product user_profile: changed, version 2 waits until its slots are full",
    )
    after = edited(applied, change)
    assert products(after) == ([("user_profile", 1)], [("user_profile", 2)])
    assert after.products == applied.products
    assert BY_REPO in {access.join for access in after.joins}


def test_a_new_product_over_stored_rows_waits_even_if_all_its_slots_serve(
    applied: Snapshot, github: Requirements
) -> None:
    more = replace(github.products[0], name="other", topic="other")
    change = apply(applied, replace(github, products=(more,)), has_run=("repo",))
    assert change.changes == ("product other: added, version 1 waits until its slots are full",)


def test_a_product_of_other_entities_than_those_with_rows_is_live_at_once(
    applied: Snapshot, github: Requirements
) -> None:
    alone = ProductEntry(name="repos", topic="repos", root="repo", definition={}, joins=())
    change = apply(applied, replace(github, products=(alone,)), has_run=("user", "star"))
    assert change.changes == ("product repos: added, version 1",)


def test_the_same_requirements_again_change_nothing_while_the_product_waits(
    applied: Snapshot, github: Requirements
) -> None:
    after = edited(applied, apply(applied, with_join(github), has_run=ALL))
    assert apply(after, with_join(github), has_run=ALL).changes == ()


def test_the_live_definition_again_withdraws_the_version_that_waits(applied: Snapshot, github: Requirements) -> None:
    after = edited(applied, apply(applied, with_join(github), has_run=ALL))
    change = apply(after, github, has_run=ALL)
    assert change.changes == (
        "product user_profile: version 2 waits no more",
        "join star(repo_name) = pull_request(repo): dropped, no product uses it",
    )
    back = edited(after, change)
    assert products(back) == ([("user_profile", 1)], [])
    assert back.assignments == after.assignments


def test_a_version_never_repeats(applied: Snapshot, github: Requirements) -> None:
    stored = applied
    for required in (with_join(github), github, with_join(github)):
        stored = edited(stored, apply(stored, required, has_run=ALL))
    assert products(stored) == ([("user_profile", 1)], [("user_profile", 3)])
    other = replace(with_join(github).products[0], definition={"other": 1})
    stored = edited(stored, apply(stored, replace(with_join(github), products=(other,)), has_run=ALL))
    assert products(stored) == ([("user_profile", 1)], [("user_profile", 4)])


def test_the_layout_rises_when_a_slot_becomes_written_and_not_when_it_is_planned(
    applied: Snapshot, github: Requirements
) -> None:
    assert {one.name: one.layout for one in applied.entities} == {
        **dict.fromkeys(("payment_info", "pull_request", "star", "user"), 1),
        "repo": 0,
    }
    after = edited(applied, apply(applied, with_join(github), has_run=("star",)))
    assert {one.name: one.layout for one in after.entities if one.layout > 1} == {"pull_request": 2}


def test_another_root_is_refused_once_a_job_has_run(applied: Snapshot, github: Requirements) -> None:
    other = replace(github, products=(replace(github.products[0], root="star"),))
    assert apply(applied, other, has_run=()).changes == ("product user_profile: changed, version 2",)
    with pytest.raises(RootChanged, match=r"its root was user and is now star, .* give the new product another name"):
        apply(applied, other, has_run=("user",))


def test_a_slot_that_retires_answers_no_join(applied: Snapshot, github: Requirements) -> None:
    stored = replace(
        applied, assignments=tuple(replace(one, state=AssignmentState.RETIRING) for one in applied.assignments)
    )
    with pytest.raises(
        SlotRetires, match=r"the slot of payment_info with user_id retires: wait until the job has freed it"
    ):
        apply(stored, github, has_run=())


def test_a_product_that_waits_shares_no_topic(applied: Snapshot, github: Requirements) -> None:
    after = edited(applied, apply(applied, with_join(github), has_run=ALL))
    other = ProductEntry(name="other", topic="user_profile", root="repo", definition={}, joins=())
    moved = replace(with_join(github).products[0], topic="moved")
    after = edited(after, apply(after, replace(with_join(github), products=(moved,)), has_run=ALL))
    for topic in ("user_profile", "moved"):
        with pytest.raises(TopicTaken, match=f"product user_profile of the registry already has the topic `{topic}`"):
            apply(after, replace(github, products=(replace(other, topic=topic),)), has_run=ALL)
