"""Wide declared columns that no product reads lie together, compressed, and every reader gets the same values from them."""

import json
from typing import Any

import pytest

from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.engine.plan.row_image import declared_columns, declared_row
from processor.engine.protocol.walks import fill
from processor.engine.rounds.step_runner import StepRunner
from processor.language.definitions.load import load
from processor.tools.inspect.rows import row_object
from processor.values.entity import PLACEHOLDER
from statestore.keys import Key
from statestore.store import Item
from tests.unit.engine.protocol.edited_job import EditedJob

VALUES: dict[str, tuple[str, Any]] = {
    "whole": ("int", 10**37 + 1),
    "real": ("float", 0.1),
    "price": ("decimal(12,2)", "12.50"),
    "yes": ("bool", True),
    "day": ("date", 18262),
    "at": ("timestamp(us)", 1_577_836_800_000_001),
    "extra": ("json", {"a": [1, 2.50, None, '{"b": 1}']}),
    "text_in_json": ("json", '{"b": 1}'),
    "tags": ("string[]", ["x", None]),
    "prices": ("decimal[]", [1.50, 2]),
    "nothing": ("string", None),
    "note": ("string", "a word " * 200),
}
ROW = {"id": 1, "name": "ada", **{name: value for name, (_, value) in VALUES.items()}}
KEY = Key("TABLE#user", "1")


def plan_reading(*fields: str, keep: str = "all") -> Plan:
    columns = {"id": "int", "name": "string", **{name: kind for name, (kind, _) in VALUES.items()}}
    text = {
        "keep": keep,
        "user": {"key": ["id"], "columns": columns, "decimals": "text"},
        "star": {"key": ["id"], "columns": {"id": "int", "who": "string"}},
    }
    joined = {"one": "user", "on": {"name": "who"}, "fields": ["id", *fields]}
    products = {
        "p": {"product": "p", "root": "star", "fields": ["id"], "embed": {"user": joined}},
        "q": {"product": "q", "root": "user", "fields": ["id"]},
    }
    return plan_alone(
        load({"entities.yaml": json.dumps(text)} | {f"{name}.json": json.dumps(p) for name, p in products.items()}), 3
    )


class Job(EditedJob):
    """A job whose user has wide columns."""

    def item(self) -> Item:
        return self.trial.store.get([KEY])[KEY]

    def user(self) -> dict[str, Any]:
        return declared_columns(self.item(), self.trial.plan.entities["user"]) or {}


@pytest.fixture
def unpacked() -> dict[str, Any]:
    """The values of a row that products read, so each is an attribute."""
    job = Job(plan_reading(*VALUES))
    job.send("user", ROW)
    assert {"_more", *VALUES}.isdisjoint(job.item())
    return job.user()


@pytest.mark.parametrize("keep", ["all", "declared"])
def test_a_row_holds_unread_columns_together_and_readers_get_the_same_values(
    unpacked: dict[str, Any], keep: str
) -> None:
    job = Job(plan_reading(keep=keep))
    job.send("user", ROW)
    assert VALUES.keys().isdisjoint(job.item())
    assert len(job.item()["_more"]) < 700
    assert job.user() == unpacked
    plan = job.trial.plan.entities["user"]
    assert declared_row(job.item(), plan).columns == unpacked
    shown = row_object(job.item(), plan, {})
    assert (shown["columns"], shown["undeclared"]) == (unpacked, {})


def test_a_product_that_begins_to_read_the_columns_gets_the_same_values(unpacked: dict[str, Any]) -> None:
    job = Job(plan_reading())
    job.send("user", ROW)
    job.goes_on(plan_reading(*VALUES))
    StepRunner(store=job.trial.store).run([fill(job.item(), job.trial.plan.entities["user"], probe=False)])
    job.send("star", {"id": 7, "who": "ada"})
    assert json.loads(job.trial.published.messages[-1].value or b"")["user"]["note"] == ROW["note"]
    assert job.user() == unpacked


def test_small_unread_columns_stay_attributes() -> None:
    job = Job(plan_reading())
    job.send("user", ROW | {"note": "short"})
    assert job.item()["note"] == "short"
    assert "_more" not in job.item()


def test_a_value_that_the_source_leaves_out_keeps_its_version_and_goes_back_with_the_next_one() -> None:
    job = Job(plan_reading())
    job.send("user", ROW)
    wide = "other words " * 99
    job.send("user", ROW | {"note": PLACEHOLDER, "tags": [wide]})
    row = declared_row(job.item(), job.trial.plan.entities["user"])
    assert (row.columns or {})["note"] == ROW["note"]
    assert row.since["note"] < row.version
    assert job.user()["tags"] == [wide]
    job.send("user", ROW)
    assert "note" not in job.item()
    assert job.user()["note"] == ROW["note"]
