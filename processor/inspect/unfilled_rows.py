"""The rows that joins of a planned product find, although the slots and edges of stored rows do not hold their keys yet.

One pass over the rows of an entity finds the keys by which its rows join. A step that asks such a slot or such edges then gets
these rows by key. Promises: nothing is written. Does not: find a row that comes after the pass.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

from processor.plan.access import Access, EdgeRead, KeyRead, SlotRead
from processor.plan.declared_columns import declared_columns
from processor.plan.plan import Plan
from processor.plan.product_plan import JoinPlan, ProductPlan
from processor.plan.step import Lookup, Request, Step
from processor.rounds.step_runner import apply_overlay
from registry.model import Snapshot, reads
from statestore.item_attributes import key_of_item
from statestore.items import slot_name
from statestore.keys import Key
from statestore.store import Query, Store

T = TypeVar("T")
EntityAccess = tuple[str, Access]
"""An entity, and a slot (pinned) or edges of its rows."""


@dataclass(slots=True)
class UnfilledRows:
    """The rows by the request that should find them. `entities`: slot -> the entities whose rows lack it."""

    rows: dict[Query | str, list[Key]] = field(default_factory=dict)
    entities: dict[str, set[str]] = field(default_factory=dict)

    def keys_for(self, request: Request) -> list[Key]:
        """The rows that the answer of a request may lack."""
        if not isinstance(request, Lookup):
            return []
        source = request.source
        if isinstance(source, str) or source.entity is not None:
            return self.rows.get(source, [])
        pinned = (source._replace(entity=entity) for entity in sorted(self.entities.get(source.slot, ())))
        return [key for one in pinned for key in self.rows.get(one, ())]


def filled_accesses(stored: Snapshot, live: Plan) -> frozenset[EntityAccess]:
    """The slots that serve, and the edges that live products read."""
    slots = {(one.entity, SlotRead(slot=one.slot)) for one in stored.assignments if reads(one.state)}
    sides = chain.from_iterable(node.sides() for product in live.products.values() for node in product.nodes)
    return frozenset(slots | {(entity, access) for entity, access, _ in sides if isinstance(access, EdgeRead)})


def scan_unfilled(
    plan: Plan, products: Collection[ProductPlan], filled: Collection[EntityAccess], store: Store
) -> UnfilledRows:
    """The rows of the entities whose slots or edges these products need and `filled` lacks. Reads all rows of these entities."""
    found = UnfilledRows()
    wanted: dict[str, dict[SlotRead | EdgeRead, JoinPlan]] = {}
    for node in chain.from_iterable(product.nodes for product in products):
        access, entity = _pinned(node.down), node.join.entity
        if not isinstance(access, KeyRead) and (entity, access) not in filled:
            wanted.setdefault(entity, {})[access] = node
            if isinstance(access, SlotRead):
                found.entities.setdefault(slot_name(access.slot), set()).add(entity)
    for entity, nodes in wanted.items():
        for key, columns in _rows(plan, entity, store):
            for access, node in nodes.items():
                for value in dict.fromkeys(node.child_keys(columns)):
                    if value is not None:
                        found.rows.setdefault(plan.source(entity, access, value), []).append(key)
    return found


def with_unfilled(step: Step[T], unfilled: UnfilledRows) -> Step[T]:
    """The step, with the rows that its answers lack."""
    try:
        asked = next(step)
        while True:
            lacking = [unfilled.keys_for(request) for request in asked]
            keys = list(dict.fromkeys(chain.from_iterable(lacking)))
            answers = yield (*asked, *keys)
            items = dict(zip(keys, answers[len(asked) :], strict=True))
            asked = step.send(tuple(_completed(a, rows, items) for a, rows in zip(answers, lacking, strict=False)))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # the result of the step


def _completed(answer: Any, rows: Collection[Key], items: Mapping[Key, Any]) -> Any:
    return apply_overlay(answer, {key: items[key] for key in rows}) if rows else answer


def _pinned(access: Access) -> Access:
    return replace(access, pinned=True) if isinstance(access, SlotRead) else access


def _rows(plan: Plan, entity: str, store: Store) -> Iterator[tuple[Key, Mapping[str, Any]]]:
    """The stored rows of an entity with their declared columns."""
    planned = plan.entities[entity]
    for partition in planned.partitions():
        for item in store.items(partition):
            columns = declared_columns(item, planned)
            if columns is not None:
                yield key_of_item(item), columns
