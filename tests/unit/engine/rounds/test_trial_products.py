"""Filters, required joins and totals, as a consumer sees them: the documents and tombstones after each change."""

import json
from typing import Any

from processor.engine.plan.planning import plan_alone
from processor.engine.rounds.trial import Trial
from processor.environment.settings.settings import Settings
from processor.language.definitions.load import load
from processor.values.record import Record

ENTITIES = {
    "user": {"key": ["id"], "columns": {"id": "int", "name": "string", "age": "int", "cash": "decimal", "bio": "string"}},
    "order": {"key": ["id"], "columns": {"id": "int", "user": "int", "amount": "decimal", "status": "string", "note": "string"}},
}  # fmt: skip
ANN = {"id": 1, "name": "Ann", "age": 30, "cash": 10, "bio": "x"}


class ProductTrial:
    """A trial of one product. `send` processes a change and returns the values that the job then publishes."""

    def __init__(self, **product: Any) -> None:
        texts = {
            "entities.yaml": json.dumps(ENTITIES),
            "p.json": json.dumps({"product": "p", "root": "user"} | product),
        }
        self.job = Trial(plan=plan_alone(load(texts), 20), settings=Settings())
        self._offset = 0

    def send(self, topic: str, row: dict[str, Any] | None, **key: Any) -> list[Any]:
        self._offset += 1
        before = len(self.job.published.messages)
        value = None if row is None else json.dumps(row).encode()
        encoded = json.dumps(key).encode() if key else None
        self.job.batch([Record(topic=topic, partition=0, offset=self._offset, key=encoded, value=value)])
        self.job.finish()
        sent = self.job.published.messages[before:]
        return [None if m.value is None else json.loads(m.value) for m in sent]


def order(id: int, **more: Any) -> dict[str, Any]:
    return {"id": id, "user": 1, "amount": 5, "status": "open", "note": None} | more


def test_a_root_that_stops_matching_gets_a_tombstone_and_a_root_that_never_matched_gets_nothing() -> None:
    trial = ProductTrial(where="age >= 18", fields=["id", "name"])
    assert trial.send("user", ANN | {"age": 17}) == []
    assert trial.send("user", ANN) == [{"id": 1, "name": "Ann"}]
    assert trial.send("user", ANN | {"bio": "y", "cash": 11}) == []
    assert trial.send("user", ANN | {"age": 40}) == []
    assert trial.send("user", ANN | {"age": None}) == [None]
    assert trial.send("user", ANN | {"age": 12}) == []
    assert trial.send("user", None, id=1) == []
    assert trial.send("user", ANN) == [{"id": 1, "name": "Ann"}]


def test_a_required_join_without_rows_removes_the_document() -> None:
    join = {"many": "order", "on": {"user": "id"}, "where": "status = 'open'", "required": True, "value": "id"}
    trial = ProductTrial(fields=["name"], embed={"open": join})
    assert trial.send("user", ANN) == []
    assert trial.send("order", order(7, status="paid")) == []
    assert trial.send("order", order(7)) == [{"name": "Ann", "open": [7]}]
    assert trial.send("order", order(7, status=None)) == [None]
    assert trial.send("order", order(7)) == [{"name": "Ann", "open": [7]}]
    assert trial.send("order", None, id=7) == [None]


def test_a_change_of_a_column_that_only_a_level_below_reads_rebuilds_the_document() -> None:
    join = {"many": "order", "on": {"user": "id"}, "where": "amount <= parent.cash", "value": "id"}
    trial = ProductTrial(fields=["name"], embed={"affordable": join})
    trial.send("user", ANN)
    assert trial.send("order", order(1, amount=20)) == []
    assert trial.send("user", ANN | {"cash": "20.00"}) == [{"name": "Ann", "affordable": [1]}]


def test_aggregates_of_no_rows_are_null_and_counts_are_zero() -> None:
    orders = {"many": "order", "on": {"user": "id"}}
    fields = {"n": "count(*)", "sum": "sum(amount)", "mean": "sum(amount) / count(*)", "last": "max(note)"}
    trial = ProductTrial(fields=["id"], join={"all": orders}, embed={"orders": orders | {"fields": fields}})
    assert trial.send("user", ANN) == [{"id": 1, "orders": {"n": 0, "sum": None, "mean": None, "last": None}}]
    trial.send("order", order(1, amount=5, note="b"))
    assert trial.send("order", order(2, amount=5.5)) == [
        {"id": 1, "orders": {"n": 2, "sum": 10.5, "mean": 5.25, "last": "b"}}
    ]


def test_a_list_that_was_cut_has_its_total_and_the_trial_counts_the_cut() -> None:
    join = {"many": "order", "on": {"user": "id"}, "order_by": ["-amount"], "limit": 1, "total": True, "value": "id"}
    trial = ProductTrial(fields=[], embed={"best": join, "x": {"one": "order", "on": {"user": "id"}, "value": "id"}})
    trial.send("user", ANN)
    trial.send("order", order(1))
    assert trial.send("order", order(2, amount=9)) == [{"best": [2], "best_total": 2, "x": 1}]
    assert (trial.job.tally["cut"] > 0, trial.job.tally["ambiguous"] > 0) == (True, True)


def test_a_change_that_leaves_the_document_as_it_was_is_not_published() -> None:
    join = {"many": "order", "on": {"user": "id"}, "where": "amount > 3", "value": "count(*)"}
    trial = ProductTrial(fields=["id"], embed={"large": join})
    trial.send("user", ANN)
    assert trial.send("order", order(1)) == [{"id": 1, "large": 1}]
    assert trial.send("order", order(1, amount=50, note="a column that nothing reads")) == []


def test_a_join_of_two_columns_to_one_holds_where_both_are_equal() -> None:
    trial = ProductTrial(
        fields=["id"], embed={"even": {"many": "order", "on": {"user": "age", "amount": "age"}, "value": "id"}}
    )
    assert trial.send("user", ANN) == [{"id": 1, "even": []}]
    assert trial.send("order", order(1, user=30, amount=5)) == []
    assert trial.send("order", order(2, user=30, amount=30)) == [{"id": 1, "even": [2]}]
    assert trial.send("order", order(1, user=30, amount=30)) == [{"id": 1, "even": [1, 2]}]
    assert trial.send("order", order(2, user=5, amount=30)) == [{"id": 1, "even": [1]}]
    assert trial.send("user", ANN | {"age": 31}) == [{"id": 1, "even": []}]


def test_a_join_of_two_columns_to_a_key_finds_the_root_by_it() -> None:
    trial = ProductTrial(
        fields=["id"], embed={"own": {"many": "order", "on": {"id": "id", "user": "id"}, "value": "note"}}
    )
    assert trial.send("order", order(1, note="x")) == []
    assert trial.send("user", ANN) == [{"id": 1, "own": ["x"]}]
    assert trial.send("order", order(1, note="y")) == [{"id": 1, "own": ["y"]}]
    assert trial.send("order", order(1, user=2)) == [{"id": 1, "own": []}]
    assert trial.send("order", order(2)) == []
