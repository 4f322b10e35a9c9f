"""Entities with `keep: declared`: rows store no undeclared column, and the readers say which values are gone."""

import json
from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.step_runner import StepRunner
from processor.language.definitions.load import load
from processor.tools.inspect.explain import lineage, lost_lines
from processor.tools.inspect.rows import row_lines, row_object
from statestore.keys import Key
from tests.unit.engine.protocol.edited_job import EditedJob

USER = {"id": 1, "name": "ada", "age": 36, "note": "x" * 2_000}
STAR = {"id": 7, "who": "ada", "points": 3}
STORED = Key("TABLE#user", "1")


def plan_that_keeps(keep: str, **columns: str) -> Plan:
    text = {
        "keep": keep,
        "user": {"key": ["id"], "columns": {"id": "int", "name": "string", **columns}},
        "star": {"key": ["id"], "columns": {"id": "int", "who": "string"}},
    }
    product = {"product": "p", "root": "user", "embed": {"stars": {"many": "star", "on": {"who": "name"}}}}
    return plan_alone(load({"entities.yaml": json.dumps(text), "p.json": json.dumps(product)}), 3)


class Job(EditedJob):
    """A job that has read a user and a star."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, {"user": USER, "star": STAR})

    def stored(self, key: Key = STORED) -> dict[str, Any]:
        return dict(self.trial.store.get([key])[key])

    def lost(self) -> list[str]:
        plan = self.trial.plan
        (found,) = StepRunner(store=self.trial.store).run([lineage(plan, plan.products["p"], "1", {})])
        return list(lost_lines(found))


@pytest.mark.parametrize("key", [STORED, Key("TABLE#star", "7")])
def test_a_row_stores_its_declared_columns_alone(key: Key) -> None:
    item = Job(plan_that_keeps("declared")).stored(key)
    assert not {"_more", "age", "note", "points"} & {*item, *item.get("_indexed", {})}


def test_a_document_of_whole_rows_has_the_declared_columns() -> None:
    job = Job(plan_that_keeps("declared"))
    assert job.document() == {"id": 1, "name": "ada", "stars": [{"id": 7, "who": "ada"}]}


def test_an_update_of_undeclared_columns_publishes_nothing() -> None:
    job = Job(plan_that_keeps("declared"))
    published = len(job.trial.published.messages)
    job.send("user", USER | {"age": 37})
    job.send("star", STAR | {"points": 4})
    assert len(job.trial.published.messages) == published


def test_a_document_shows_no_undeclared_column_of_an_older_row_and_the_next_write_drops_it() -> None:
    job = Job(plan_that_keeps("all"))
    job.goes_on(plan_that_keeps("declared"))
    job.send("star", STAR | {"who": "bob"})
    assert job.document() == {"id": 1, "name": "ada", "stars": []}
    entity, item = job.trial.plan.entities["user"], job.stored()
    assert set(row_object(item, entity, {})["undeclared"]) == {"age", "note"}
    (shown,) = [line for line in row_lines(item, entity, {}) if line.startswith("  age ")]
    assert shown.endswith("not declared: the next write of the row drops it")
    job.send("user", USER | {"age": 37})
    assert "_more" not in job.stored()


def test_a_column_declared_later_keeps_the_value_that_the_row_still_holds() -> None:
    job = Job(plan_that_keeps("all"))
    job.goes_on(plan_that_keeps("declared", age="int"))
    job.send("star", STAR | {"who": "bob"})
    assert job.document()["age"] == 36
    assert job.lost() == []


def test_readers_name_the_value_that_was_not_stored_and_what_brings_it_back() -> None:
    job = Job(plan_that_keeps("declared"))
    job.goes_on(plan_that_keeps("declared", age="int"))
    assert job.lost() == [
        "user 1: age (the row is older than the declaration of the column, and `keep: declared` did not store it: a new "
        "snapshot of topic user brings it back)"
    ]
    job.send("user", USER)  # the snapshot
    assert job.lost() == []
    assert job.document()["age"] == 36


def test_rows_store_undeclared_columns_again_when_the_entity_keeps_all() -> None:
    job = Job(plan_that_keeps("declared"))
    job.goes_on(plan_that_keeps("all"))
    job.send("user", USER)
    assert job.document() == {**USER, "stars": [{"id": 7, "who": "ada"}]}
    job.send("star", STAR)
    assert job.document()["stars"] == [STAR]
