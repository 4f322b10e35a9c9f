"""What records and ends say of the transactions of the source."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from processor.values.envelopes.kinds import read_transaction
from processor.values.record import SourceTransaction, TransactionEnd, read_transaction_end
from processor.values.recorded_topics import read_records

SAMPLES = Path(__file__).parents[2] / "data" / "debezium"
POSTGRES = {"connector": "postgresql", "db": "shop", "schema": "public", "table": "orders"}
MARIADB = {"connector": "mysql", "db": "shop", "table": "orders"}


def block(name: Any = "760:24322744", order: Any = 2) -> dict[str, Any]:
    return {"id": name, "total_order": 7, "data_collection_order": order}


@pytest.mark.parametrize(
    ("value", "transaction"),
    [
        ({"source": POSTGRES, "transaction": block()}, SourceTransaction("760", "public.orders", 2)),
        (
            {"source": MARIADB, "transaction": block("file=binlog.000001,pos=4711")},
            SourceTransaction("file=binlog.000001,pos=4711", "shop.orders", 2),
        ),
        (
            {"source": MARIADB, "transaction": block("0e4d5dcd-a33b-11ea-80f1-02010a22a99e:10")},
            SourceTransaction("0e4d5dcd-a33b-11ea-80f1-02010a22a99e:10", "shop.orders", 2),
        ),
        (
            {"id": 1, "__transaction_id": "760:1", "__transaction_data_collection_order": 3}
            | {"__source_schema": "public", "__source_table": "orders"},
            SourceTransaction("760", "public.orders", 3),
        ),
        (
            {"id": 1, "__transaction_id": "x", "__transaction_data_collection_order": 3, "__db": "d", "__table": "t"},
            SourceTransaction("x", "d.t", 3),
        ),
        ({"source": POSTGRES, "transaction": None}, None),
        ({"source": POSTGRES}, None),
        ({"id": 1, "transaction": block()}, None),
        ({"source": POSTGRES, "transaction": block("")}, None),
        ({"source": POSTGRES, "transaction": block(7)}, None),
        ({"source": POSTGRES, "transaction": block(order=0)}, None),
        ({"source": POSTGRES, "transaction": block(order=True)}, None),
        ({"source": POSTGRES, "transaction": block(order="2")}, None),
        ({"source": {"connector": "postgresql", "schema": "public"}, "transaction": block()}, None),
        ({"id": 1, "__transaction_id": "760:1", "__transaction_data_collection_order": 3}, None),
        ({"id": 1, "__transaction_id": None, "__transaction_data_collection_order": None}, None),
        (None, None),
        ([], None),
        ("text", None),
    ],
)
def test_a_record_names_its_transaction_its_table_and_its_place_there(
    value: Any, transaction: SourceTransaction | None
) -> None:
    assert read_transaction(value) == transaction


def end(collections: Any, name: Any = "760:24323472", status: str = "END") -> dict[str, Any]:
    return {"status": status, "id": name, "event_count": 4, "data_collections": collections, "ts_ms": 1}


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (
            end([{"data_collection": "public.a", "event_count": 3}, {"data_collection": "public.b", "event_count": 1}]),
            TransactionEnd("760", {"public.a": 3, "public.b": 1}),
        ),
        (end([]), TransactionEnd("760", {})),
        (end(None), TransactionEnd("760", {})),
        (end(None, status="BEGIN"), None),
        (end({}), None),
        (end([{"data_collection": "public.a"}]), None),
        (end([{"data_collection": 1, "event_count": 3}]), None),
        (end([], name=None), None),
        ({}, None),
        (None, None),
        ([1], None),
    ],
)
def test_an_end_counts_the_records_of_each_table(value: Any, read: TransactionEnd | None) -> None:
    assert read_transaction_end(value) == read


def ends_and_records(sample: str) -> Iterator[tuple[TransactionEnd | None, SourceTransaction | None]]:
    for record in read_records(str(SAMPLES / sample)):
        value = None if record.value is None else json.loads(record.value)
        yield read_transaction_end(value), read_transaction(value)


@pytest.mark.parametrize("sample", ["postgres-events.jsonl.gz", "transaction-toast-pkchange.jsonl"])
def test_the_ends_of_a_live_debezium_count_its_records(sample: str) -> None:
    found = list(ends_and_records(sample))
    ends = {one.id: dict(one.counts) for one, _ in found if one is not None and one.counts}
    counted: dict[str, dict[str, int]] = {}
    for _, one in found:
        if one is not None:
            tables = counted.setdefault(one.id, {})
            tables[one.collection] = tables.get(one.collection, 0) + 1
            assert one.order == tables[one.collection]
    assert counted
    assert {name: ends[name] for name in counted} == counted
