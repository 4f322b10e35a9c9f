"""Gates around the driver: what a task reads of source transactions, the gates of a plan, and why a root waits. Pure.

The verbs run in another process than the job, and read the roots that wait from the table (`stored_roots`). A verb sees what
the job would take over if it began now. The table has no ends of transactions.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import inf
from typing import Any, NamedTuple

from processor.engine.plan.plan import Plan, ProductPlan
from processor.engine.plan.step import Root
from processor.engine.protocol.gate_items import SeenPlace, SeenRecords, TransactionName, ranges_of
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.pending import PARTITION
from processor.language.product.product import OPEN, Gate
from processor.text import duration_text
from processor.values.entity import Entity
from processor.values.record import Decoded
from statestore.store import Delete, Item, Store


def topics_of(planned: ProductPlan, plan: Plan) -> frozenset[str]:
    """The topics of transaction metadata for whose transactions the documents of the product wait."""
    product = planned.product
    if not planned.gate.whole:
        return frozenset()
    names = {product.root, *(join.entity for _, join in product.walk())}
    return frozenset(plan.entities[name].entity.transactions for name in names) - {""}


def followed_topics(plan: Plan) -> frozenset[str]:
    """Those of all products of the plan."""
    return frozenset[str]().union(*(topics_of(planned, plan) for planned in plan.gated.values()))


def tables_of(plan: Plan) -> dict[str, set[str]]:
    """Of each topic that products wait for: the tables that the job reads, by the names in ends."""
    found: dict[str, set[str]] = {topic: set() for topic in followed_topics(plan)}
    for planned in plan.entities.values():
        entity = planned.entity
        if entity.transactions in found:
            place = entity.table if "." in entity.table else entity.topic
            found[entity.transactions].add(entity.source or ".".join(place.split(".")[-2:]))
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


def adopt_plan(held: HeldRoots, plan: Plan, now: float) -> list[Delete]:
    """Continues with the gates of a plan; returns the deletes of items that are no longer needed."""
    active = {name: one for name, one in plan.products.items() if not one.paused}
    gates = {name: one.gate for name, one in active.items()}
    topics = {name: topics_of(one, plan) for name, one in active.items() if one.gate.whole}
    return held.adopt(gates, topics, tables_of(plan), now)


def stored_roots(plan: Plan, store: Store, date: float) -> HeldRoots:
    """The roots that wait in the table. All times are in seconds since 1970. `date`: now."""
    return waiting_in(plan, store.partition(PARTITION), date)


def waiting_in(plan: Plan, items: Iterable[Item], date: float) -> HeldRoots:
    """The roots that wait in these items of `PARTITION`."""
    held = HeldRoots(run=1)
    adopt_plan(held, plan, date)
    held.reload(items, date, date)
    return held


class AwaitedTransaction(NamedTuple):
    """A transaction for which roots wait. `missing`: the records that the job has read of each table, and those that its end
    says, where these differ; None: its end is unknown. `again`: the connector sends it again, and what came after it."""

    topic: str
    id: str
    missing: Mapping[str, tuple[int, int]] | None
    again: bool = False

    @property
    def text(self) -> str:
        """The transaction, and what it lacks."""
        if self.again:
            lacks = "the connector sends it again, with all that came after it"
        elif self.missing is None:
            lacks = "its end is unknown"
        else:
            read = (f"{so_far} of {most} records of {table}" for table, (so_far, most) in sorted(self.missing.items()))
            lacks = f"read are {', '.join(read)}"
        return f"transaction {self.id} of topic {self.topic}, {lacks}"


class Wait(NamedTuple):
    """Why a root waits, in the times of `HeldRoots`. `gate`: of its product; `changed`: its last change; `last`: when it goes
    out at the latest, whatever the gate says; `quiet_until`, `apart_until`: what `quiet` and `every` say;
    `transaction`: the first for which it waits, None without one."""

    gate: Gate
    changed: float
    last: float
    quiet_until: float
    apart_until: float
    transaction: AwaitedTransaction | None


class WaitingDocuments(NamedTuple):
    """The roots of a product that wait. `since`: when the oldest began to wait; `transaction`: the first for which it waits."""

    documents: int
    since: float
    transaction: AwaitedTransaction | None


def wait_of(held: HeldRoots, root: Root) -> Wait | None:
    """Why the root waits; None where it does not."""
    one = held.held.get(root)
    if one is None:
        return None
    gate = held.gates[root[0]]
    quiet, apart = one.touched + gate.quiet, held.apart_until(root)
    return Wait(gate, one.touched, one.since + gate.at_most, quiet, apart, _awaited(held, root))


def waiting_documents(held: HeldRoots) -> dict[str, WaitingDocuments]:
    """The roots that wait, by product. Another thread may ask: the driver adds and removes roots meanwhile."""
    count, oldest = dict[str, int](), dict[str, tuple[float, Root]]()
    for root, one in list(held.held.items()):
        count[root[0]] = count.get(root[0], 0) + 1
        oldest[root[0]] = min((one.since, root), oldest.get(root[0], (one.since, root)))
    return {
        product: WaitingDocuments(count[product], since, _awaited(held, root))
        for product, (since, root) in oldest.items()
    }


def wait_text(wait: Wait, now: float) -> str:
    """What a reader of the document must know."""
    return f"not published as it is now: it waits at its gate, and changed last {duration_text(now - wait.changed)} ago"


def gate_states(held: HeldRoots, now: float, date: float) -> dict[str, dict[str, Any]]:
    """Each product with a gate, or whose last gate still holds roots, as JSON values: how many roots wait, since when the oldest
    does, in seconds since 1970, and for which transaction. `now`: in the times of `HeldRoots`; `date`: the same moment."""
    waiting = waiting_documents(held)
    return {
        product: {
            "waiting": one.documents if one else 0,
            "since": round(date - now + one.since, 3) if one else None,
            "transaction": one.transaction._asdict() if one and one.transaction else None,
        }
        for product, gate in list(held.gates.items())
        for one in (waiting.get(product),)
        if one or gate != OPEN
    }


def wait_lines(wait: Wait, now: float) -> Iterator[str]:
    """The wait as lines."""
    yield wait_text(wait, now)
    reasons = list(_reasons(wait, now))
    yield from (f"  {reason}" for reason in reasons)
    if reasons and wait.last > now:
        yield f"  it goes out in {duration_text(wait.last - now)} at the latest (`at_most`)"
    else:
        yield "  its time has come: the job publishes it at once, or when it starts"


def wait_json(wait: Wait) -> dict[str, Any]:
    """The wait as JSON values; times as texts in UTC. What the gate does not ask for is null."""
    transaction = wait.transaction
    return {
        "changed": _moment(wait.changed),
        "at_most_until": _moment(wait.last),
        "quiet_until": _moment(wait.quiet_until) if wait.gate.quiet else None,
        "every_until": _moment(wait.apart_until) if wait.apart_until > -inf else None,
        "transaction": None if transaction is None else transaction._asdict(),
    }


def _reasons(wait: Wait, now: float) -> Iterator[str]:
    if wait.quiet_until > now:
        yield f"quiet: its rows must not change for {duration_text(wait.quiet_until - now)} more"
    if wait.apart_until > now:
        yield f"every: its last message must be {duration_text(wait.apart_until - now)} older"
    if wait.transaction is not None:
        yield wait.transaction.text


def _awaited(held: HeldRoots, root: Root) -> AwaitedTransaction | None:
    with suppress(KeyError):  # in another thread the driver has let the root go, or forgotten the transaction
        if (blocker := held.blocker(root)) is not None:
            known = held.transactions
            return AwaitedTransaction(*blocker.name, known.missing(blocker.name), known.comes_again(blocker.name))
    return None


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
