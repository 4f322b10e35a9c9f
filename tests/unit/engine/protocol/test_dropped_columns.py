"""Columns that the operator drops and declares again: no stored value comes back that the source has replaced meanwhile."""

from dataclasses import replace
from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.row_image import declared_row, layout_image
from processor.values.entity import PLACEHOLDER
from processor.values.record import Record
from statestore.keys import Key
from statestore.writes import merge_image
from tests.unit.engine.protocol.test_columns_declared_later import ROW, STAR, Job, plan_with

WITHOUT = {name: value for name, value in ROW.items() if name != "age"}
USER = Key("TABLE#user", "1")


def plan_without_age() -> Plan:
    plan = plan_with()
    return replace(plan, entities={**plan.entities, "user": replace(plan.entities["user"], dropped=("age",))})


@pytest.fixture
def job() -> Job:
    """A job that stored the age as a column, and then runs by a plan without it."""
    made = Job()
    made.goes_on(plan_with(age="int"))
    made.send("user", ROW)
    assert made.trial.store.get([USER])[USER]["age"] == 36
    made.goes_on(plan_without_age())
    return made


def age_declared_again(job: Job) -> Any:
    """The age in the document, and in the mirror, once the column is declared again with a wider type."""
    job.goes_on(plan_with(age="decimal"))
    job.send("star", STAR | {"id": 9})
    assert job.mirrored("user").get("age") == job.document()["age"]
    return job.document()["age"]


def test_a_row_that_nobody_wrote_meanwhile_shows_its_value_again(job: Job) -> None:
    assert age_declared_again(job) == 36


@pytest.mark.parametrize(("row", "age"), [(ROW | {"age": 40}, 40), (WITHOUT, None), (ROW | {"age": None}, None)])
def test_a_row_that_the_source_wrote_meanwhile_shows_what_the_source_sent(job: Job, row: Any, age: Any) -> None:
    job.send("user", row)
    assert job.document().get("age") == age
    assert age_declared_again(job) == age


def test_a_row_that_came_again_after_a_delete_does_not_get_its_former_value(job: Job) -> None:
    offset = job.trial.committed.offsets["user", 0, 0][1]
    job.trial.batch([Record(topic="user", partition=0, offset=offset, key=b'{"id": 1}', value=None)])
    job.send("user", WITHOUT)
    assert age_declared_again(job) is None


def test_a_value_that_the_source_does_not_send_stays(job: Job) -> None:
    job.send("user", ROW | {"age": PLACEHOLDER, "price": 2})
    assert job.document()["age"] == 36
    assert age_declared_again(job) == 36


def test_a_whole_row_shows_a_dropped_column_as_it_shows_every_undeclared_column(job: Job) -> None:
    job.send("star", STAR | {"id": 8})
    assert list(job.document()) == ["id", "name", "age", *sorted(WITHOUT.keys() - {"id", "name"}), "stars"]
    columns = declared_row(job.trial.store.get([USER])[USER], job.trial.plan.entities["user"]).columns
    assert columns == {"id": 1, "name": "ada"}


def test_a_fill_keeps_the_value(job: Job) -> None:
    plan, store = replace(job.trial.plan.entities["user"], layout=9), job.trial.store
    seen = declared_row(store.get([USER])[USER], plan)
    image = layout_image(plan, seen)
    assert image is not None
    store.write(merge_image(image, seen))
    assert "age" not in store.get([USER])[USER]
    assert age_declared_again(job) == 36
