"""Access paths: how a join reads each of its sides, by key, by edges or by a slot.

A side whose fields are its whole primary key takes a key read. Edges name the elements of an array, and both sides of a
strong join. Every other side needs a slot from the registry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from processor.language.product.join_fields import array_of, converted_of
from processor.language.product.product import Columns, Definitions, Join, align_columns
from processor.values.entity import Entity

Slots = Mapping[str, Mapping[int, Columns]]
"""entity -> slot -> the columns that it holds, as the registry assigns them."""
IndexedColumns = tuple[str, Columns]
"""(entity, columns of a slot)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRead:
    """A read of the other side's row by primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRead:
    """A query of this slot. `pinned`: for rows of one entity only; else for all rows that share the slot. `strangers`: the
    entities because of which the query is not shared with those of its siblings."""

    slot: int
    pinned: bool = True
    strangers: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeRead:
    """A read of the edges of these fields, then of the rows that they name, by key."""

    fields: str


Access = KeyRead | SlotRead | EdgeRead


def is_key(columns: Columns, entity: Entity) -> bool:
    """Whether the key of a join by these columns is the encoded primary key of a row: they are the whole primary key, in its
    order, without timestamps. Timestamps join by the microsecond, but a primary key has every digit."""
    return columns == entity.key and not converted_of(columns, entity)


def route(fields: Columns, entity: Entity, join: Join) -> Literal["key", "edges", "slot"]:
    """How the join finds the rows of `entity`, one of its sides, by these fields."""
    if is_key(fields, entity):
        return "key"
    return "edges" if join.strong or array_of(fields) is not None else "slot"


def index_groups(definitions: Definitions) -> list[list[IndexedColumns]]:
    """The columns that the products' joins need indexed, in the order in which the registry assigns slots. The joins of a group
    ask for the same value: with one slot for the whole group, one query answers all of them."""
    groups: list[list[IndexedColumns]] = []
    for product in definitions.products.values():
        groups += _groups_below(product.root, product.joins, definitions.entities)
    return groups


def _groups_below(above: str, joins: Sequence[Join], entities: Mapping[str, Entity]) -> list[list[IndexedColumns]]:
    parent = entities[above]
    down: dict[Columns, list[IndexedColumns]] = {}
    groups: list[list[IndexedColumns]] = []
    for join in joins:
        child = entities[join.entity]
        child_columns, parent_columns = align_columns(join, child, parent)
        if route(child_columns, child, join) == "slot":
            group = down.setdefault(parent_columns, [])
            if not group:
                groups.append(group)
            if (child.name, child_columns) not in group:
                group.append((child.name, child_columns))
        if route(parent_columns, parent, join) == "slot":
            groups.append([(parent.name, parent_columns)])
        groups += _groups_below(join.entity, join.joins, entities)
    return groups
