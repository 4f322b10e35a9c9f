"""Reads the whole registry into plain values by some small queries, and writes the entries of an edit. `registry.edits` decides
the content of an edit, this module nothing."""

from collections import defaultdict
from dataclasses import asdict, fields
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    RowMapping,
    Select,
    Table,
    Text,
    and_,
    cast,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from registry.edits.edit import Edit
from registry.model import (
    KEY,
    Applied,
    AssignedPath,
    Assignment,
    AssignmentState,
    EdgePath,
    EntityEntry,
    JoinAccess,
    JoinSpec,
    ProductEntry,
    Snapshot,
)
from registry.tables import (
    access_paths,
    assignments,
    entities,
    joins,
    layouts,
    leases,
    ledger_numbers,
    meta,
    product_joins,
    product_versions,
    products,
    slots,
    waiting_joins,
    waiting_products,
    work,
)

_T = TypeVar("_T")


def read(connection: Connection) -> Snapshot:
    """The registry as this transaction sees it. The caller's transaction must see one moment: REPEATABLE READ, or the lock of an
    edit."""
    paused, paused_topics = connection.execute(select(work.c.paused, work.c.paused_topics)).one()
    known = tuple(
        _entry(Assignment, row, state=AssignmentState(row["state"]))
        for row in _rows(connection, select(assignments).order_by("entity", "slot"))
    )
    specs = {row["id"]: _entry(JoinSpec, row) for row in _rows(connection, select(joins))}
    return Snapshot(
        version=connection.execute(select(meta.c.version)).scalar_one(),
        slots=connection.execute(select(func.count()).select_from(slots)).scalar_one(),
        entities=_entities(connection),
        products=_products(connection, products, product_joins, specs),
        assignments=known,
        joins=_accesses(connection, specs, known),
        waiting=_products(connection, waiting_products, waiting_joins, specs),
        versions={row["product"]: row["version"] for row in _rows(connection, select(product_versions))},
        numbers={(row["root"], row["product"]): row["number"] for row in _rows(connection, select(ledger_numbers))},
        paused=paused,
        paused_topics=paused_topics,
    )


def has_run(connection: Connection) -> frozenset[str]:
    """The entities with which some job has run: rows of them may be stored. A released lease counts: its rows are still there."""
    applied = select(func.max(leases.c.applied_version)).scalar_subquery()
    return frozenset(connection.scalars(select(entities.c.name).where(entities.c.created_version <= applied)))


def join_ids(connection: Connection) -> dict[JoinSpec, int]:
    """The stored joins with their ids in other tables."""
    return {_entry(JoinSpec, row): row["id"] for row in _rows(connection, select(joins))}


def _rows(connection: Connection, query: Select[Any]) -> list[RowMapping]:
    return list(connection.execute(query).mappings())


def _entry(kind: type[_T], row: RowMapping, **more: Any) -> _T:
    """The value of this kind whose fields are columns of the row, and those of `more`."""
    names = {one.name for one in fields(kind)} & row.keys() - more.keys()  # type: ignore[arg-type]  # a dataclass
    return kind(**{name: row[name] for name in names}, **more)


def _entities(connection: Connection) -> tuple[EntityEntry, ...]:
    written = {row["entity"]: row["version"] for row in _rows(connection, select(layouts))}
    return tuple(
        _entry(EntityEntry, row, layout=written.get(row["name"], 0))
        for row in _rows(connection, select(entities).order_by("name"))
    )


def _products(
    connection: Connection, table: Table, links: Table, specs: dict[int, JoinSpec]
) -> tuple[ProductEntry, ...]:
    used: dict[str, list[JoinSpec]] = defaultdict(list)
    for row in _rows(connection, select(links).order_by("product", "position")):
        used[row["product"]].append(specs[row["join_id"]])
    return tuple(
        _entry(ProductEntry, row, joins=tuple(used[row["name"]]))
        for row in _rows(connection, select(table).order_by("name"))
    )


