"""Each result of decoding names the transaction of its record, in every format, where the entity has a transaction topic."""

import json
from dataclasses import replace
from typing import Any

import pytest

from processor.engine.protocol.decode import decode
from processor.values.record import Change, Ignored, Record, Rejected, SourceTransaction, Truncated
from tests.unit.engine.protocol.decoding import decoded, entity, envelope

ORDERS = replace(entity("orders", "id", "id int, amount int"), transactions="app.transaction")
SOURCE = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders"}
BLOCK = {"id": "760:24322744", "total_order": 5, "data_collection_order": 2}
NAMED = SourceTransaction("760", "public.orders", 2)


def value(op: str, **sides: Any) -> dict[str, Any]:
    return envelope(op, **sides) | {"source": SOURCE, "transaction": BLOCK}


CASES = [
    (value("c", after={"id": 1, "amount": 2}), Change),
    (value("u", after={"id": 1, "amount": 2}), Change),
    (value("d", before={"id": 1}), Change),
    (value("c", after={"id": 1, "amount": "many"}), Rejected),
    (value("c"), Rejected),
    (value("m"), Ignored),
    ({"schema": {"type": "struct", "fields": []}, "payload": value("c", after={"id": 1})}, Change),
    ({"id": 1, "amount": 2, "__transaction_id": "760:24322744", "__transaction_data_collection_order": 2}
     | {"__source_schema": "public", "__source_table": "orders"}, Change),
]  # fmt: skip


@pytest.mark.parametrize(("given", "kind"), CASES)
def test_a_record_keeps_its_transaction_whatever_becomes_of_it(given: Any, kind: type) -> None:
    found = decoded(ORDERS, {"id": 1}, given)
    assert isinstance(found, kind)
    assert found.transaction == NAMED


@pytest.mark.parametrize("choice", ["refuse", "ignore", "delete"])
def test_a_truncate_names_its_transaction(choice: Any) -> None:
    found = decoded(replace(ORDERS, truncate=choice), None, value("t"))
    assert isinstance(found, Ignored if choice == "ignore" else Truncated)
    assert found.transaction == NAMED


@pytest.mark.parametrize("given", [None, b"{", envelope("r", after={"id": 1}), {"id": 1, "amount": 2}])
def test_a_tombstone_a_snapshot_a_plain_row_and_broken_json_name_no_transaction(given: Any) -> None:
    assert decoded(ORDERS, {"id": 1}, given).transaction is None


@pytest.mark.parametrize(("given", "_"), CASES)
def test_an_entity_without_a_transaction_topic_reads_none(given: Any, _: type) -> None:
    assert decoded(replace(ORDERS, transactions=""), {"id": 1}, given).transaction is None


def test_the_members_of_a_flattened_transaction_are_no_columns() -> None:
    record = Record(topic="t", partition=0, offset=0, key=b'{"id":1}', value=json.dumps(CASES[-1][0]).encode())
    found = decode(record, ORDERS)
    assert isinstance(found, Change)
    assert found.row == {"id": 1, "amount": 2}
