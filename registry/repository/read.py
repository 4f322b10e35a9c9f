"""Reads the whole registry into plain values: six small queries."""

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, func, select

from registry.model import (
    KEY,
    Answer,
    Assignment,
    EdgeRead,
    EntityEntry,
    JoinAccess,
    JoinSpec,
    ProductEntry,
    Snapshot,
    State,
)
from registry.tables import access_paths, assignments, entities, joins, leases, meta, product_joins, products


def read(connection: Connection) -> Snapshot:
    """The registry as this transaction sees it; the caller sees to it that its statements see one moment."""
    settings = connection.execute(select(meta.c.version, meta.c.slots)).one()
    held = tuple(_assignment(row) for row in _rows(connection, select(assignments).order_by("entity", "slot")))
    specs = {row["id"]: _join(row) for row in _rows(connection, select(joins))}
    return Snapshot(
        version=settings.version,
        slots=settings.slots,
        entities=tuple(_entity(row) for row in _rows(connection, select(entities).order_by("name"))),
        products=_products(connection, specs),
        assignments=held,
        joins=_accesses(connection, specs, held),
    )


def has_run(connection: Connection) -> frozenset[str]:
    """The entities that some job has run with: rows of them may be stored. A released lease counts, its rows are still
    there."""
    applied = select(func.max(leases.c.applied_version)).scalar_subquery()
    return frozenset(connection.scalars(select(entities.c.name).where(entities.c.created_version <= applied)))


def join_ids(connection: Connection) -> dict[JoinSpec, int]:
    """The stored joins and the numbers that other tables know them by."""
    return {_join(row): row["id"] for row in _rows(connection, select(joins))}


def _rows(connection: Connection, query: Select[Any]) -> list[RowMapping]:
    return list(connection.execute(query).mappings())


def _entity(row: RowMapping) -> EntityEntry:
    return EntityEntry(
        name=row["name"],
        topic=row["topic"],
        key=tuple(row["key"]),
        shards=row["shards"],
        columns=row["columns"],
        definition=row["definition"],
    )


def _assignment(row: RowMapping) -> Assignment:
    return Assignment(entity=row["entity"], slot=row["slot"], columns=tuple(row["columns"]), state=State(row["state"]))


def _join(row: RowMapping) -> JoinSpec:
    return JoinSpec(
        child=row["child"],
        child_columns=tuple(row["child_columns"]),
        parent=row["parent"],
        parent_columns=tuple(row["parent_columns"]),
        strong=row["strong"],
    )


def _products(connection: Connection, specs: dict[int, JoinSpec]) -> tuple[ProductEntry, ...]:
    used: dict[str, list[JoinSpec]] = defaultdict(list)
    for row in _rows(connection, select(product_joins).order_by("product", "position")):
        used[row["product"]].append(specs[row["join_id"]])
    return tuple(
        ProductEntry(
            name=row["name"],
            topic=row["topic"],
            root=row["root"],
            definition=row["definition"],
            joins=tuple(used[row["name"]]),
            version=row["version"],
        )
        for row in _rows(connection, select(products).order_by("name"))
    )


def _accesses(
    connection: Connection, specs: dict[int, JoinSpec], held: tuple[Assignment, ...]
) -> tuple[JoinAccess, ...]:
    """The joins that have both paths; one that psql left without is no join that a product may use."""
    by_slot = {(one.entity, one.slot): one for one in held}

    def answer(row: RowMapping) -> Answer:
        if row["edges"] is not None:
            return EdgeRead(entity=row["entity"], fields=tuple(row["edges"]))
        return KEY if row["slot"] is None else by_slot[row["entity"], row["slot"]]

    paths = {(row["join_id"], row["direction"]): answer(row) for row in _rows(connection, select(access_paths))}
    found = (
        JoinAccess(join=spec, down=paths[number, "down"], up=paths[number, "up"])
        for number, spec in specs.items()
        if (number, "down") in paths and (number, "up") in paths
    )
    return tuple(sorted(found, key=lambda one: str(one.join)))
