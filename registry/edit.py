"""What an apply changes: a pure function of what is stored and what is asked for.

Nothing is written here. The result names exactly the entries that differ, so that the same plan twice is an edit of
nothing. Joins that no product uses any more are dropped; their assignments stay, at worst unused, since rows are
stored under them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from registry.checks import check_entities, check_plan
from registry.errors import NeedsBackfill
from registry.lifecycle import reads
from registry.model import (
    Answer,
    Asked,
    Assignment,
    EdgeRead,
    EntityEntry,
    JoinAccess,
    JoinPaths,
    JoinSpec,
    KeyRead,
    Need,
    Plan,
    ProductEntry,
    Snapshot,
    State,
)
from registry.slots import assign
from registry.spelling import same_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The entries to put and to drop, and the same in words."""

    entities: tuple[EntityEntry, ...]
    assignments: tuple[Assignment, ...]
    joins: tuple[JoinAccess, ...]
    products: tuple[ProductEntry, ...]
    dropped: tuple[JoinSpec, ...]
    says: tuple[str, ...]


def edit(stored: Snapshot, plan: Plan, has_run: Collection[str]) -> Edit:
    """Compares a plan with the registry.

    Args:
        stored: the registry as it is.
        plan: what is asked for; entities and products that it does not name stay as they are.
        has_run: the entities that some job has run with, so that rows of them may be stored.

    Raises:
        Malformed: the plan names what is neither in it nor stored.
        DefinitionChanged: a key, its types or the shards of a stored entity changed.
        NeedsBackfill: an index, or edges, would have to be filled for rows that are stored.
        NoSlot: an entity has no slot left.
    """
    check_plan(stored, plan)
    check_entities(stored, plan, has_run)
    products = _products(stored, plan)
    used = {
        join for product in {**_by_name(stored.products), **_by_name(plan.products)}.values() for join in product.joins
    }
    paths = _paths(stored, plan, used)
    assignments = _assignments(stored, plan, paths, has_run)
    _check_edges(stored, paths, has_run)
    joins = _joins(paths, [*stored.assignments, *assignments])
    known = {access.join: access for access in stored.joins}
    changed = Edit(
        entities=tuple(one for one in plan.entities if not _same_entity(_by_name(stored.entities).get(one.name), one)),
        assignments=assignments,
        joins=tuple(one for one in joins if known.get(one.join) != one),
        products=products,
        dropped=tuple(join for join in known if join not in used),
        says=(),
    )
    return replace(changed, says=tuple(_says(stored, changed)))


def edited(stored: Snapshot, change: Edit) -> Snapshot:
    """The registry as the edit leaves it, at the next version; as it is where nothing changes."""
    if not change.says:
        return stored
    slots = {(one.entity, one.slot): one for one in (*stored.assignments, *change.assignments)}
    joins = {one.join: one for one in (*stored.joins, *change.joins) if one.join not in change.dropped}
    return replace(
        stored,
        version=stored.version + 1,
        entities=_sorted({**_by_name(stored.entities), **_by_name(change.entities)}),
        products=_sorted({**_by_name(stored.products), **_by_name(change.products)}),
        assignments=_sorted(slots),
        joins=tuple(sorted(joins.values(), key=lambda one: str(one.join))),
    )


def _sorted(entries: Mapping[Any, Any]) -> tuple[Any, ...]:
    return tuple(entries[key] for key in sorted(entries))


def _products(stored: Snapshot, plan: Plan) -> tuple[ProductEntry, ...]:
    """The products that differ, each with its next version."""
    before = _by_name(stored.products)
    found = []
    for product in plan.products:
        old = before.get(product.name)
        version = old.version if old else 0
        new = replace(product, joins=tuple(dict.fromkeys(product.joins)), version=version)
        if (
            old is None
            or replace(new, definition=old.definition) != old
            or not same_json(new.definition, old.definition)
        ):
            found.append(replace(new, version=version + 1))
    return tuple(found)


