"""A deleted row leaves the indexes where each of them has shown it, and is open until none shows it any more."""

import json
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.values.record import Record
from statestore.store import Item, Query, Write
from tests.unit.engine.protocol.example import PLAN, key

SHOWN = Query(slot="GSI_1", value="ada", entity="star")


def record(entity: str, offset: int, id: int, **row: Any) -> Record:
    value = json.dumps({"id": id, **row}).encode() if row else None
    return Record(topic=entity, partition=0, offset=offset, key=b'{"id":%d}' % id, value=value)


def trial_of(lag: float = 0.0) -> Trial:
    """A job that has a user and a star of the user."""
    trial = Trial(plan=PLAN, settings=Settings(), lag=lag)
    trial.batch([record("user", 0, 1, name="ada"), record("repo", 0, 9, title="tool")])
    trial.batch([record("star", 0, 5, who="ada", repo=9)])
    return trial


def marker(trial: Trial) -> Item:
    (item,) = trial.store.get([key("star", 5)]).values()
    return item


def stars(trial: Trial) -> Any:
    """Of the last document of the user."""
    last = [one.value for one in trial.published.messages if one.topic == "profile"][-1]
    return json.loads(last or b"null")["stars"]


def test_a_row_that_every_index_has_shown_leaves_them_and_keeps_its_former_keys_for_a_crash() -> None:
    trial = trial_of()
    trial.finish()
    trial.batch([record("star", 1, 5)])
    assert (marker(trial)["prev_1"], marker(trial)["prev_2"]) == ("ada", "9")
    assert not {"GSI_1", "GSI_2"} & marker(trial).keys()
    assert stars(trial) == []


def test_a_row_whose_change_is_open_stays_in_the_indexes_under_its_own_key() -> None:
    trial = trial_of()
    trial.batch([record("star", 1, 5)])
    assert marker(trial)["GSI_1"] == "!TABLE#star!5"
    assert stars(trial) == []


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "seen again"])
def test_no_document_shows_a_deleted_row_that_a_late_index_still_shows(again: bool) -> None:
    trial = trial_of(lag=30)
    trial.finish()
    trial.batch([record("star", 1, 5)])
    trial.advance(20)
    assert trial.store.query(SHOWN)
    assert trial.driver.pending
    trial.batch([record("star", 2, 5, who="ada", repo=9)] if again else [record("user", 1, 1, name="ada", bio="x")])
    trial.finish()
    assert stars(trial) == (["tool"] if again else [])
    assert len(trial.store.query(SHOWN)) == again
    assert trial.tally["corrections"] == 0


def test_an_answer_without_the_row_is_evidence_so_settling_asks_only_the_other_slots() -> None:
    trial = trial_of()
    trial.finish()
    before = trial.tally["request Query"]
    trial.batch([record("star", 1, 5)])
    asked = trial.tally["request Query"]
    trial.driver.progress.open_changes.samples = False
    trial.finish()
    assert asked > before
    assert trial.tally["request Query"] == asked + 1


def test_a_deleted_row_that_a_replay_wrote_after_its_run_stays_in_the_indexes_until_they_show_its_marker() -> None:
    """No open change names the row, and an index may show it for the first time after the delete."""
    trial = trial_of(lag=30)
    trial.finish()
    trial.store.write(Write(key("star", 5), {"_replayed": True}))
    trial.batch([record("star", 1, 5)])
    assert (marker(trial)["GSI_1"], marker(trial)["GSI_2"]) == ("!TABLE#star!5", "!TABLE#star!5")
    (opened,) = trial.driver.progress.open_changes.changes()
    assert (opened.gone, opened.slots) == ((), ((1, "!TABLE#star!5"), (2, "!TABLE#star!5")))
    trial.finish()
    assert trial.store.query(Query(slot="GSI_1", value="!TABLE#star!5"))
    assert stars(trial) == []


@pytest.mark.parametrize("consistent", [True, False])
def test_an_update_of_a_row_that_a_replay_wrote_publishes_it_whatever_it_changes(consistent: bool) -> None:
    """The replay may have written the row after its run, so that nobody has published it."""
    trial = Trial(plan=PLAN, settings=Settings(), consistent=consistent)
    trial.batch([record("star", 0, 5, who="ada", repo=9)])
    trial.finish()
    trial.store.write(Write(key("star", 5), {"_replayed": True}))
    tally = trial.batch([record("star", 1, 5, who="ada", repo=9, unread=1)])
    assert tally["read"] == tally["applied"] == 1
    assert bool(trial.driver.progress.open_changes.count) is not consistent
    assert "_replayed" not in marker(trial)


def test_a_row_that_another_partition_wrote_in_the_same_batch_stays_in_the_indexes_under_its_own_key() -> None:
    """A topic got a partition, and one batch reads records of both epochs: no index has shown what the first one wrote."""
    trial = trial_of()
    trial.finish()
    star = replace(record("star", 0, 6, who="ada", repo=9), epoch=1)
    trial.batch([star, replace(record("star", 0, 6), epoch=2, partition=1)])
    (item,) = trial.store.get([key("star", 6)]).values()
    assert item["GSI_1"] == "!TABLE#star!6"
