"""Estimates against what the same events cost on a store that meters, in a state of which statistics were taken."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from processor.definitions.load import load, read_directory
from processor.estimate import Estimate, estimates, known
from processor.model import canonical_json
from processor.model.change import Record
from processor.model.plan import Plan
from processor.planning import plan_alone
from processor.price import costs
from processor.settings import Settings
from processor.statistics import take
from processor.trial import Trial
from statestore.metered import MeteredStore

PLAN = plan_alone(load(read_directory(Path(__file__).parents[2] / "examples" / "github")), slots=20)
USERS, STARS, REPOS = 40, 30, 120
DEALT = Random(7).sample([n % REPOS for n in range(USERS * STARS)], USERS * STARS)
Row = dict[str, Any]


def star(user: int, repo: int, at: str = "2015-01-01T00:00:00Z") -> Row:
    return {"username": f"user{user}", "repo_name": f"repo{repo}", "repo_owner": "acme", "created_at": at}


def rows() -> Iterator[tuple[str, Row]]:
    """Users with 30 stars, two pull requests of two kilobytes and a payment each; repositories with ten stars each."""
    for n in range(USERS):
        yield "user", {"id": n, "email": f"{n}@example.org", "username": f"user{n}", "registered_at": None}
        yield "payment_info", {"id": n, "user_id": n, "verified": True}
        for k in range(STARS):
            yield "star", star(n, DEALT[n * STARS + k])
        for k in range(2):
            pull = {
                "repo": "repo1",
                "repo_owner": "acme",
                "index": n * 2 + k,
                "author": f"user{n}",
                "title": "x" * 2000,
            }
            yield "pull_request", pull | {"status": "open", "created_at": None}
    for n in range(REPOS):
        yield "repo", repo(n)


def repo(number: int, description: str = "A tool") -> Row:
    return {"owner": "acme", "name": f"repo{number}", "description": description, "star_count": 1}


def record(plan: Plan, entity: str, row: Row, offset: int) -> Record:
    key = canonical_json.encode({column: row[column] for column in plan.entities[entity].entity.key})
    return Record(topic=entity, partition=0, offset=offset, key=key, value=canonical_json.encode(row))


@pytest.fixture(scope="module")
def state() -> Trial:
    trial = Trial(plan=PLAN, settings=Settings())
    trial.store = MeteredStore(20, clock=lambda: trial.now)
    trial.batch(record(PLAN, entity, row, offset) for offset, (entity, row) in enumerate(rows()))
    trial.finish()
    return trial


@pytest.fixture(scope="module")
def estimated(state: Trial) -> dict[str, Estimate]:
    taken = take(PLAN, state.store, sample=100, random=Random(1), at=datetime(2026, 11, 21, tzinfo=UTC))
    found = estimates(PLAN, costs(PLAN, Settings()), known(taken))
    return {f"{one.entity}: {one.event}": one for one in found}


@pytest.mark.parametrize(
    ("event", "entity", "row", "documents"),
    [
        ("repo: update of description", "repo", repo(7, "The tool"), 10),
        ("repo: first seen", "repo", repo(999), 0),
        ("star: update of created_at", "star", star(1, DEALT[STARS], "2016-01-01T00:00:00Z"), 1),
        ("star: first seen", "star", star(6, 7), 1),
        ("payment_info: update of verified", "payment_info", {"id": 3, "user_id": 3, "verified": False}, 1),
        ("payment_info: update of user_id (join key)", "payment_info", {"id": 3, "user_id": 1, "verified": False}, 2),
    ],
)
def test_an_estimate_is_near_what_the_event_costs(
    state: Trial, estimated: dict[str, Estimate], event: str, entity: str, row: Row, documents: int
) -> None:
    store = state.store
    assert isinstance(store, MeteredStore)
    written, read = store.written, store.read
    state.batch([record(PLAN, entity, row, 10_000 + state.tally["batches"])])
    state.finish()

    one = estimated[event]
    assert one.documents == pytest.approx(documents, rel=0.1)
    assert one.write_units == pytest.approx(store.written - written, rel=0.1, abs=1)
    assert one.read_units == pytest.approx(float(store.read - read), rel=0.3)


def test_without_statistics_of_a_join_it_finds_one_row(state: Trial) -> None:
    taken = take(PLAN, MeteredStore(20), sample=1, random=Random(1), at=datetime(2026, 11, 21, tzinfo=UTC))
    priced = costs(PLAN, Settings())
    for cost, one in zip(priced, estimates(PLAN, priced, known(taken)), strict=True):
        assert one.read_units == cost.read_units
        assert one.documents >= cost.documents
