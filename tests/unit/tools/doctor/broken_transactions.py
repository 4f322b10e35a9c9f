"""Transaction metadata that is not there, and the finding that names it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from processor.job.kafka.admin import HIDDEN
from processor.values.record import Record
from tests.unit.tools.doctor.broken import Fault
from tests.unit.tools.doctor.healthy import COMPACTED, Healthy

BLOCK = {"id": "760:1", "total_order": 1, "data_collection_order": 1}
USER = {"id": 1, "email": "a", "username": "ada", "registered_at": None}
SOURCE = {"connector": "postgresql", "schema": "public", "table": "users"}


def envelope(op: str, transaction: Any) -> dict[str, Any]:
    return {"before": None, "after": USER, "op": op, "source": SOURCE, "transaction": transaction}


def transactions(*values: Any, state: Any = None) -> Callable[[Healthy], object]:
    """The entity `user` has a transaction topic, and these values in its last records, the newest last. `state`: of the topic;
    None for one like those of the entities."""

    def breaks(around: Healthy) -> None:
        entities = dict(around.plan.entities)
        user = replace(entities["user"].entity, transactions="app.transaction")
        around.plan = replace(around.plan, entities=entities | {"user": replace(entities["user"], entity=user)})
        like_others = around.kafka.found["user"]._replace(config=COMPACTED)
        around.kafka.found["app.transaction"] = like_others if state is None else state
        encoded = (None if value is None else json.dumps(value).encode() for value in values)
        around.kafka.records["user"] = [
            Record(topic="user", partition=0, offset=n, timestamp=n, key=None, value=value)
            for n, value in enumerate(encoded)
        ]

    return breaks


def missing(around: Healthy) -> None:
    transactions(envelope("c", BLOCK))(around)
    around.kafka.found.pop("app.transaction")


WARNED = "user: entity user has `transactions`, and its last record names no transaction"
TRANSACTION_FAULTS = [
    Fault("no transaction topic", missing, "source records", "warning", "app.transaction: no such topic", "metadata=true"),
    Fault(
        "a hidden transaction topic",
        transactions(envelope("c", BLOCK), state=HIDDEN),
        "source records",
        "failure",
        "app.transaction: this user lacks READ",
        "provide.transaction.metadata=true",
    ),
    Fault(
        "records without transactions",
        transactions(envelope("u", BLOCK), envelope("d", None), None, envelope("r", None)),
        "source records",
        "warning",
        WARNED,
        "provide.transaction.metadata=true in the connector",
    ),
    Fault(
        "flattened records without transactions",
        transactions({**USER, "__op": "u", "__transaction_id": "760:1"}),
        "source records",
        "warning",
        WARNED,
        "add.fields of ExtractNewRecordState have transaction.id, transaction.data_collection_order, source.schema",
    ),
]  # fmt: skip
FINE = [
    transactions(),
    transactions(envelope("u", None), envelope("u", BLOCK), None, envelope("r", None)),
    transactions({**USER, "__op": "r", "__transaction_id": None}),
]
"""Set-ups with transaction metadata, in which nothing is wrong."""
