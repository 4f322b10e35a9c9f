"""Updates that do not send all values (PostgreSQL's TOAST): their requests, and the rows that they touch."""

import json
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.protocol.epochs import Committed
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.entity import PLACEHOLDER
from processor.values.record import Record
from statestore.items import read_row

USER = {"key": ["id"], "columns": {"id": "int", "name": "string", "bio": "string", "seen": "int"}}
PROFILE = {"product": "profile", "root": "user", "fields": ["name", "bio"]}
PLAN = plan_alone(load({"entities.yaml": json.dumps({"user": USER}), "profile.yaml": json.dumps(PROFILE)}), 3)


@pytest.fixture
def trial() -> Trial:
    return Trial(plan=PLAN, settings=Settings())


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
    assert row.since == {"bio": "000000.000000.0000000000000000000"}
    assert row.columns == {"id": 1, "name": "name 3", "bio": "text", "seen": 3}
    trial.batch([user(4, name="name 4", bio="new", seen=4)])
    assert stored(trial)["bio"] == "new"


def test_a_value_that_was_never_sent_is_null(trial: Trial) -> None:
    trial.batch([user(0, name="ada", bio=PLACEHOLDER, seen=1)])
    (message,) = trial.published.messages
    assert message.value == b'{"name":"ada","bio":null}'
    assert read_row(stored(trial)).since == {"bio": ""}


def stray(offset: int, *, partition: int = 1, epoch: int = 0, **row: Any) -> Record:
    return replace(user(offset, **row), partition=partition, epoch=epoch)


@pytest.mark.parametrize("partitions", [(0, 1), (1, 0)])
@pytest.mark.parametrize("name", ["later", PLACEHOLDER])
def test_a_change_from_another_partition_is_a_dead_letter_at_any_offset(
    trial: Trial, partitions: tuple[int, int], name: str
) -> None:
    own, other = partitions
    trial.batch([stray(5, partition=own, name="first")])
    for offset in (1, 9):
        tally = trial.batch([stray(offset, partition=other, name=name)])
        assert (tally["dead letters"], tally["applied"]) == (1, 0)
    assert trial.batch([stray(6, partition=own, name="second")])["applied"] == 1
    assert stored(trial)["name"] == "second"


def test_a_new_epoch_takes_a_row_to_another_partition(trial: Trial) -> None:
    trial.batch([user(5, name="first")])
    assert trial.batch([stray(1, epoch=1, name="moved")])["applied"] == 1
    assert trial.batch([user(6, name="late")])["superseded"] == 1
    assert stored(trial)["name"] == "moved"


def test_two_partitions_in_one_batch_do_not_share_a_net_change(trial: Trial) -> None:
    tally = trial.batch([user(1, name="first"), user(2, name="second"), stray(7, name="other")])
    assert (tally["applied"], tally["superseded"], tally["dead letters"]) in [(1, 1, 1), (1, 0, 2)]


@pytest.mark.parametrize("commits", [True, False])
def test_a_row_of_another_epoch_is_published_only_if_its_own_record_is_committed(commits: bool) -> None:
    """A kill before the commit, and then a topic that is created again: the keys of the row stay pending."""
    plan = plan_alone(
        load({"entities.yaml": json.dumps({"user": USER, "star": STAR}), "p.yaml": json.dumps(STARRED)}), 3
    )
    trial = Trial(plan=plan, settings=Settings())
    for offset, name in enumerate(("a", "b")):
        trial.batch([replace(star(offset, name), epoch=1)])
    if not commits:
        trial.committed = Committed({("star", 1, 0): (0, 1)})
    trial.batch([replace(star(0, "c"), epoch=2)])
    row = read_row(trial.store.get([plan.entities["star"].key("1")])[plan.entities["star"].key("1")])
    assert {(one.slot, one.key) for one in row.pending} == ({(1, "b")} if commits else {(1, "a"), (1, "b")})


STAR = {"key": ["id"], "columns": {"id": "int", "who": "string"}}
STARRED = {"product": "p", "root": "user", "embed": {"stars": {"many": "star", "on": {"who": "name"}}}}


def star(offset: int, who: str) -> Record:
    value = json.dumps({"id": 1, "who": who}).encode()
    return Record(topic="star", partition=0, offset=offset, key=b'{"id":1}', value=value)
