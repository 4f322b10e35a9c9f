"""The roots that wait at gates, as the table has them: for the verbs, which run in another process than the job.

Promises: changes nothing. A verb sees what the job would take over if it began now. The table has no ends of transactions.
"""

from collections.abc import Iterable

from processor.engine.plan.plan import Plan
from processor.engine.protocol.backlog import PARTITION
from processor.engine.protocol.held_roots import HeldRoots
from processor.engine.protocol.seen_transactions import tables_of, topics_of
from statestore.store import Delete, Item, Store


def adopt_plan(held: HeldRoots, plan: Plan, now: float) -> list[Delete]:
    """Goes on with the gates of a plan; returns the deletes of items that nobody needs any more."""
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