def _paths(stored: Snapshot, plan: Plan, used: Collection[JoinSpec]) -> tuple[JoinPaths, ...]:
    """The paths of all joins in use: the plan's, else as they are stored."""
    kept = [
        JoinPaths(join=access.join, down=_asks(access.down), up=_asks(access.up))
        for access in stored.joins
        if access.join in used
    ]
    paths = {one.join: one for one in [*kept, *plan.paths]}
    return tuple(path for join, path in paths.items() if join in used)


def _asks(path: Answer) -> Asked:
    return Need(entity=path.entity, columns=path.columns) if isinstance(path, Assignment) else path


def _check_edges(stored: Snapshot, paths: Iterable[JoinPaths], has_run: Collection[str]) -> None:
    """Edges are kept from an entity's first row on, or not at all."""
    kept = stored.edges()
    for one in (side for path in paths for side in (path.down, path.up)):
        if isinstance(one, EdgeRead) and one not in kept and one.entity in has_run:
            raise NeedsBackfill(
                f"entity {one.entity}: {_where(one)} would be new, but a job has run with {one.entity}: rows stored "
                "before it would be missing from the join, and edges cannot be backfilled yet. Use a new table and "
                "registry schema"
            )


def _assignments(
    stored: Snapshot, plan: Plan, paths: Sequence[JoinPaths], has_run: Collection[str]
) -> tuple[Assignment, ...]:
    """The new assignments. Nothing is stored for their entities yet, so that they serve at once."""
    asked = [need for path in paths for need in (path.down, path.up) if isinstance(need, Need)]
    found = assign(stored.assignments, [*plan.groups, *([need] for need in asked)], stored.slots)
    new = [one for one in found if one not in stored.assignments]
    for one in new:
        if one.entity in has_run:
            raise NeedsBackfill(
                f"entity {one.entity}: {_holds(one)} would be new, but a job has run with {one.entity}: rows "
                "stored before it would be missing from the join, and slots cannot be backfilled yet. Use a "
                "new table and registry schema"
            )
    return tuple(replace(one, state=State.SERVING) for one in new)


def _joins(paths: Iterable[JoinPaths], assignments: Sequence[Assignment]) -> list[JoinAccess]:
    """The paths with their slots; only a slot that is read may answer a join."""
    by_index = {(one.entity, one.columns): one for one in assignments}

    def answer(join: JoinSpec, path: Asked) -> Answer:
        if not isinstance(path, Need):
            return path
        found = by_index[path.entity, path.columns]
        if not reads(found.state):
            raise NeedsBackfill(
                f"join {join}: {_holds(found)} of {found.entity} is {found.state}, not serving: wait for it"
            )
        return found

    return [JoinAccess(join=one.join, down=answer(one.join, one.down), up=answer(one.join, one.up)) for one in paths]


def _same_entity(old: EntityEntry | None, new: EntityEntry) -> bool:
    return (
        old is not None and replace(new, definition=old.definition) == old and same_json(new.definition, old.definition)
    )


def _says(stored: Snapshot, changed: Edit) -> Iterable[str]:
    entities, joins = _by_name(stored.entities), {access.join for access in stored.joins}
    for entity in changed.entities:
        yield f"entity {entity.name}: {'changed' if entity.name in entities else 'added'}"
    for one in changed.assignments:
        yield f"entity {one.entity}: {_holds(one)}"
    for access in changed.joins:
        how = f"down by {_where(access.down)}, up by {_where(access.up)}"
        yield f"join {access.join}: {'now ' if access.join in joins else 'added, '}{how}"
    for product in changed.products:
        yield f"product {product.name}: {'added' if product.version == 1 else 'changed'}, version {product.version}"
    for join in changed.dropped:
        yield f"join {join}: dropped, no product uses it"


def _holds(one: Assignment) -> str:
    return f"GSI_{one.slot} holds {'#'.join(one.columns)}"


def _where(path: Answer) -> str:
    match path:
        case KeyRead():
            return "key"
        case EdgeRead(fields=fields):
            return f"edges by {'#'.join(fields)}"
        case Assignment(slot=slot):
            return f"GSI_{slot}"


def _by_name(entries: Iterable[Any]) -> Mapping[str, Any]:
    return {entry.name: entry for entry in entries}
