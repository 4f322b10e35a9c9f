"""What a task reads of source transactions, and which of them count."""

from dataclasses import dataclass, field

from processor.gates.held_portion import SeenRecords, TransactionName
from processor.gates.ranges import ranges_of
from processor.plan.plan import Plan
from processor.plan.product_plan import ProductPlan
from processor.records.entity import Entity
from processor.records.record import Decoded


def topics_of(planned: ProductPlan, plan: Plan) -> frozenset[str]:
    """The topics of transaction metadata for whose transactions the documents of the product wait."""
    product = planned.product
    if not planned.gate.whole:
        return frozenset()
    names = {product.root, *(join.entity for _, join in product.walk())}
    return frozenset(plan.entities[name].entity.transactions for name in names) - {""}


def followed_topics(plan: Plan) -> frozenset[str]:
    """Those of all products of the plan."""
    return frozenset[str]().union(*(topics_of(planned, plan) for planned in plan.products.values()))


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
