"""What a task reads of source transactions, and which of them count."""

from dataclasses import dataclass, field

from processor.engine.plan.plan import Plan
from processor.engine.plan.product_plan import ProductPlan
from processor.engine.protocol.held_portion import SeenPlace, SeenRecords, TransactionName
from processor.engine.protocol.ranges import ranges_of
from processor.values.entity import Entity
from processor.values.record import Decoded


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
class _Part:
    """What a task reads of a transaction, and of a table, in a partition."""

    first: int
    last: int
    newest: int = 0
    orders: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Seen:
    """What a task reads of a transaction."""

    time: float
    last: float
    again: bool = False
    parts: dict[tuple[str, int], _Part] = field(default_factory=dict)


@dataclass(slots=True)
class SeenTransactions:
    """The records of transactions that a task reads, each partition in the order of offsets. `followed`: the topics whose
    transactions count."""

    followed: frozenset[str]
    _seen: dict[TransactionName, _Seen] = field(default_factory=dict)

    def see(self, decoded: Decoded, entity: Entity | None) -> None:
        """Notes a record, whatever becomes of it."""
        transaction, record = decoded.transaction, decoded.record
        if transaction is None or entity is None or entity.transactions not in self.followed:
            return
        time = record.timestamp / 1000
        seen = self._seen.setdefault((entity.transactions, transaction.id), _Seen(time, time))
        seen.time, seen.last = min(time, seen.time), max(time, seen.last)
        at = (transaction.collection, record.partition)
        part = seen.parts.setdefault(at, _Part(record.offset, record.offset))
        part.last = record.offset
        seen.again = seen.again or transaction.order <= part.newest
        part.newest = transaction.order
        part.orders.add(transaction.order)

    def records(self) -> dict[TransactionName, SeenRecords]:
        """All of them."""
        return {
            name: SeenRecords(
                seen.time,
                seen.last,
                {at: SeenPlace(part.first, part.last, ranges_of(part.orders)) for at, part in seen.parts.items()},
                seen.again,
            )
            for name, seen in self._seen.items()
        }
