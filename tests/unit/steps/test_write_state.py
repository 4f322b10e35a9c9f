"""Updates that do not send all values (PostgreSQL's TOAST): their requests, and the rows that they touch."""

import json
from typing import Any

import pytest

from processor.definitions.load import load
from processor.plan.planning import plan_alone
from processor.records.debezium import PLACEHOLDER
from processor.records.record import Record
from processor.settings import Settings
from processor.trial.trial import Trial
from statestore.items import read_row

USER = {"key": ["id"], "columns": {"id": "int", "name": "string", "bio": "string", "seen": "int"}}
PROFILE = {"product": "profile", "root": "user", "fields": ["name", "bio"]}


@pytest.fixture
def trial() -> Trial:
    files = {"entities.yaml": json.dumps({"user": USER}), "profile.yaml": json.dumps(PROFILE)}
    return Trial(plan=plan_alone(load(files), 3), settings=Settings())


def user(offset: int, **row: Any) -> Record:
    value = json.dumps({"id": 1, **row}).encode()
    return Record(topic="user", partition=0, offset=offset, key=b'{"id":1}', value=value)


def stored(trial: Trial) -> Any:
    key = trial.plan.entities["user"].key("1")
    return trial.store.get([key])[key]


def test_a_value_that_was_not_sent_keeps_its_stored_value_and_costs_one_read(trial: Trial) -> None:
    trial.batch([user(0, name="ada", bio="a long text", seen=1)])
    tally = trial.batch([user(1, name="ada", bio=PLACEHOLDER, seen=2)])
    assert {n: tally[f"request {n}"] for n in ("UpdateItem", "BatchGetItem", "Query")} == {
        "UpdateItem": 1,
        "BatchGetItem": 1,
        "Query": 0,
    }
    assert tally["published"] + tally["unchanged"] == 0  # no product reads what changed
    row = read_row(stored(trial))
    assert row.columns == {"id": 1, "name": "ada", "bio": "a long text", "seen": 2}


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 2), (1, 3), (4,)])
def test_a_value_that_was_not_sent_keeps_its_version_in_any_batches(trial: Trial, sizes: tuple[int, ...]) -> None:
    records = [user(n, name=f"name {n}", bio="text" if n == 0 else PLACEHOLDER, seen=n) for n in range(4)]
    for size in sizes:
        trial.batch(records[:size])
        del records[:size]
    row = read_row(stored(trial))
    assert row.since == {"bio": "000000.0000000000000000000"}
    assert row.columns == {"id": 1, "name": "name 3", "bio": "text", "seen": 3}
    trial.batch([user(4, name="name 4", bio="new", seen=4)])
    assert stored(trial)["bio"] == "new"


def test_a_value_that_was_never_sent_is_null(trial: Trial) -> None:
    trial.batch([user(0, name="ada", bio=PLACEHOLDER, seen=1)])
    (message,) = trial.published.messages
    assert message.value == b'{"name":"ada","bio":null}'
    assert read_row(stored(trial)).since == {"bio": ""}
