"""Reads the whole registry into plain values: some small queries."""

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, Table, func, select

from registry.model import (
    KEY,
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


def read(connection: Connection) -> Snapshot:
    """The registry as this transaction sees it. The caller's transaction must see one moment: REPEATABLE READ, or the lock of an
    edit."""
    paused, paused_topics = connection.execute(select(work.c.paused, work.c.paused_topics)).one()
    known = tuple(_assignment(row) for row in _rows(connection, select(assignments).order_by("entity", "slot")))
    specs = {row["id"]: _join(row) for row in _rows(connection, select(joins))}
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
        paused_topics=tuple(paused_topics),
    )


def has_run(connection: Connection) -> frozenset[str]:
    """The entities with which some job has run: rows of them may be stored. A released lease counts: its rows are still there."""
    applied = select(func.max(leases.c.applied_version)).scalar_subquery()
    return frozenset(connection.scalars(select(entities.c.name).where(entities.c.created_version <= applied)))


def join_ids(connection: Connection) -> dict[JoinSpec, int]:
    """The stored joins with their ids in other tables."""
    return {_join(row): row["id"] for row in _rows(connection, select(joins))}


def _rows(connection: Connection, query: Select[Any]) -> list[RowMapping]:
    return list(connection.execute(query).mappings())


def _entities(connection: Connection) -> tuple[EntityEntry, ...]:
    written = {row["entity"]: row["version"] for row in _rows(connection, select(layouts))}
    return tuple(
        EntityEntry(
            name=row["name"],
            topic=row["topic"],
            key=tuple(row["key"]),
            shards=row["shards"],
            columns=row["columns"],
            definition=row["definition"],
            dropped=row["dropped"],
            layout=written.get(row["name"], 0),
        )
        for row in _rows(connection, select(entities).order_by("name"))
    )


def _assignment(row: RowMapping) -> Assignment:
    return Assignment(
        entity=row["entity"], slot=row["slot"], columns=tuple(row["columns"]), state=AssignmentState(row["state"])
    )


def _join(row: RowMapping) -> JoinSpec:
    return JoinSpec(
        child=row["child"],
        child_columns=tuple(row["child_columns"]),
        parent=row["parent"],
        parent_columns=tuple(row["parent_columns"]),
        strong=row["strong"],
    )


def _products(
    connection: Connection, table: Table, links: Table, specs: dict[int, JoinSpec]
) -> tuple[ProductEntry, ...]:
    used: dict[str, list[JoinSpec]] = defaultdict(list)
    for row in _rows(connection, select(links).order_by("product", "position")):
        used[row["product"]].append(specs[row["join_id"]])
    return tuple(
        ProductEntry(
            name=row["name"],
            topic=row["topic"],
            root=row["root"],
            definition=row["definition"],
            joins=tuple(used[row["name"]]),
            version=row["version"],
            paused=row["paused"],
            retracted=row.get("retracted", False),
        )
        for row in _rows(connection, select(table).order_by("name"))
    )


def _accesses(
    connection: Connection, specs: dict[int, JoinSpec], known: tuple[Assignment, ...]
) -> tuple[JoinAccess, ...]:
    """The joins that have both paths. An operator's psql may leave a join without one, but no product can use such a join."""
    by_slot = {(one.entity, one.slot): one for one in known}

    def answer(row: RowMapping) -> AssignedPath:
        if row["edges"] is not None:
            return EdgePath(entity=row["entity"], fields=tuple(row["edges"]))
        return KEY if row["slot"] is None else by_slot[row["entity"], row["slot"]]

    paths = {(row["join_id"], row["direction"]): answer(row) for row in _rows(connection, select(access_paths))}
    found = (
        JoinAccess(join=spec, down=paths[number, "down"], up=paths[number, "up"])
        for number, spec in specs.items()
        if (number, "down") in paths and (number, "up") in paths
    )
    return tuple(sorted(found, key=lambda one: str(one.join)))
