"""Columns that the operator declares after rows were stored: documents, the mirror and later writes read the stored values."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest

from processor.counts import Count
from processor.engine.plan.plan import Plan
from processor.engine.plan.planning import plan_alone
from processor.language.definitions.load import load
from processor.language.product.product import Product
from processor.tools.inspect.verification import Mirror
from processor.values.entity import PLACEHOLDER
from tests.unit.engine.protocol.edited_job import EditedJob

ROW = {"id": 1, "name": "ada", "age": 36, "born": 18262, "price": 1.5, "at": "2020-01-01T00:00:00+01:00", "tags": ["x"]}
STAR = {"id": 7, "who": "ada", "points": 3}


def plan_with(star: str = "", **columns: str) -> Plan:
    entities = {
        "user": {"key": ["id"], "columns": {"id": "int", "name": "string", **columns}},
        "star": {"key": ["id"], "columns": {"id": "int", "who": "string", **({"points": star} if star else {})}},
    }
    product = {"product": "p", "root": "user", "embed": {"stars": {"many": "star", "on": {"who": "name"}}}}
    return plan_alone(load({"entities.yaml": json.dumps(entities), "p.json": json.dumps(product)}), 3)


class Tables:
    """Keeps the rows that the mirror reads."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Mapping[str, Any]]] = {}

    def fill(self, name: str, rows: Iterable[Mapping[str, Any]], indexes: Any) -> None:
        self.rows[name] = list(rows)

    def answer(self, product: Product, clock: int) -> Iterator[tuple[str, str]]:
        return iter(())


class Job(EditedJob):
    """A job that has read a user and a star, of which it declares few columns."""

    def __init__(self) -> None:
        super().__init__(plan_with(), {"user": ROW, "star": STAR})

    def mirrored(self, name: str) -> Mapping[str, Any]:
        tables = Tables()
        plan = self.trial.plan
        mirror = Mirror(plan=plan, store=self.trial.store, tables=tables, report=lambda _: None)
        list(mirror.documents(plan.products["p"].product))
        return tables.rows[name][0]


WIDER = {"age": "int", "born": "date", "price": "decimal", "at": "timestamp", "tags": "string[]", "nobody": "int"}
READ = {"age": 36, "born": "2020-01-01", "price": 1.5, "at": "2019-12-31T23:00:00Z", "tags": ["x"], "nobody": None}


def test_a_column_declared_later_shows_the_value_that_the_row_holds_undeclared() -> None:
    job = Job()
    job.goes_on(plan_with(star="int", **WIDER))
    job.send("star", STAR | {"id": 8})
    document = job.document()
    assert document == {"id": 1, "name": "ada", **READ, "stars": [STAR, STAR | {"id": 8}]}
    assert list(document) == ["id", "name", *WIDER, "stars"]
    assert job.trial.tally[Count.UNREADABLE] == 0
    row = job.mirrored("user")
    assert {name: row.get(name) for name in ("age", "born", "at", "nobody")} == {
        name: READ[name] for name in ("age", "born", "at", "nobody")
    }
    assert job.mirrored("star")["points"] == 3


@pytest.mark.parametrize(
    ("column", "type_", "stored"),
    [
        ("age", "string", 36),
        ("age", "int", "36"),
        ("age", "decimal(12,2)", "1000"),
        ("age", "decimal", "BNI="),
        ("age", "int[]", [1, "2"]),
        ("at", "timestamp", 1_577_836_800_000),
    ],
)
def test_a_stored_value_that_does_not_fit_is_null_and_counted(column: str, type_: str, stored: Any) -> None:
    job = Job()
    job.send("user", ROW | {column: stored})
    job.goes_on(plan_with(**{column: type_}))
    job.send("star", STAR | {"id": 8})
    assert job.document()[column] is None
    assert job.trial.tally[Count.UNREADABLE] > 0
    assert job.mirrored("user")[column] is None


def test_a_value_that_the_source_does_not_send_is_kept_when_its_column_was_declared_later() -> None:
    job = Job()
    job.goes_on(plan_with(age="int"))
    job.send("user", ROW | {"age": PLACEHOLDER, "name": "bob"})
    assert (job.document()["name"], job.document()["age"]) == ("bob", 36)


def test_a_change_to_null_of_a_column_declared_later_is_published() -> None:
    job = Job()
    job.goes_on(plan_with(age="int"))
    job.send("star", STAR | {"id": 8})
    assert job.document()["age"] == 36
    job.send("user", ROW | {"age": None})
    assert job.document()["age"] is None
