"""Apply: what it stores, that it repeats to nothing, and that two never mix."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from registry.errors import DefinitionChanged, NeedsBackfill, NoSlot, RegistryBusy, RegistryRefused
from registry.model import KEY, Assignment, JoinAccess, Need, Plan, State
from registry.repository import Registry


def history(psql: Engine) -> list[tuple[object, ...]]:
    with psql.begin() as connection:
        rows = connection.execute(text("SELECT version, who, why, entry, operation FROM history ORDER BY id"))
        return [tuple(row) for row in rows]


def test_what_was_applied_is_read_back(registry: Registry, plan: Plan) -> None:
    done = registry.apply(plan, who="me", why="first")
    found = registry.snapshot()
    assert (done.version, found.version, len(done.changes)) == (1, 1, 9)
    assert {one.name: one for one in found.entities} == {one.name: one for one in plan.entities}
    assert found.products == (replace(plan.products[0], version=1),)
    assert list(found.products[0].definition) == list(plan.products[0].definition)
    assert list(found.entities[0].definition) == ["z", "a"]
    by_name = Assignment(entity="user", slot=1, columns=("username",), state=State.SERVING)
    of_repo = Assignment(entity="star", slot=2, columns=("repo", "owner"), state=State.SERVING)
    assert {by_name, of_repo} < set(found.assignments)
    assert found.access(plan.paths[1].join) == JoinAccess(join=plan.paths[1].join, down=KEY, up=of_repo)


def test_the_second_apply_changes_nothing(registry: Registry, plan: Plan, psql: Engine) -> None:
    registry.apply(plan, who="me", why="first")
    before = registry.snapshot(), history(psql)
    done = registry.apply(plan, who="you", why="second")
    assert (done.version, done.changes) == (1, ())
    assert (registry.snapshot(), history(psql)) == before


def test_an_apply_is_one_version_and_signed_in_every_line_of_the_history(
    registry: Registry, plan: Plan, psql: Engine
) -> None:
    registry.apply(plan, who="me", why="first")
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


def test_a_changed_product_has_its_next_version_and_old_joins_go(registry: Registry, plan: Plan, psql: Engine) -> None:
    registry.apply(plan, who="me", why="first")
    smaller = replace(plan, products=(replace(plan.products[0], joins=plan.products[0].joins[:1]),))
    done = registry.apply(smaller, who="me", why="second")
    assert done.version == 2
    found = registry.snapshot()
    assert found.products[0].version == 2
    assert [one.join for one in found.joins] == [plan.paths[0].join]
    assert len(found.of("star")) == 2
    assert [line[3:] for line in history(psql) if line[0] == 2] == [
        ("products", "update"),
        ("product_joins", "delete"),
        ("joins", "delete"),
        ("access_paths", "delete"),
        ("access_paths", "delete"),
    ]
    assert registry.apply(plan, who="me", why="back").version == 3
    assert registry.snapshot().products[0].version == 3


def test_entities_and_products_that_are_not_named_stay(registry: Registry, plan: Plan) -> None:
    registry.apply(plan, who="me", why="first")
    assert registry.apply(Plan(entities=(), products=(), paths=(), groups=()), who="me", why="none").changes == ()


def test_a_refused_apply_leaves_no_trace(registry: Registry, plan: Plan, psql: Engine) -> None:
    registry.apply(plan, who="me", why="first")
    before = registry.snapshot(), history(psql)
    keyed = replace(plan, entities=(replace(plan.entities[0], key=("username",)), *plan.entities[1:]))
    with pytest.raises(DefinitionChanged, match="entity user: the key was email and is now username"):
        registry.apply(keyed, who="me", why="second")
    twins = replace(plan, entities=(*plan.entities[:2], replace(plan.entities[2], topic="t.user")))
    with pytest.raises(RegistryRefused, match="entities_topic_uq"):
        registry.apply(twins, who="me", why="third")
    crowded = replace(plan, groups=[[Need(entity="star", columns=(c, "id"))] for c in ("username", "owner", "repo")])
    crowded = replace(crowded, groups=[*crowded.groups, [Need(entity="star", columns=("owner",))]])
    with pytest.raises(NoSlot, match="all 5 are taken"):
        registry.apply(crowded, who="me", why="fourth")
    assert (registry.snapshot(), history(psql)) == before


def test_an_index_on_rows_that_a_job_has_stored_needs_a_backfill(registry: Registry, plan: Plan, wider: Plan) -> None:
    registry.apply(plan, who="me", why="first")
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, registry.snapshot().version)
    registry.release(lease)
    with pytest.raises(NeedsBackfill, match="a job has run with repo"):
        registry.apply(wider, who="me", why="second")


def test_an_entity_newer_than_what_any_job_has_applied_may_have_new_indexes(
    registry: Registry, plan: Plan, wider: Plan
) -> None:
    without = Plan(entities=plan.entities[:2], products=(), paths=(), groups=plan.groups)
    registry.apply(without, who="me", why="first")
    lease = registry.take_lease("job", "here", 4, take_over=False, expires_after=30)
    registry.applied(lease, 1)
    registry.apply(plan, who="me", why="second")
    assert registry.apply(wider, who="me", why="third").changes == ("entity repo: GSI_1 holds owner",)


def test_of_two_applies_at_once_one_waits_and_sees_the_other(registry: Registry, plan: Plan) -> None:
    start = threading.Barrier(4)

    def apply(number: int) -> int:
        start.wait()
        return len(registry.apply(plan, who=f"me {number}", why="race").changes)

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(apply, range(4))) == [0, 0, 0, 9]
    assert registry.snapshot().version == 1


def test_two_different_applies_at_once_both_count(registry: Registry, plan: Plan) -> None:
    registry.apply(replace(plan, products=(), paths=(), groups=()), who="me", why="entities")
    start = threading.Barrier(5)

    def apply(name: str) -> int:
        start.wait()
        product = replace(plan.products[0], name=name, topic=name)
        return registry.apply(replace(plan, products=(product,)), who="me", why=name).version

    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(apply, "abcde")) == [2, 3, 4, 5, 6]
    found = registry.snapshot()
    assert [product.name for product in found.products] == list("abcde")
    assert [(one.entity, one.slot) for one in found.assignments] == [("star", 1), ("star", 2), ("user", 1)]


def test_an_edit_that_psql_leaves_open_is_not_waited_for_for_ever(registry: Registry, plan: Plan, psql: Engine) -> None:
    registry.apply(plan, who="me", why="first")
    with psql.begin() as connection:
        connection.execute(text("UPDATE products SET topic = 'other'"))
        with (
            pytest.raises(RegistryBusy, match="another edit holds the registry"),
            registry._database.transaction(lock_seconds=1) as other,
        ):
            other.execute(text("SELECT FROM meta FOR UPDATE"))
