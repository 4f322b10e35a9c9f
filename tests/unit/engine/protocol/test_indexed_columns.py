"""The columns that indexes show of a row, in the requests of a job: what its writes change there, and what they leave alone."""

import json
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.round_counts import RowReads, UpdateCounts
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.entity import PLACEHOLDER
from processor.values.record import Record
from statestore.items import read_row
from statestore.memory import MeteredStore
from statestore.store import Item, Query

ENTITIES = {
    "user": {"key": ["id"], "columns": {"id": "int", "name": "string"}},
    "star": {
        "key": ["id"],
        "columns": {"id": "int", "who": "string", "title": "string", "seen": "int", "tags": "json"},
    },
}
STARS = {"many": "star", "on": {"who": "name"}, "fields": ["title"]}
MANY = RowReads(counts={"star": UpdateCounts(1_000, 1_000), "user": UpdateCounts(1_000, 1_000)})
"""The counts of a job that has seen only updates that no product reads."""


def a_trial(reads: RowReads = MANY, stars: dict[str, Any] = STARS) -> Trial:
    product = {"product": "profile", "root": "user", "fields": ["id"], "embed": {"stars": stars}}
    files = {"entities.yaml": json.dumps(ENTITIES), "profile.yaml": json.dumps(product)}
    trial = Trial(plan=plan_alone(load(files), 3), settings=Settings(), other_store=MeteredStore(3))
    trial.driver.rounds.row_reads = reads
    trial.batch([Record(topic="user", partition=0, offset=0, key=b'{"id":1}', value=b'{"id":1,"name":"ada"}')])
    return trial


def star(offset: int, **row: Any) -> Record:
    value = json.dumps({"id": 7, "who": "ada", "title": "ice", "seen": offset, "tags": [1], **row}).encode()
    return Record(topic="star", partition=0, offset=offset, key=b'{"id":7}', value=value)


def stored(trial: Trial) -> Item:
    key = trial.plan.entities["star"].key("7")
    return trial.store.get([key])[key]


def in_index(trial: Trial) -> list[Item]:
    return trial.store.query(Query("GSI_1", "ada", "star"))


def test_an_index_shows_what_products_read_there_and_the_row_holds_each_value_once() -> None:
    trial = a_trial()
    trial.batch([star(0, extra="text")])
    row = stored(trial)
    assert row["_indexed"] == {"id": 7, "who": "ada", "title": "ice"}
    assert {name for name in row if not name.startswith(("_", "GSI", "prev"))} == {"PK", "SK", "seen", "tags"}
    assert [set(item) for item in in_index(trial)] == [
        {"PK", "SK", "GSI_1", "GSI_SK", "_f", "_indexed", "_indexed_v"},
    ]


def test_an_index_shows_the_whole_row_to_a_product_that_reads_all_of_it() -> None:
    trial = a_trial(stars={"many": "star", "on": {"who": "name"}})
    trial.batch([star(0, extra="text")])
    (item,) = in_index(trial)
    assert item["_indexed"] == {
        "id": 7,
        "who": "ada",
        "title": "ice",
        "seen": 0,
        "tags": {"json": "[1]"},
        "_more": '{"extra":"text"}',
    }
    (*_, last) = trial.published.messages
    assert b'"extra":"text"' in (last.value or b"")


@pytest.mark.parametrize("change", [{"seen": 9}, {"tags": [2]}, {"extra": "x" * 2_000}, {}])
def test_an_update_that_no_product_reads_writes_the_row_once_and_no_index(change: dict[str, Any]) -> None:
    trial = a_trial()
    trial.batch([star(0)])
    trial.finish()
    store, before = trial.store, in_index(trial)
    assert isinstance(store, MeteredStore)
    written, copied = store.written, store.copied
    tally = trial.batch([star(1, **change)])
    assert {n: tally[f"request {n}"] for n in ("UpdateItem", "BatchGetItem", "Query", "DeleteItem")} == {
        "UpdateItem": 1,
        "BatchGetItem": 1,
        "Query": 0,
        "DeleteItem": 0,
    }
    assert (store.written - written, store.copied - copied) == (1, 0)
    assert in_index(trial) == before
    row = read_row(stored(trial))
    assert (row.version[-1], row.version_in_indexes()[-1]) == ("1", "0")
    assert trial.driver.progress.open_changes.count == 0


