"""Apply: the entries that it stores, the second apply that changes nothing, and two applies at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from processor.engine.plan.planning import plan_alone, plan_of, requirements_of
from processor.language.definitions.load import load
from registry.errors import DefinitionChanged, MovedToShared, NoSlot, RegistryBusy, TopicTaken
from registry.model import KEY, Assignment, AssignmentState, EpochBoundary, Index, JoinAccess, Requirements
from registry.repository import Registry


def history(psql: Engine) -> list[tuple[object, ...]]:
    with psql.begin() as connection:
        rows = connection.execute(text("SELECT version, who, why, entry, operation FROM history ORDER BY id"))
        return [tuple(row) for row in rows]


def test_a_snapshot_returns_what_an_apply_stored(registry: Registry, required: Requirements) -> None:
    done = registry.apply(required, who="me", why="first")
    found = registry.snapshot()
    assert (done.version, found.version, len(done.changes)) == (1, 1, 9)
    assert {one.name: one for one in found.entities} == {one.name: one for one in required.entities}
    assert found.products == (replace(required.products[0], version=1),)
    assert list(found.products[0].definition) == list(required.products[0].definition)
    assert list(found.entities[0].definition) == ["z", "a"]
    by_name = Assignment(entity="user", slot=1, columns=("username",), state=AssignmentState.SERVING)
    of_repo = Assignment(entity="star", slot=2, columns=("repo", "owner"), state=AssignmentState.SERVING)
    assert {by_name, of_repo} < set(found.assignments)
    assert found.access(required.paths[1].join) == JoinAccess(join=required.paths[1].join, down=KEY, up=of_repo)


def test_the_second_apply_changes_nothing(registry: Registry, required: Requirements, psql: Engine) -> None:
    registry.apply(required, who="me", why="first")
    before = registry.snapshot(), history(psql)
    done = registry.apply(required, who="you", why="second")
    assert (done.version, done.changes) == (1, ())
    assert (registry.snapshot(), history(psql)) == before


def test_another_gate_of_a_product_is_an_edit_under_the_same_version(
    registry: Registry, required: Requirements
) -> None:
    """The database refuses every other content under it (`test_lone_changes`)."""
    registry.apply(required, who="me", why="first")
    product = required.products[0]
    gated = replace(product, definition={**product.definition, "publish": {"quiet": "2 s"}})
    done = registry.apply(replace(required, products=(gated,)), who="me", why="wait")
    assert (done.version, done.changes) == (
        2,
        (f"product {product.name}: changed in `publish` alone, and keeps its version 1",),
    )
    assert registry.snapshot().products == (replace(gated, version=1),)
    assert registry.apply(required, who="me", why="back").version == 3
    assert registry.snapshot().products == (replace(product, version=1),)


def test_a_join_of_two_columns_to_one_is_stored_with_its_slots(registry: Registry, psql: Engine) -> None:
    """Its two columns equal one column of the other side, so the slot has that column twice."""
    game = "game: {key: [id], columns: {id: int, home: int, away: int}}"
    texts = {
        "entities.yaml": f"team: {{key: [id], columns: {{id: int}}}}\n{game}",
        "p.yaml": "{product: p, root: team, embed: {own: {many: game, on: {home: id, away: id}}}}",
    }
    definitions = load(texts)
    registry.apply(requirements_of(definitions), who="me", why="first")
    assert registry.apply(requirements_of(definitions), who="me", why="again").changes == ()
    snapshot = registry.snapshot()
    assert {(one.entity, one.columns) for one in snapshot.assignments} == {
        ("team", ("id", "id")),
        ("game", ("away", "home")),
    }
    (join,) = snapshot.products[0].joins
    assert (join.child_columns, join.parent_columns) == (("away", "home"), ("id", "id"))
    assert plan_of(snapshot).products["p"].nodes == plan_alone(definitions, 5).products["p"].nodes
    with psql.begin() as connection:
        slots = connection.execute(text("SELECT slot FROM access_paths")).scalars().all()
    assert sorted(slots) == sorted(one.slot for one in snapshot.assignments)


def test_an_apply_is_one_version_and_signed_in_every_line_of_the_history(
    registry: Registry, required: Requirements, psql: Engine
) -> None:
    registry.apply(required, who="me", why="first")
    lines = history(psql)
    assert {line[:3] for line in lines} == {(1, "me", "first")}
    assert sorted({str(line[3]) for line in lines}) == [
        "access_paths",
        "assignments",
        "entities",
        "joins",
        "product_joins",
        "products",
    ]


def test_a_changed_product_has_its_next_version_and_old_joins_go(
    registry: Registry, required: Requirements, psql: Engine
) -> None:
    registry.apply(required, who="me", why="first")
    smaller = replace(required, products=(replace(required.products[0], joins=required.products[0].joins[:1]),))
    done = registry.apply(smaller, who="me", why="second")
    assert done.version == 2
    found = registry.snapshot()
    assert found.products[0].version == 2
    assert [one.join for one in found.joins] == [required.paths[0].join]
    assert len(found.assignments_of("star")) == 2
    assert [line[3:] for line in history(psql) if line[0] == 2] == [
        ("products", "update"),
        ("product_joins", "delete"),
        ("joins", "delete"),
        ("access_paths", "delete"),
        ("access_paths", "delete"),
    ]
    assert registry.apply(required, who="me", why="back").version == 3
    assert registry.snapshot().products[0].version == 3


def test_entities_and_products_that_are_not_required_stay(registry: Registry, required: Requirements) -> None:
    registry.apply(required, who="me", why="first")
    assert (
        registry.apply(Requirements(entities=(), products=(), paths=(), groups=()), who="me", why="none").changes == ()
    )


def test_a_refused_apply_leaves_no_trace(registry: Registry, required: Requirements, psql: Engine) -> None:
    registry.apply(required, who="me", why="first")
    before = registry.snapshot(), history(psql)
    keyed = replace(required, entities=(replace(required.entities[0], key=("username",)), *required.entities[1:]))
    with pytest.raises(DefinitionChanged, match="entity user: the key was email and is now username"):
        registry.apply(keyed, who="me", why="second")
    twins = replace(required, entities=(*required.entities[:2], replace(required.entities[2], topic="t.user")))
    with pytest.raises(TopicTaken, match=r"entity user: entity repo already has the topic `t.user`"):
        registry.apply(twins, who="me", why="third")
    tables = tuple(replace(one, definition={**one.definition, "table": one.name}) for one in required.entities)
    moved = replace(required, entities=tuple(replace(one, topic="t.user") for one in tables))
    with pytest.raises(
        MovedToShared, match=r"its rows have versions of another topic, and entities share the topic `t.user`"
    ):
        registry.apply(moved, who="me", why="third")
    crowded = replace(
        required, groups=[[Index(entity="star", columns=(c, "id"))] for c in ("username", "owner", "repo")]
    )
    crowded = replace(crowded, groups=[*crowded.groups, [Index(entity="star", columns=("owner",))]])
    with pytest.raises(NoSlot, match="all 5 are taken"):
        registry.apply(crowded, who="me", why="fourth")
    assert (registry.snapshot(), history(psql)) == before


def test_an_entity_that_no_job_has_run_with_may_have_new_indexes(
    registry: Registry, required: Requirements, wider: Requirements
) -> None:
    without = Requirements(entities=required.entities[:2], products=(), paths=(), groups=required.groups)
    registry.apply(without, who="me", why="first")
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, 1)
    registry.apply(required, who="me", why="second")
    assert registry.apply(wider, who="me", why="third").changes == ("entity repo: GSI_1 holds owner",)


def test_of_two_applies_at_once_one_waits_and_sees_the_other(registry: Registry, required: Requirements) -> None:
    start = threading.Barrier(4)

    def apply(number: int) -> int:
        start.wait()
        return len(registry.apply(required, who=f"me {number}", why="race").changes)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(apply, range(4))) == [0, 0, 0, 9]
    assert registry.snapshot().version == 1


def test_two_different_applies_at_once_both_count(registry: Registry, required: Requirements) -> None:
    registry.apply(replace(required, products=(), paths=(), groups=()), who="me", why="entities")
    start = threading.Barrier(5)

    def apply(name: str) -> int:
        start.wait()
        product = replace(required.products[0], name=name, topic=name)
        return registry.apply(replace(required, products=(product,)), who="me", why=name).version

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(apply, "abcde")) == [2, 3, 4, 5, 6]
    found = registry.snapshot()
    assert [product.name for product in found.products] == list("abcde")
    assert [(one.entity, one.slot) for one in found.assignments] == [("star", 1), ("star", 2), ("user", 1)]


def test_an_edit_waits_only_so_long_for_one_that_psql_leaves_open(
    registry: Registry, required: Requirements, psql: Engine
) -> None:
    registry.apply(required, who="me", why="first")
    with psql.begin() as connection:
        connection.execute(text("SELECT edit_by_hand('a test')"))
        connection.execute(text("UPDATE products SET version = 2, topic = 'other'"))
        with (
            pytest.raises(RegistryBusy, match="another edit holds the registry"),
            registry._database.transaction(lock_seconds=1) as other,
        ):
            other.execute(text("SELECT FROM meta FOR UPDATE"))


def test_entities_that_name_their_tables_share_a_topic_with_boundaries_of_their_own(
    registry: Registry, required: Requirements
) -> None:
    shared = [replace(one, topic="app", definition={**one.definition, "table": one.name}) for one in required.entities]
    registry.apply(replace(required, entities=tuple(shared)), who="me", why="first")
    assert {one.topic for one in registry.snapshot().entities} == {"app"}
    names = [one.name for one in shared]
    boundaries = [
        EpochBoundary(topic="app", topic_id="id", partition=0, from_offset=0, epoch=1, entity=name) for name in names
    ]
    registry.add_epochs(boundaries)
    registry.add_epochs(boundaries)
    assert {one.entity for one in registry.epochs(["app"])} == {*names}
    without = replace(
        shared[0], definition={key: value for key, value in shared[0].definition.items() if key != "table"}
    )
    with pytest.raises(TopicTaken, match="if the topic has several tables, write `table` in each of its entities"):
        registry.apply(replace(required, entities=(without, *shared[1:])), who="me", why="second")
