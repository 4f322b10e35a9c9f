"""Switches for reads that end at their limit in an index with an order (rule 5 of docs/architecture.md)."""

from typing import Any

import processor.engine.rounds.follow_up_stages as follow_up_stages
import processor.engine.rounds.write_stage as write_stage
import tests.simulator.world as world
from processor.engine.plan.plan import EntityPlan
from processor.engine.protocol.assemble import _FirstRows
from tests.simulator.without.switch import always, replacing

first_page_only = replacing((_FirstRows, "_has", always(True)))
"""A read ends after its first page, whatever the overlay and the conditions take away."""


class _End(str):
    """The name of the last row, at whose place no other row is."""

    def startswith(self, *_: Any) -> bool:
        return False


def _with_ties(has: Any) -> Any:
    return lambda self, read, end: has(self, read, _End(end))


ties_count = replacing((_FirstRows, "_has", _with_ties))


def _without_orders(concerns: Any) -> Any:
    def changed(self: EntityPlan, columns: Any) -> Any:
        ordered = {column for terms in self.orders.values() for column, _ in terms}
        return concerns(self, columns if columns is None else columns - ordered)

    return changed


order_opens_nothing = replacing((EntityPlan, "concerns_indexes", _without_orders))
evidence_elsewhere_only = replacing(
    (follow_up_stages, "settle", lambda settle: lambda change, slots, orders: settle(change, slots - orders))
)


class _NoOrders:
    """A plan whose deletes do not look at orders."""

    def __init__(self, plan: EntityPlan) -> None:
        self._plan = plan
        self.orders: dict[int, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)


def _left(write: Any) -> Any:
    def changed(change: Any, plan: Any, **kw: Any) -> Any:
        return write(change, _NoOrders(plan) if change.row is None else plan, **kw)

    return changed


deleted_leaves = replacing((write_stage, "write_state", _left), (world, "MAX_REQUESTS", lambda _: 2_000))
"""A deleted row leaves the index, and settling waits for ever for an answer from the place that it had."""
