"""Statistics of a small state, counted by hand."""

from datetime import UTC, datetime
from random import Random
from textwrap import dedent
from typing import Any

from processor.cli.plan import statistics_lines
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.tools.inspect.estimate import take_statistics
from processor.values import canonical_json
from processor.values.record import Record
from registry.model import Statistics
from statestore.items import DELETED
from statestore.values import item_size

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
DEFINITIONS = {
    "entities.yaml": dedent("""
        user: {key: [id], columns: {id: int, name: string, friends: "int[]"}, shards: 2}
        star: {key: [who, repo], columns: {who: string, repo: int}}
        repo: {key: [id], columns: {id: int}}
        empty: {key: [id], columns: {id: int, who: string}}
        """),
    "users.yaml": dedent("""
        product: users
        root: user
        embed:
          stars: {many: star, on: {who: name}, join: {repo: {one: repo, on: {id: repo}}}, fields: [repo]}
          befriended: {many: user, on: {id: "friends[]"}, fields: [name]}
          empties: {many: empty, on: {who: name}, strong: true}
        """),
}
ROWS: dict[str, list[dict[str, Any]]] = {
    "user": [
        {"id": 1, "name": "octo", "friends": [2, 3, 3, 9]},
        {"id": 2, "name": "hub", "friends": [1]},
        {"id": 3, "name": None, "friends": None},
    ],
    "star": [{"who": who, "repo": repo} for who, repo in (("octo", 1), ("octo", 2), ("octo", 3), ("hub", 1))],
    "repo": [{"id": 1}, {"id": 2}],
}


def state_of(rows: dict[str, list[dict[str, Any]]], *gone: tuple[str, dict[str, Any]]) -> Trial:
    """A state of these rows, without the rows `gone`, which were deleted after they were stored."""
    trial = Trial(plan=plan_alone(load(DEFINITIONS), slots=5), settings=Settings(slots=5))
    puts = [(entity, row, row) for entity, each in rows.items() for row in each]
    deletes = [(entity, row, None) for entity, row in gone]
    trial.batch(record(trial.plan, *change, offset) for offset, change in enumerate([*puts, *deletes]))
    trial.finish()
    return trial


def record(plan: Plan, entity: str, row: dict[str, Any], value: dict[str, Any] | None, offset: int) -> Record:
    key = canonical_json.encode({column: row[column] for column in plan.entities[entity].entity.key})
    body = None if value is None else canonical_json.encode(value)
    return Record(topic=entity, partition=0, offset=offset, key=key, value=body)


def taken(trial: Trial, sample: int = 200) -> Statistics:
    return take_statistics(trial.plan, trial.store, sample=sample, random=Random(1), at=NOW)


def joins(statistics: Statistics) -> dict[str, tuple[float, int, str | None]]:
    return {f"{one.join}, {one.direction}": (one.mean, one.most, one.value) for one in statistics.joins}


def test_statistics_count_rows_without_deleted_rows() -> None:
    state = state_of(ROWS, ("star", {"who": "octo", "repo": 3}))
    found = {one.entity: one for one in taken(state).entities}
    assert {name: one.rows for name, one in found.items()} == {"user": 3, "star": 3, "repo": 2, "empty": 0}
    sizes = [item_size(state.store.get([key])[key]) for key in state.store.walk("TABLE#star", DELETED)]
    assert (found["star"].mean_bytes, found["star"].most_bytes) == (sum(sizes) / 3, max(sizes))
    assert (found["empty"].mean_bytes, found["empty"].most_bytes) == (0, 0)


def test_statistics_ask_a_join_both_ways_for_each_row_of_the_side_that_asks() -> None:
    assert joins(taken(state_of(ROWS))) == {
        "star(who) = user(name), down": (4 / 3, 3, "octo"),  # octo has 3, hub has 1, the user without a name has none
        "star(who) = user(name), up": (1, 1, "hub"),
        "repo(id) = star(repo), down": (3 / 4, 1, "1"),  # the repository of one star does not exist
        "repo(id) = star(repo), up": (3 / 2, 2, "1"),
        "user(id) = user(friends[]), down": (3 / 3, 1, "1"),  # no user has the id 9
        "user(id) = user(friends[]), up": (3 / 3, 1, "1"),
        "empty(who) = user(name), strong, down": (0, 0, "hub"),
    }


def test_statistics_ask_for_each_distinct_value_once() -> None:
    state = state_of({"user": ROWS["user"], "star": [{"who": "octo", "repo": number} for number in range(50)]})
    before = state.store.requests.copy()
    taken(state)
    spent = state.store.requests - before
    # partitions of user (2), star, repo, empty; stars, users and empties by two names; friends by four ids
    assert spent["Query"] == 5 + 2 + 2 + 2 + 4


def test_a_small_sample_finds_a_value_that_many_rows_hold() -> None:
    users = [{"id": n, "name": f"user{n}", "friends": None} for n in range(500)]
    stars = [{"who": "user77", "repo": n} for n in range(400)] + [{"who": f"user{n}", "repo": 0} for n in range(100)]
    found = taken(state_of({"user": users, "star": stars}), sample=20)
    assert found.entities[0].rows == 500
    down = next(one for one in found.joins if (one.join.child, one.direction) == ("star", "down"))
    assert (down.most, down.value) == (400, "user77")


def test_the_tables_show_rows_bytes_and_the_value_with_most_rows() -> None:
    statistics = taken(state_of({"user": ROWS["user"]}))
    cells = [line.split() for line in statistics_lines(statistics)]
    size = statistics.entities[0]
    assert cells[1] == ["user", "3", f"{size.mean_bytes:.0f}", str(size.most_bytes)]
    assert cells[6] == ["star(who)", "=", "user(name)", "down", "0.00", "0", "hub"]
