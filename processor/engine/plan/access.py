"""The access paths that the joins of definitions require: by key, by edges or by an index.

A side whose fields are its whole primary key takes a key read. Edges name the elements of an array, and both sides of a
strong join. Every other side needs an index, to which the registry assigns a slot.
"""

from collections.abc import Mapping, Sequence

from processor.language.product.join_fields import array_of, converted_of
from processor.language.product.product import Columns, Definitions, Join, align_columns
from processor.values.entity import Entity
from registry.model import KEY, EdgePath, Index, JoinAccess, JoinSpec, RequiredPath

Slots = Mapping[str, Mapping[int, Columns]]
"""entity -> slot -> the columns that it holds, as the registry assigns them."""


def required_path(entity: Entity, fields: Columns, *, strong: bool) -> RequiredPath:
    """The path by which a join finds the rows of `entity`, one of its sides, by these fields.

    A key path needs the whole primary key, in its order, without timestamps: these join by the microsecond, but a primary
    key has every digit."""
    if fields == entity.key and not converted_of(fields, entity):
        return KEY
    if strong or array_of(fields) is not None:
        return EdgePath(entity=entity.name, fields=fields)
    return Index(entity.name, fields)


def required_access(join: Join, child: Entity, parent: Entity) -> JoinAccess[RequiredPath]:
    """A join as the registry stores it, with the paths that it requires."""
    child_columns, parent_columns = align_columns(join, child, parent)
    return JoinAccess(
        join=JoinSpec(
            child=child.name,
            child_columns=child_columns,
            parent=parent.name,
            parent_columns=parent_columns,
            strong=join.strong,
        ),
        down=required_path(child, child_columns, strong=join.strong),
        up=required_path(parent, parent_columns, strong=join.strong),
    )


def index_groups(definitions: Definitions) -> list[list[Index]]:
    """The indexes that the products' joins require, in the order in which the registry assigns slots. The joins of a group
    ask for the same value: with one slot for the whole group, one query answers all of them."""
    groups: list[list[Index]] = []
    for product in definitions.products.values():
        groups += _groups_below(product.root, product.joins, definitions.entities)
    return groups


def _groups_below(above: str, joins: Sequence[Join], entities: Mapping[str, Entity]) -> list[list[Index]]:
    parent = entities[above]
    down: dict[Columns, list[Index]] = {}
    groups: list[list[Index]] = []
    for join in joins:
        access = required_access(join, entities[join.entity], parent)
        if isinstance(access.down, Index):
            asked = align_columns(join, entities[join.entity], parent)[1]
            if asked not in down:
                groups.append(down.setdefault(asked, []))
            if access.down not in down[asked]:
                down[asked].append(access.down)
        if isinstance(access.up, Index):
            groups.append([access.up])
        groups += _groups_below(join.entity, join.joins, entities)
    return groups
