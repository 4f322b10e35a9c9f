"""What an apply changes, and what it may not."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from registry.edit import Edit, edit
from registry.errors import DefinitionChanged, Malformed, NeedsBackfill, RegistryError
from registry.model import KEY, EntityEntry, JoinPaths, JoinSpec, Need, Plan, Snapshot, State


def with_entity(plan: Plan, name: str, change: Callable[[EntityEntry], EntityEntry]) -> Plan:
    return replace(plan, entities=tuple(change(one) if one.name == name else one for one in plan.entities))


def with_type(plan: Plan, entity: str, column: str, type_name: str) -> Plan:
    return with_entity(plan, entity, lambda one: replace(one, columns={**one.columns, column: type_name}))


def test_the_first_apply_says_what_it_adds(empty: Snapshot, github: Plan) -> None:
    assert edit(empty, github, has_run=()).says == (
        "entity user: added",
        "entity star: added",
        "entity pull_request: added",
        "entity payment_info: added",
        "entity repo: added",
        "entity payment_info: GSI_1 holds user_id",
        "entity pull_request: GSI_1 holds author",
        "entity star: GSI_1 holds username",
        "entity star: GSI_2 holds repo_owner#repo_name",
        "entity user: GSI_1 holds username",
        "entity user: GSI_2 holds id",
        "join star(username) = user(username): added, down by GSI_1, up by GSI_1",
        "join repo(name, owner) = star(repo_name, repo_owner): added, down by key, up by GSI_2",
        "join pull_request(author) = user(username): added, down by GSI_1, up by GSI_1",
        "join payment_info(user_id) = user(id): added, down by GSI_1, up by GSI_2",
        "product user_profile: added, version 1",
    )


def test_the_second_apply_changes_nothing(applied: Snapshot, github: Plan) -> None:
    change = edit(applied, github, has_run=("user", "star"))
    assert change == Edit(entities=(), assignments=(), joins=(), products=(), dropped=(), says=())


def test_the_order_of_members_in_a_definition_is_a_change(applied: Snapshot, github: Plan) -> None:
    turned = dict(reversed(github.products[0].definition.items()))
    change = edit(applied, replace(github, products=(replace(github.products[0], definition=turned),)), has_run=())
    assert change.says == ("product user_profile: changed, version 2",)


def test_a_join_that_no_product_uses_any_more_goes_and_its_slot_stays(applied: Snapshot, github: Plan) -> None:
    fewer = replace(github.products[0], joins=github.products[0].joins[:3])
    change = edit(applied, replace(github, products=(fewer,)), has_run=("user",))
    assert change.says == (
        "product user_profile: changed, version 2",
        "join payment_info(user_id) = user(id): dropped, no product uses it",
    )


def test_what_the_plan_does_not_name_stays(applied: Snapshot) -> None:
    assert edit(applied, Plan(entities=(), products=(), paths=(), groups=()), has_run=()).says == ()


def test_a_join_written_the_other_way_round_is_the_same_join() -> None:
    one = JoinSpec(child="a", child_columns=("x", "y"), parent="b", parent_columns=("p", "q"))
    assert one == JoinSpec(child="a", child_columns=("y", "x"), parent="b", parent_columns=("q", "p"))
    assert one != JoinSpec(child="a", child_columns=("x", "y"), parent="b", parent_columns=("q", "p"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda one: replace(one, key=("id",)), "entity user: the key was email and is now id"),
        (lambda one: replace(one, shards=4), "entity user: the number of shards was 1 and is now 4"),
        (
            lambda one: replace(one, columns={**one.columns, "email": "int"}),
            "entity user: the type of the key column email was string and is now int",
        ),
        (
            lambda one: replace(one, columns={**one.columns, "username": "int"}),
            "entity user: the type of username was string and is now int, but a job has run",
        ),
    ],
)
def test_what_rows_are_stored_under_does_not_change(
    applied: Snapshot, github: Plan, change: Callable[[EntityEntry], EntityEntry], says: str
) -> None:
    with pytest.raises((DefinitionChanged, NeedsBackfill), match=says):
        edit(applied, with_entity(github, "user", change), has_run=("user",))


def test_a_column_that_a_slot_holds_stays_declared(applied: Snapshot, github: Plan) -> None:
    user = with_entity(github, "user", lambda one: replace(one, columns={"email": "string", "username": "string"}))
    with pytest.raises(DefinitionChanged, match="column id, which GSI_2 holds, was int and is now not declared"):
        edit(applied, Plan(entities=user.entities[:1], products=(), paths=(), groups=()), has_run=())


def test_before_any_job_has_run_the_type_of_an_indexed_column_may_change(applied: Snapshot, github: Plan) -> None:
    change = edit(applied, with_type(github, "user", "username", "int"), has_run=("star",))
    assert change.says == ("entity user: changed",)


def test_a_new_index_on_an_entity_that_a_job_has_run_with_needs_a_backfill(applied: Snapshot, github: Plan) -> None:
    more = replace(github, groups=(*github.groups, [Need(entity="repo", columns=("owner",))]))
    assert edit(applied, more, has_run=("user", "star")).says == ("entity repo: GSI_1 holds owner",)
    with pytest.raises(NeedsBackfill, match="entity repo: GSI_1 holds owner would be new"):
        edit(applied, more, has_run=("repo",))


@pytest.mark.parametrize("state", [State.PLANNED, State.WRITING, State.BACKFILLING, State.RETIRING])
def test_a_join_is_not_answered_by_a_slot_that_does_not_serve(applied: Snapshot, github: Plan, state: State) -> None:
    stored = replace(applied, assignments=tuple(replace(one, state=state) for one in applied.assignments))
    with pytest.raises(NeedsBackfill, match=f"is {state}, not serving"):
        edit(stored, github, has_run=())


def misread(plan: Plan) -> Plan:
    first = plan.paths[0]
    return replace(plan, paths=(JoinPaths(join=first.join, down=KEY, up=first.up), *plan.paths[1:]))


def crossed(plan: Plan) -> Plan:
    first = plan.paths[0]
    return replace(plan, paths=(JoinPaths(join=first.join, down=first.up, up=first.down), *plan.paths[1:]))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda plan: replace(plan, entities=plan.entities[1:]), "there is no entity user"),
        (
            lambda plan: replace(plan, paths=plan.paths[1:]),
            "user_profile: the plan has no access path for its join star",
        ),
        (misread, "no key read down, the key of star is"),
        (crossed, "does not answer it down"),
        (lambda plan: replace(plan, groups=[[Need(entity="user", columns=("nope",))]]), "user declares no column nope"),
    ],
)
def test_a_plan_that_does_not_hold_together_is_malformed(
    empty: Snapshot, github: Plan, broken: Callable[[Plan], Plan], says: str
) -> None:
    with pytest.raises(Malformed, match=says):
        edit(empty, broken(github), has_run=())


def test_every_error_of_the_registry_is_one_kind() -> None:
    assert issubclass(NeedsBackfill, RegistryError)
    assert issubclass(Malformed, RegistryError)


@pytest.mark.parametrize("columns", [(), ("x", "x")])
def test_an_index_has_columns_and_each_once(columns: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="needs columns, each once"):
        Need(entity="a", columns=columns)


def test_the_sides_of_a_join_pair_up() -> None:
    with pytest.raises(ValueError, match="same number of columns"):
        JoinSpec(child="a", child_columns=("x",), parent="b", parent_columns=())
