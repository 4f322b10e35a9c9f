"""How the two sides of a join are found: their fields in the order in which both spell them, and by key, by edges or by a slot.

The fields of a side that are its whole primary key are a key read. The elements of an array, and both sides of a strong join, are
named by edges. Everything else asks the registry for a slot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from processor.model.elements import array_of, type_of, typed
from processor.model.entity import Entity
from processor.model.product import Definitions, Join

Columns = tuple[str, ...]
Slots = Mapping[str, Mapping[int, Columns]]
"""entity -> slot -> the columns that it holds: what the registry answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRead:
    """The rows of the other side are asked by primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRead:
    """The rows of the other side are asked in this slot; `pinned`: of their entity only, else whatever shares the slot."""

    slot: int
    pinned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRead:
    """The rows of the other side are named by edges of these fields, and then read by key."""

    fields: str


Access = KeyRead | SlotRead | EdgeRead


def aligned(join: Join, child: Entity, parent: Entity) -> tuple[Columns, Columns]:
    """The join's child and parent columns, pairwise, in the one order in which both sides spell them: that of the primary key
    that they make, else by the parent's column names."""
    pairs = list(join.on)
    by_parent, by_child = {p: c for c, p in pairs}, dict(pairs)
    if set(by_parent) == set(parent.key) and len(pairs) == len(parent.key):
        pairs = [(by_parent[p], p) for p in parent.key]
    elif set(by_child) == set(child.key) and len(pairs) == len(child.key):
        pairs = [(c, by_child[c]) for c in child.key]
    else:
        pairs.sort(key=lambda pair: (pair[1], pair[0]))
    return (
        tuple(typed(c, child, type_of(p, parent)) for c, p in pairs),
        tuple(typed(p, parent, type_of(c, child)) for c, p in pairs),
    )


def is_key(columns: Columns, entity: Entity) -> bool:
    """Whether these columns, in this order, are the entity's whole primary key."""
    return columns == entity.key


def route(fields: Columns, entity: Entity, join: Join) -> Literal["key", "edges", "slot"]:
    """How the rows of `entity`, a side of the join, are found by these fields."""
    if is_key(fields, entity):
        return "key"
    return "edges" if join.strong or array_of(fields) is not None else "slot"


def index_groups(definitions: Definitions) -> list[list[tuple[str, Columns]]]:
    """The (entity, columns) that the products' joins need indexed, in the order in which slots are given. What stands together
    is asked by the same value: one slot for all of them lets one query answer all."""
    groups: list[list[tuple[str, Columns]]] = []
    for product in definitions.products.values():
        groups += _groups_below(product.root, product.joins, definitions.entities)
    return groups


def _groups_below(above: str, joins: Sequence[Join], entities: Mapping[str, Entity]) -> list[list[tuple[str, Columns]]]:
    parent = entities[above]
    down: dict[Columns, list[tuple[str, Columns]]] = {}
    rest: list[list[tuple[str, Columns]]] = []
    for join in joins:
        child = entities[join.entity]
        child_columns, parent_columns = aligned(join, child, parent)
        if route(child_columns, child, join) == "slot":
            group = down.setdefault(parent_columns, [])
            if not group:
                rest.append(group)
            if (child.name, child_columns) not in group:
                group.append((child.name, child_columns))
        if route(parent_columns, parent, join) == "slot":
            rest.append([(parent.name, parent_columns)])
        rest += _groups_below(join.entity, join.joins, entities)
    return rest
