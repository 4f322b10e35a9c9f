"""What Debezium says of transactions, where the connector has `provide.transaction.metadata=true`. Pure; never raises.

    a record       "transaction": {"id": "760:24322744", "total_order": 3, "data_collection_order": 2}
    flattened      "__transaction_id": "760:24322744", "__transaction_data_collection_order": 2
    transaction    {"status": "END", "id": "760:24323472", "event_count": 4,
    topic           "data_collections": [{"data_collection": "public.users", "event_count": 4}]}

Postgres puts the position of each record behind the number of the transaction: only the number before it names the transaction.
Records of a snapshot name no transaction, and an end counts no tombstones.
"""

import re
from collections.abc import Mapping
from math import inf
from typing import Any, Final, NamedTuple, Protocol

_POSTGRES_ID: Final = re.compile(r"([0-9]+):[0-9]+")
PLACE: Final = ("db", "schema", "table")


class SourceTransaction(NamedTuple):
    """The transaction of a record. `collection`: its table, as the end of the transaction names it. `order`: the place of the
    record among those of this table in the transaction, from 1."""

    id: str
    collection: str
    order: int


class TransactionEnd(NamedTuple):
    """The end of a transaction. `counts`: how many records of each table it has; `time`: Kafka's, in seconds since 1970, infinite
    where it is not known."""

    id: str
    counts: Mapping[str, int]
    time: float = inf


class TransactionFeed(Protocol):
    """The ends of transactions, as their topics bring them."""

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        """The next ends in a topic, at most some thousand; empty where the topic has no more now. `since`: Kafka's time of the
        oldest record whose transaction has no end yet, in seconds since 1970; an earlier one than before may repeat ends. Never
        raises."""

    def close(self) -> None:
        """Ends the connections of the feed."""


class NoTransactionFeed:
    """The feed of a job that reads no transaction topic."""

    def ends(self, topic: str, since: float) -> list[TransactionEnd]:
        return []

    def close(self) -> None:
        return None


def read_transaction_end(payload: Any) -> TransactionEnd | None:
    """The end in the value of a record of the transaction topic. None: the value is no end."""
    if type(payload) is not dict or payload.get("status") != "END":
        return None
    name, collections = _transaction_id(payload.get("id")), payload.get("data_collections")
    if not name or type(collections) not in (list, type(None)):
        return None
    counts: dict[str, int] = {}
    for one in collections or ():
        if (
            type(one) is not dict
            or type(one.get("data_collection")) is not str
            or not _is_count(one.get("event_count"))
        ):
            return None
        counts[one["data_collection"]] = one["event_count"]
    return TransactionEnd(name, counts)


def named_transaction(name: Any, order: Any, source: Mapping[str, Any]) -> SourceTransaction | None:
    """The transaction of a record: its id, the place of the record in it, and Debezium's `source`. None: they name none."""
    known, collection = _transaction_id(name), _collection(source)
    return SourceTransaction(known, collection, order) if known and collection and _is_count(order) else None


def _transaction_id(name: Any) -> str:
    """The id that all records of a transaction and its end share; empty where there is none."""
    if type(name) is not str:
        return ""
    found = _POSTGRES_ID.fullmatch(name)
    return found[1] if found else name


def _collection(source: Mapping[str, Any]) -> str:
    """The table, as ends name it: with its schema in Postgres, with its database in MariaDB and MySQL."""
    place = PLACE[1:] if source.get("connector") == "postgresql" else PLACE
    names = [name for part in place if type(name := source.get(part)) is str and name]
    return ".".join(names) if source.get("table") else ""


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0
