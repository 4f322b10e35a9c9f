"""What a task knows of source transactions: the records that it has read, and what each transaction touched."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from processor.gates.held_portion import SeenRecords, TransactionName
from processor.gates.ranges import ranges_of
from processor.plan.plan import Plan
from processor.plan.touch import Root
from processor.records.entity import Entity
from processor.records.record import Decoded


class TouchedRoots(NamedTuple):
    """`seen`: the records of transactions that the task has read. `roots`: the transactions that touched each root;
    `products`: those that touched roots which a fan-out has yet to find."""

    seen: Mapping[TransactionName, SeenRecords] = {}
    roots: Mapping[Root, frozenset[TransactionName]] = {}
    products: Mapping[str, frozenset[TransactionName]] = {}


NOTHING_TOUCHED: Final = TouchedRoots()


def followed_topics(plan: Plan) -> frozenset[str]:
    """The topics of transaction metadata that the products of the plan wait for."""
    whole = [planned.product for planned in plan.products.values() if planned.product.gate.whole]
    names = {name for product in whole for name in (product.root, *(join.entity for _, join in product.walk()))}
    return frozenset(plan.entities[name].entity.transactions for name in names) - {""}


def tables_of(plan: Plan) -> dict[str, set[str]]:
    """Of each topic that products wait for: the tables that the job reads, by the names in ends."""
    found: dict[str, set[str]] = {topic: set() for topic in followed_topics(plan)}
    for planned in plan.entities.values():
        entity = planned.entity
        if entity.transactions in found:
            found[entity.transactions].add(entity.source or ".".join(entity.topic.split(".")[-2:]))
    return found


@dataclass(slots=True)
class SeenTransactions:
    """The records of transactions that a task reads. `followed`: the topics whose transactions count."""

    followed: frozenset[str]
    _times: dict[TransactionName, float] = field(default_factory=dict)
    _orders: dict[TransactionName, dict[str, set[int]]] = field(default_factory=dict)

    def see(self, decoded: Decoded, entity: Entity | None) -> None:
        """Notes a record, whatever becomes of it."""
        transaction = decoded.transaction
        if transaction is None or entity is None or entity.transactions not in self.followed:
            return
        name, time = (entity.transactions, transaction.id), decoded.record.timestamp / 1000
        self._times[name] = min(time, self._times.get(name, time))
        self._orders.setdefault(name, {}).setdefault(transaction.collection, set()).add(transaction.order)

    def records(self) -> dict[TransactionName, SeenRecords]:
        """All of them."""
        return {
            name: SeenRecords(self._times[name], {table: ranges_of(orders) for table, orders in tables.items()})
            for name, tables in self._orders.items()
        }