def _accesses(
    connection: Connection, specs: dict[int, JoinSpec], known: tuple[Assignment, ...]
) -> tuple[JoinAccess[AssignedPath], ...]:
    """The joins that have both paths. An operator's psql may leave a join without one, but no product can use such a join."""
    by_slot = {(one.entity, one.slot): one for one in known}

    def answer(row: RowMapping) -> AssignedPath:
        if row["edges"] is not None:
            return EdgePath(entity=row["entity"], fields=row["edges"])
        return KEY if row["slot"] is None else by_slot[row["entity"], row["slot"]]

    paths = {(row["join_id"], row["direction"]): answer(row) for row in _rows(connection, select(access_paths))}
    found = (
        JoinAccess(join=spec, down=paths[number, "down"], up=paths[number, "up"])
        for number, spec in specs.items()
        if (number, "down") in paths and (number, "up") in paths
    )
    return tuple(sorted(found, key=lambda one: str(one.join)))


def begin_edit(connection: Connection, who: str, why: str) -> None:
    """Waits for every other edit, psql's included; later edits wait until this transaction ends. Sets the author and the reason
    that the history records. Announces the edit: the database refuses other ones (`registry.migrations.first_rules`)."""
    connection.execute(select(meta.c.version).with_for_update())
    announce(connection)
    connection.execute(
        select(func.set_config("statestore.who", who, True), func.set_config("statestore.why", why, True))
    )


def announce(connection: Connection) -> None:
    """Allows the rest of this transaction to edit the registry."""
    connection.execute(select(func.set_config("statestore.edit", cast(func.pg_current_xact_id(), Text), True)))


def write(connection: Connection, edit: Edit) -> Applied:
    """Writes the entries of an edit, in the order of their references."""
    for entity in edit.entities:
        values = {"topic": entity.topic, "key": list(entity.key), "shards": entity.shards}
        values |= {"columns": dict(entity.columns), "definition": entity.definition}
        _put(connection, entities, {"name": entity.name}, values)
    for assignment in edit.assignments:
        _put_assignment(connection, assignment)
    for assignment in edit.freed:
        connection.execute(delete(assignments).where(_is(assignment)))
    ids = _put_joins(connection, edit.joins)
    for product in edit.products:
        _put_product(connection, products, product_joins, product, ids)
    for product in edit.waiting:
        _put_product(connection, waiting_products, waiting_joins, product, ids)
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
    return Applied(version=connection.execute(select(meta.c.version)).scalar_one(), changes=edit.changes)


def _put(connection: Connection, table: Table, key: dict[str, Any], values: dict[str, Any]) -> None:
    """Inserts a row, or sets these values in the row with the key."""
    row = insert(table).values(**key, **values)
    connection.execute(row.on_conflict_do_update(index_elements=[*key], set_=values))


def _put_assignment(connection: Connection, one: Assignment) -> None:
    changed = update(assignments).where(_is(one)).values(state=one.state.value)
    if connection.execute(changed.returning(assignments.c.slot)).one_or_none() is None:
        values = {"columns": list(one.columns), "state": one.state.value}
        connection.execute(insert(assignments).values(entity=one.entity, slot=one.slot, **values))


def _is(one: Assignment) -> ColumnElement[bool]:
    return and_(assignments.c.entity == one.entity, assignments.c.slot == one.slot)


def _put_joins(connection: Connection, accesses: tuple[JoinAccess[AssignedPath], ...]) -> dict[JoinSpec, int]:
    """Puts joins with their paths, and returns the ids of all joins."""
    for access in accesses:
        values = {name: list(one) if isinstance(one, tuple) else one for name, one in asdict(access.join).items()}
        connection.execute(insert(joins).values(values).on_conflict_do_nothing())
    ids = join_ids(connection)
    for access in accesses:
        for direction, entity, path in (
            ("down", access.join.child, access.down),
            ("up", access.join.parent, access.up),
        ):
            values = {
                "entity": entity,
                "slot": path.slot if isinstance(path, Assignment) else None,
                "edges": list(path.fields) if isinstance(path, EdgePath) else None,
            }
            _put(connection, access_paths, {"join_id": ids[access.join], "direction": direction}, values)
    return ids


def _put_product(
    connection: Connection, table: Table, links: Table, product: ProductEntry, ids: dict[JoinSpec, int]
) -> None:
    """Puts a product, and its joins in their order."""
    names = ("topic", "root", "definition", "version", "paused", "retracted")
    values = {name: getattr(product, name) for name in names if name in table.c}
    _put(connection, table, {"name": product.name}, values)
    used = [ids[join] for join in product.joins]
    connection.execute(delete(links).where(links.c.product == product.name, links.c.join_id.not_in(used)))
    for position, join in enumerate(used):
        _put(connection, links, {"product": product.name, "join_id": join}, {"position": position})
