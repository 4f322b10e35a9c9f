"""The changes of an apply, and the changes that it refuses."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from registry.edits.apply import apply
from registry.edits.edit import Edit, edited
from registry.errors import (
    ColumnHeld,
    ColumnStored,
    ColumnUsed,
    DefinitionChanged,
    Malformed,
    RegistryError,
    SlotRetires,
)
from registry.model import KEY, EntityEntry, Index, JoinAccess, JoinSpec, Requirements, Snapshot


def with_entity(required: Requirements, name: str, change: Callable[[EntityEntry], EntityEntry]) -> Requirements:
    return replace(required, entities=tuple(change(one) if one.name == name else one for one in required.entities))


def with_type(required: Requirements, entity: str, column: str, type_name: str) -> Requirements:
    return with_entity(required, entity, lambda one: replace(one, columns={**one.columns, column: type_name}))


def test_the_first_apply_lists_its_additions(empty: Snapshot, github: Requirements) -> None:
    assert apply(empty, github, has_run=()).changes == (
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


def test_the_second_apply_changes_nothing(applied: Snapshot, github: Requirements) -> None:
    change = apply(applied, github, has_run=("user", "star"))
    assert change == Edit()


def test_the_order_of_members_in_a_definition_is_a_change(applied: Snapshot, github: Requirements) -> None:
    turned = dict(reversed([*github.products[0].definition.items()]))
    change = apply(applied, replace(github, products=(replace(github.products[0], definition=turned),)), has_run=())
    assert change.changes == ("product user_profile: changed, version 2",)


def test_a_join_that_no_product_uses_any_more_goes_and_its_slot_stays(applied: Snapshot, github: Requirements) -> None:
    fewer = replace(github.products[0], joins=github.products[0].joins[:3])
    change = apply(applied, replace(github, products=(fewer,)), has_run=())
    assert change.changes == (
        "product user_profile: changed, version 2",
        "join payment_info(user_id) = user(id): dropped, no product uses it",
    )
    (slot,) = edited(applied, change).assignments_of("payment_info")
    assert slot.columns == ("user_id",)


def test_entities_and_products_that_are_not_required_stay(applied: Snapshot) -> None:
    assert apply(applied, Requirements(entities=(), products=(), paths=(), groups=()), has_run=()).changes == ()


def test_a_join_written_the_other_way_round_is_the_same_join() -> None:
    one = JoinSpec(child="a", child_columns=("x", "y"), parent="b", parent_columns=("p", "q"))
    assert one == JoinSpec(child="a", child_columns=("y", "x"), parent="b", parent_columns=("q", "p"))
    assert one != JoinSpec(child="a", child_columns=("x", "y"), parent="b", parent_columns=("q", "p"))


@pytest.mark.parametrize(
    ("change", "message"),
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
def test_a_definition_under_which_rows_are_stored_does_not_change(
    applied: Snapshot, github: Requirements, change: Callable[[EntityEntry], EntityEntry], message: str
) -> None:
    with pytest.raises((DefinitionChanged, ColumnHeld), match=message):
        apply(applied, with_entity(github, "user", change), has_run=("user",))


def test_a_column_that_a_slot_holds_stays_declared(applied: Snapshot, github: Requirements) -> None:
    user = with_entity(github, "user", lambda one: replace(one, columns={"email": "string", "username": "string"}))
    message = (
        "column id is declared no more, but GSI_2 holds it: keep `id: int` until no product joins by it and its slots"
    )
    with pytest.raises(ColumnUsed, match=message):
        apply(applied, Requirements(entities=user.entities[:1], products=(), paths=(), groups=()), has_run=())


def test_before_any_job_has_run_the_type_of_an_indexed_column_may_change(
    applied: Snapshot, github: Requirements
) -> None:
    change = apply(applied, with_type(github, "user", "username", "int"), has_run=("star",))
    assert change.changes == ("entity user: changed",)


WIDENED = [
    ("int", "decimal"),
    ("int", "json"),
    ("string", "json"),
    ("bool", "json"),
    ("string[]", "json"),
    ("json[]", "json"),
    ("json", "json(text)"),
    ("json(text)[]", "json[]"),
    ("int[]", "decimal[]"),
    ("decimal(12,2)", "decimal"),
    ("decimal", "decimal(12,2)"),
    ("timestamp(ms)", "timestamp"),
    ("timestamp", "timestamp(us)"),
]
NARROWED = [
    ("int", "string"),
    ("int", "float"),
    ("decimal", "int"),
    ("float", "decimal"),
    ("json", "string"),
    ("date", "timestamp"),
    ("timestamp", "json"),
    ("decimal", "json"),
    ("string", "string[]"),
    ("int[]", "decimal"),
    ("string", "bool"),
    ("json(text)", "json[]"),
]


@pytest.mark.parametrize(("was", "now"), WIDENED)
def test_a_type_that_takes_all_stored_values_may_follow(
    empty: Snapshot, github: Requirements, was: str, now: str
) -> None:
    narrow, wide = with_type(github, "user", "more", was), with_type(github, "user", "more", now)
    stored = edited(empty, apply(empty, narrow, has_run=()))
    assert apply(stored, wide, has_run=("user",)).changes == ("entity user: changed",)


@pytest.mark.parametrize(("was", "now"), NARROWED)
def test_another_type_is_refused_once_rows_may_be_stored(
    empty: Snapshot, github: Requirements, was: str, now: str
) -> None:
    narrow, other = with_type(github, "user", "more", was), with_type(github, "user", "more", now)
    stored = edited(empty, apply(empty, narrow, has_run=()))
    assert apply(stored, other, has_run=("star",)).changes == ("entity user: changed",)
    with pytest.raises(ColumnStored) as error:
        apply(stored, other, has_run=("user",))
    assert str(error.value) == (
        f"entity user: column more was {was} and is now {now}, but a job has run with user, and nothing rewrites its stored "
        f"rows: declare `more: {was}` or a type that takes all its values, or use a new table and registry schema"
    )


@pytest.mark.parametrize(("was", "now"), [one for one in WIDENED if one[1] != "json"])
def test_a_column_that_a_slot_holds_may_get_a_type_with_the_same_encoding(
    empty: Snapshot, github: Requirements, was: str, now: str
) -> None:
    narrow, wide = with_type(github, "user", "username", was), with_type(github, "user", "username", now)
    stored = edited(empty, apply(empty, narrow, has_run=()))
    assert apply(stored, wide, has_run=("user",)).changes == ("entity user: changed",)


@pytest.mark.parametrize(("was", "now"), [*NARROWED, *(one for one in WIDENED if one[1] == "json")])
def test_a_column_that_a_slot_holds_keeps_its_encoding(
    empty: Snapshot, github: Requirements, was: str, now: str
) -> None:
    narrow, other = with_type(github, "user", "username", was), with_type(github, "user", "username", now)
    stored = edited(empty, apply(empty, narrow, has_run=()))
    with pytest.raises(ColumnHeld, match="GSI_1 of its stored rows has the encoding of the old type"):
        apply(stored, other, has_run=("user",))


def test_a_dropped_column_of_stored_rows_comes_back_only_with_a_type_that_takes_their_values(
    empty: Snapshot, github: Requirements
) -> None:
    stored = edited(empty, apply(empty, with_type(github, "user", "more", "int"), has_run=()))
    dropped = edited(stored, apply(stored, github, has_run=("user",)))
    assert entity_of(dropped, "user").dropped == {"more": "int"}
    assert apply(dropped, github, has_run=("user",)) == Edit()
    topic = with_entity(github, "user", lambda one: replace(one, topic="users"))
    assert entity_of(edited(dropped, apply(dropped, topic, has_run=("user",))), "user").dropped == {"more": "int"}
    with pytest.raises(ColumnStored, match="column more was int and is now string, but a job has run with user"):
        apply(dropped, with_type(github, "user", "more", "string"), has_run=("user",))
    back = edited(dropped, apply(dropped, with_type(github, "user", "more", "decimal"), has_run=("user",)))
    assert entity_of(back, "user").dropped == {}
    again = edited(back, apply(back, github, has_run=("user",)))
    assert entity_of(again, "user").dropped == {"more": "decimal"}


def test_before_any_job_has_run_a_dropped_column_is_forgotten(empty: Snapshot, github: Requirements) -> None:
    stored = edited(empty, apply(empty, with_type(github, "user", "more", "int"), has_run=()))
    dropped = edited(stored, apply(stored, github, has_run=("star",)))
    assert entity_of(dropped, "user").dropped == {}
    assert apply(dropped, with_type(github, "user", "more", "string"), has_run=("user",)).changes


def entity_of(stored: Snapshot, name: str) -> EntityEntry:
    return next(one for one in stored.entities if one.name == name)


def misread(required: Requirements) -> Requirements:
    first = required.paths[0]
    return replace(required, paths=(JoinAccess(join=first.join, down=KEY, up=first.up), *required.paths[1:]))


def crossed(required: Requirements) -> Requirements:
    first = required.paths[0]
    return replace(required, paths=(JoinAccess(join=first.join, down=first.up, up=first.down), *required.paths[1:]))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda required: replace(required, entities=required.entities[1:]), "there is no entity user"),
        (
            lambda required: replace(required, paths=required.paths[1:]),
            "user_profile: there is no access path for its join star",
        ),
        (misread, "no key read down, the key of star is"),
        (crossed, "does not answer it down"),
        (
            lambda required: replace(required, groups=[[Index(entity="user", columns=("nope",))]]),
            "user declares no column nope",
        ),
        (
            lambda required: replace(required, groups=[[Index(entity="user", columns=())]]),
            "an index on user needs columns",
        ),
    ],
)
def test_requirements_that_do_not_hold_together_are_malformed(
    empty: Snapshot, github: Requirements, broken: Callable[[Requirements], Requirements], message: str
) -> None:
    with pytest.raises(Malformed, match=message):
        apply(empty, broken(github), has_run=())


def test_every_error_of_the_registry_is_a_registry_error() -> None:
    assert issubclass(SlotRetires, RegistryError)
    assert issubclass(Malformed, RegistryError)


def test_the_sides_of_a_join_pair_up() -> None:
    with pytest.raises(ValueError, match="same number of columns"):
        JoinSpec(child="a", child_columns=("x",), parent="b", parent_columns=())


def test_another_gate_keeps_the_version_of_a_live_product(applied: Snapshot, github: Requirements) -> None:
    gated = with_gate(github, {"quiet": "2 s"})
    change = apply(applied, gated, has_run=("user", "star"))
    assert change.changes == ("product user_profile: changed in `publish` alone, and keeps its version 1",)
    after = edited(applied, change)
    assert (after.products[0].version, after.products[0].definition) == (1, gated.products[0].definition)
    assert after.waiting == ()
    assert apply(after, gated, has_run=("user", "star")) == Edit()
    assert apply(after, github, has_run=("user", "star")).products == applied.products


def test_another_gate_and_another_document_are_one_new_version(applied: Snapshot, github: Requirements) -> None:
    gated = with_gate(github, {"quiet": "2 s"})
    both = replace(gated.products[0], definition={**gated.products[0].definition, "fields": ["email"]})
    change = apply(applied, replace(gated, products=(both,)), has_run=())
    assert change.changes == ("product user_profile: changed, version 2",)


def test_a_product_that_waits_keeps_its_version_too(applied: Snapshot, github: Requirements) -> None:
    fewer = replace(github.products[0], definition={"root": "user", "fields": ["email"]})
    required = replace(github, products=(fewer,))
    waiting = edited(applied, apply(applied, required, has_run=("user",)))
    change = apply(waiting, with_gate(required, {"every": "1 s"}), has_run=("user",))
    assert change.changes == (
        "product user_profile: version 2, which waits, is changed in `publish` alone, and keeps its version 2",
    )
    assert [one.version for one in edited(waiting, change).products] == [1]


def with_gate(required: Requirements, gate: dict[str, str]) -> Requirements:
    product = required.products[0]
    return replace(required, products=(replace(product, definition={**product.definition, "publish": gate}),))
