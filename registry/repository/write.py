"""Writes an edit. `registry.edits.apply` decides its content, this module nothing."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Table, Text, and_, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from registry.edits.edit import Edit
from registry.model import AssignedPath, Assignment, EdgePath, EntityEntry, JoinAccess, JoinSpec, ProductEntry
from registry.repository.read import join_ids
from registry.tables import (
    access_paths,
    assignments,
    entities,
    joins,
    meta,
    product_joins,
    products,
    slots,
    waiting_joins,
    waiting_products,
    work,
)


def sign(connection: Connection, who: str, why: str) -> None:
    """Sets, for this transaction, the author and the reason that the history records. Announces the edit: the database refuses
    the edits of other transactions (`registry.migrations.first_rules`)."""
    announce(connection)
    connection.execute(
        select(func.set_config("statestore.who", who, True), func.set_config("statestore.why", why, True))
    )


def announce(connection: Connection) -> None:
    """Allows the rest of this transaction to edit the registry."""
    connection.execute(select(func.set_config("statestore.edit", cast(func.pg_current_xact_id(), Text), True)))


def lock(connection: Connection) -> None:
    """Waits for every other edit, psql's included. Later edits wait until this transaction ends."""
    connection.execute(select(meta.c.version).with_for_update())


def write(connection: Connection, edit: Edit) -> int:
    """Writes the entries of an edit, in the order of their references, and returns the registry's version."""
    for entity in edit.entities:
        _put_entity(connection, entity)
    for assignment in edit.assignments:
        _put_assignment(connection, assignment)
    for assignment in edit.freed:
        connection.execute(delete(assignments).where(_is(assignment)))
    ids = _put_joins(connection, edit.joins)
    for product in edit.products:
        _put_product(connection, product, ids)
    for product in edit.waiting:
        _put_waiting(connection, product, ids)
    connection.execute(delete(waiting_products).where(waiting_products.c.name.in_(edit.withdrawn)))
    connection.execute(delete(products).where(products.c.name.in_(edit.removed)))
    for join in edit.dropped:
        connection.execute(delete(joins).where(joins.c.id == ids[join]))
    for slot in edit.slots:
        connection.execute(insert(slots).values(slot=slot))
    if edit.paused is not None:
        connection.execute(update(work).values(paused=edit.paused))
    if edit.paused_topics is not None:
        connection.execute(update(work).values(paused_topics=list(edit.paused_topics)))
    version: int = connection.execute(select(meta.c.version)).scalar_one()
    return version


def _put_entity(connection: Connection, entity: EntityEntry) -> None:
    values = {
        "topic": entity.topic,
        "key": list(entity.key),
        "shards": entity.shards,
        "columns": dict(entity.columns),
        "definition": entity.definition,
    }
    put = insert(entities).values(name=entity.name, **values)
    connection.execute(put.on_conflict_do_update(index_elements=["name"], set_=values))


def _put_assignment(connection: Connection, one: Assignment) -> None:
    changed = update(assignments).where(_is(one)).values(state=one.state.value)
    if connection.execute(changed.returning(assignments.c.slot)).one_or_none() is None:
        values = {"columns": list(one.columns), "state": one.state.value}
        connection.execute(insert(assignments).values(entity=one.entity, slot=one.slot, **values))


def _is(one: Assignment) -> ColumnElement[bool]:
    return and_(assignments.c.entity == one.entity, assignments.c.slot == one.slot)


def _put_joins(connection: Connection, accesses: tuple[JoinAccess, ...]) -> dict[JoinSpec, int]:
    """Puts joins with their paths, and returns the ids of all joins."""
    for access in accesses:
        spec = access.join
        connection.execute(
            insert(joins)
            .values(
                child=spec.child,
                child_columns=list(spec.child_columns),
                parent=spec.parent,
                parent_columns=list(spec.parent_columns),
                strong=spec.strong,
            )
            .on_conflict_do_nothing()
        )
    ids = join_ids(connection)
    for access in accesses:
        _put_path(connection, ids[access.join], "down", access.join.child, access.down)
        _put_path(connection, ids[access.join], "up", access.join.parent, access.up)
    return ids


def _put_path(connection: Connection, join: int, direction: str, entity: str, path: AssignedPath) -> None:
    values = {
        "entity": entity,
        "slot": path.slot if isinstance(path, Assignment) else None,
        "edges": list(path.fields) if isinstance(path, EdgePath) else None,
    }
    put = insert(access_paths).values(join_id=join, direction=direction, **values)
    connection.execute(put.on_conflict_do_update(index_elements=["join_id", "direction"], set_=values))


def _put_product(connection: Connection, product: ProductEntry, ids: dict[JoinSpec, int]) -> None:
    _put_row(connection, products, product, {"retracted": product.retracted})
    _put_used(connection, product_joins, product, ids)


def _put_waiting(connection: Connection, product: ProductEntry, ids: dict[JoinSpec, int]) -> None:
    _put_row(connection, waiting_products, product, {})
    _put_used(connection, waiting_joins, product, ids)


def _put_row(connection: Connection, table: Table, product: ProductEntry, more: dict[str, Any]) -> None:
    values = {
        "topic": product.topic,
        "root": product.root,
        "definition": product.definition,
        "version": product.version,
        "paused": product.paused,
        **more,
    }
    put = insert(table).values(name=product.name, **values)
    connection.execute(put.on_conflict_do_update(index_elements=["name"], set_=values))


def _put_used(connection: Connection, table: Table, product: ProductEntry, ids: dict[JoinSpec, int]) -> None:
    """Puts the joins of a product, in their order."""
    used = [ids[join] for join in product.joins]
    connection.execute(delete(table).where(table.c.product == product.name, table.c.join_id.not_in(used)))
    for position, join in enumerate(used):
        row = insert(table).values(product=product.name, join_id=join, position=position)
        connection.execute(
            row.on_conflict_do_update(index_elements=["product", "join_id"], set_={"position": position})
        )