@pytest.mark.parametrize("change", [{"title": "snow"}, {"who": "bob"}, {"title": None}])
def test_an_update_that_a_product_reads_has_its_own_version_in_the_indexes(change: dict[str, Any]) -> None:
    trial = a_trial()
    for n, record in enumerate([star(0), star(1), star(2, **change)]):
        trial.batch([record])
        assert read_row(stored(trial)).version_in_indexes()[-1] == "002"[n]
    assert [one.version[-1] for one in trial.driver.progress.open_changes.changes() if one.entity == "star"][-1] == "2"


def test_a_row_that_comes_back_to_its_former_values_has_another_version_in_the_indexes() -> None:
    trial = a_trial()
    for record in (star(0), star(1, title="snow"), star(2)):
        trial.batch([record])
    assert read_row(stored(trial)).version_in_indexes()[-1] == "2"


def test_a_write_that_did_not_read_the_row_moves_the_version_in_the_indexes() -> None:
    trial = a_trial(RowReads())
    trial.batch([star(0)])
    trial.batch([star(1)])
    assert read_row(stored(trial)).version_in_indexes()[-1] == "1"


def test_a_value_that_was_not_sent_keeps_its_own_version_in_the_indexes() -> None:
    trial = a_trial()
    trial.batch([star(0)])
    trial.batch([star(1, title=PLACEHOLDER)])
    shown = stored(trial)["_indexed"]["title"]
    assert (shown["value"], shown["since"][-1], read_row(stored(trial)).version_in_indexes()[-1]) == ("ice", "0", "1")
    trial.batch([star(2, title=PLACEHOLDER)])
    row = read_row(stored(trial))
    assert (row.version[-1], row.version_in_indexes()[-1], row.columns and row.columns["title"]) == ("2", "1", "ice")


def test_a_deleted_row_shows_its_version_in_the_indexes_and_no_column() -> None:
    trial = a_trial()
    for record in (star(0), star(1), replace(star(2), value=None)):
        trial.batch([record])
    marker = stored(trial)
    (shown,) = trial.store.query(Query("GSI_1", marker["GSI_1"]))
    assert (shown["_deleted"], shown["_indexed_v"], "_indexed" in marker) == (True, marker["_v"], False)


def test_tasks_read_rows_first_where_many_updates_change_nothing_that_indexes_show() -> None:
    plan = a_trial().plan
    assert RowReads().entities(plan) == frozenset()
    assert RowReads(counts={"star": UpdateCounts(1_000, 100)}).entities(plan) == frozenset()
    assert RowReads(counts={"star": UpdateCounts(1_000, 150)}).entities(plan) == {"star"}
    assert RowReads(counts={"star": UpdateCounts(10, 3)}).entities(plan) == frozenset()
    assert RowReads(counts={"gone": UpdateCounts(1_000, 1_000)}).entities(plan) == frozenset()


def test_a_job_measures_the_share_and_forgets_an_old_one() -> None:
    trial = a_trial(RowReads())
    trial.batch([star(0)])
    for n in range(1, 40):
        trial.batch([star(n)])
    assert trial.driver.rounds.row_reads.counts["star"] == UpdateCounts(40, 39)
    reads = trial.driver.rounds.row_reads
    assert reads.entities(trial.plan) == {"star"}
    for _ in range(8):
        reads = reads.after([{"star": UpdateCounts(6_000, 0)}])
    assert not reads.entities(trial.plan)
