"""Statistics in the database: stored whole, replaced whole, and no edit of the registry."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine, text

from processor.tools.inspect.board import shown_value
from registry.errors import RegistryMissing
from registry.model import EntityStatistics, JoinSpec, JoinStatistics, Requirements, Statistics
from registry.repository import Registry

STARS = JoinSpec(child="star", child_columns=("username",), parent="user", parent_columns=("username",))
REPOS = JoinSpec(child="repo", child_columns=("owner", "name"), parent="star", parent_columns=("owner", "repo"))
FIRST = Statistics(
    taken_at=datetime(2026, 11, 21, 9, 30, tzinfo=UTC),
    entities=(
        EntityStatistics(entity="star", rows=10**10, mean_bytes=210.5, most_bytes=400, entry_bytes=99.5),
        EntityStatistics(entity="user", rows=0, mean_bytes=0.0, most_bytes=0),
    ),
    joins=(
        JoinStatistics(join=REPOS, direction="up", mean=0.5, most=2, value="acme#tool"),
        JoinStatistics(join=STARS, direction="down", mean=12.25, most=1200, value="octocat"),
        JoinStatistics(join=STARS, direction="up", mean=1.0, most=1, value="octocat"),
    ),
)


def test_statistics_are_read_back_and_replaced_as_a_whole(registry: Registry, required: Requirements) -> None:
    registry.apply(required, who="me", why="first")
    assert registry.statistics.last() is None

    registry.statistics.keep(FIRST)
    assert registry.statistics.last() == FIRST
    second = replace(FIRST, taken_at=datetime(2026, 11, 22, tzinfo=UTC), entities=FIRST.entities[:1], joins=())
    registry.statistics.keep(second)
    assert registry.statistics.last() == second


def test_statistics_are_no_edit(registry: Registry, required: Requirements, psql: Engine) -> None:
    registry.apply(required, who="me", why="first")
    history = text("SELECT count(*) FROM history")
    with psql.begin() as connection:
        before = connection.scalar(history)
    snapshot = registry.snapshot()

    registry.statistics.keep(FIRST)
    assert registry.snapshot() == snapshot
    with psql.begin() as connection:
        assert connection.scalar(history) == before


def test_the_statistics_of_a_join_go_with_it(registry: Registry, required: Requirements) -> None:
    registry.apply(required, who="me", why="first")
    registry.statistics.keep(FIRST)
    (product,) = required.products
    less = replace(required, products=(replace(product, joins=(STARS,)),), paths=required.paths[:1])
    registry.apply(less, who="me", why="without repositories")

    found = registry.statistics.last()
    assert found is not None
    assert found.joins == FIRST.joins[1:]
    registry.statistics.keep(FIRST)  # taken before that apply
    assert registry.statistics.last() == found


def test_the_error_for_a_registry_without_statistics_names_the_command_to_run(registry: Registry, psql: Engine) -> None:
    with psql.begin() as connection:
        connection.execute(text("DROP TABLE entity_statistics"))
    with pytest.raises(RegistryMissing, match="an older one: run `statestore apply`"):
        registry.statistics.last()


def test_an_erasure_takes_its_values_out_and_leaves_the_counts(registry: Registry, required: Requirements) -> None:
    registry.apply(required, who="me", why="first")
    registry.statistics.keep(FIRST)
    assert registry.statistics.forget({"octocat", "nobody"}) == 2
    assert registry.statistics.forget({"octocat"}) == 0
    assert registry.statistics.forget(()) == 0
    read = registry.statistics.last()
    assert read is not None
    assert [(one.most, one.value, shown_value(one)) for one in read.joins] == [
        (2, "acme#tool", "'acme#tool'"),
        (1200, None, "an erased value"),
        (1, None, "an erased value"),
    ]
