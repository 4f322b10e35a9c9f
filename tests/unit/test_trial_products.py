"""What consumers see of filters, required joins and totals: documents and tombstones, through the steps, one change at a time."""

import json
from typing import Any

from processor.definitions.load import load
from processor.model.change import Record
from processor.planning import plan_alone
from processor.settings import Settings
from processor.trial import Trial

ENTITIES = {
    "user": {"key": ["id"], "columns": {"id": "int", "name": "string", "age": "int", "cash": "decimal", "bio": "string"}},
    "order": {"key": ["id"], "columns": {"id": "int", "user": "int", "amount": "decimal", "status": "string", "note": "string"}},
}  # fmt: skip
ANN = {"id": 1, "name": "Ann", "age": 30, "cash": 10, "bio": "x"}


class Told:
    """A trial of one product: `tell` takes a change and gives the values that are published then."""

    def __init__(self, **product: Any) -> None:
        texts = {
            "entities.yaml": json.dumps(ENTITIES),
            "p.json": json.dumps({"product": "p", "root": "user"} | product),
        }
        self.trial = Trial(plan=plan_alone(load(texts), 20), settings=Settings())
        self._offset = 0

    def tell(self, topic: str, row: dict[str, Any] | None, **key: Any) -> list[Any]:
        self._offset += 1
        before = len(self.trial.published.messages)
        value = None if row is None else json.dumps(row).encode()
        spelt = json.dumps(key).encode() if key else None
        self.trial.batch([Record(topic=topic, partition=0, offset=self._offset, key=spelt, value=value)])
        self.trial.finish()
        sent = self.trial.published.messages[before:]
        return [None if m.value is None else json.loads(m.value) for m in sent]


def order(id: int, **more: Any) -> dict[str, Any]:
    return {"id": id, "user": 1, "amount": 5, "status": "open", "note": None} | more


def test_a_root_that_stops_matching_gets_a_tombstone_and_one_that_never_matched_nothing() -> None:
    told = Told(where="age >= 18", fields=["id", "name"])
    assert told.tell("user", ANN | {"age": 17}) == []
    assert told.tell("user", ANN) == [{"id": 1, "name": "Ann"}]
    assert told.tell("user", ANN | {"bio": "y", "cash": 11}) == []
    assert told.tell("user", ANN | {"age": 40}) == []
    assert told.tell("user", ANN | {"age": None}) == [None]
    assert told.tell("user", ANN | {"age": 12}) == []
    assert told.tell("user", None, id=1) == []
    assert told.tell("user", ANN) == [{"id": 1, "name": "Ann"}]


def test_a_required_join_takes_the_document_with_it() -> None:
    join = {"many": "order", "on": {"user": "id"}, "where": "status = 'open'", "required": True, "value": "id"}
    told = Told(fields=["name"], embed={"open": join})
    assert told.tell("user", ANN) == []
    assert told.tell("order", order(7, status="paid")) == []
    assert told.tell("order", order(7)) == [{"name": "Ann", "open": [7]}]
    assert told.tell("order", order(7, status=None)) == [None]
    assert told.tell("order", order(7)) == [{"name": "Ann", "open": [7]}]
    assert told.tell("order", None, id=7) == [None]


def test_a_change_of_a_column_that_only_a_level_below_reads_rebuilds_the_document() -> None:
    join = {"many": "order", "on": {"user": "id"}, "where": "amount <= parent.cash", "value": "id"}
    told = Told(fields=["name"], embed={"affordable": join})
    told.tell("user", ANN)
    assert told.tell("order", order(1, amount=20)) == []
    assert told.tell("user", ANN | {"cash": "20.00"}) == [{"name": "Ann", "affordable": [1]}]


def test_aggregates_of_no_rows_are_null_and_counts_are_zero() -> None:
    orders = {"many": "order", "on": {"user": "id"}}
    fields = {"n": "count(*)", "sum": "sum(amount)", "mean": "sum(amount) / count(*)", "last": "max(note)"}
    told = Told(fields=["id"], join={"all": orders}, embed={"orders": orders | {"fields": fields}})
    assert told.tell("user", ANN) == [{"id": 1, "orders": {"n": 0, "sum": None, "mean": None, "last": None}}]
    told.tell("order", order(1, amount=5, note="b"))
    assert told.tell("order", order(2, amount=5.5)) == [
        {"id": 1, "orders": {"n": 2, "sum": 10.5, "mean": 5.25, "last": "b"}}
    ]


def test_a_total_stands_beside_the_list_that_was_cut_and_cuts_are_counted() -> None:
    join = {"many": "order", "on": {"user": "id"}, "order_by": ["-amount"], "limit": 1, "total": True, "value": "id"}
    told = Told(fields=[], embed={"best": join, "x": {"one": "order", "on": {"user": "id"}, "value": "id"}})
    told.tell("user", ANN)
    told.tell("order", order(1))
    assert told.tell("order", order(2, amount=9)) == [{"best": [2], "best_total": 2, "x": 1}]
    assert (told.trial.tally["cut"] > 0, told.trial.tally["ambiguous"] > 0) == (True, True)


def test_a_change_that_leaves_the_document_as_it_was_is_not_published() -> None:
    join = {"many": "order", "on": {"user": "id"}, "where": "amount > 3", "value": "count(*)"}
    told = Told(fields=["id"], embed={"large": join})
    told.tell("user", ANN)
    assert told.tell("order", order(1)) == [{"id": 1, "large": 1}]
    assert told.tell("order", order(1, amount=50, note="a column that nothing reads")) == []
