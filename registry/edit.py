"""The changes of an apply: a pure function of the stored registry and the requirements.

This module writes nothing. Its result names exactly the entries that differ, so that the same requirements twice change nothing.
An edit drops the joins that no product uses any more; their assignments stay, at worst unused, since rows are stored under them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from registry.checks import check_entities, check_requirements, check_topics
from registry.errors import NeedsBackfill
from registry.json_text import same_json
from registry.lifecycle import reads
from registry.model import (
    AssignedPath,
    Assignment,
    AssignmentState,
    EdgePath,
    EntityEntry,
    JoinAccess,
    JoinPaths,
    JoinSpec,
    KeyPath,
    Need,
    ProductEntry,
    RequiredPath,
    Requirements,
    Snapshot,
)
from registry.slots import assign


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """The entries to put and to drop; `changes`: the same as lines for people."""

    entities: tuple[EntityEntry, ...]
    assignments: tuple[Assignment, ...]
    joins: tuple[JoinAccess, ...]
    products: tuple[ProductEntry, ...]
    dropped: tuple[JoinSpec, ...]
    changes: tuple[str, ...]


def edit(stored: Snapshot, required: Requirements, has_run: Collection[str]) -> Edit:
    """Compares requirements with the registry.

    Args:
        stored: the registry as it is.
        required: the requirements; entities and products that they do not name stay as they are.
        has_run: the entities with which some job has run, so that rows of them may be stored.

    Raises:
        Malformed: the requirements name an entity, column or path that is neither required nor stored.
        DefinitionChanged: a key, its types or the shards of a stored entity changed.
        NeedsBackfill: stored rows would need a new index, or new edges.
        NoSlot: an entity has no free slot.
        TopicTaken: two entities or products would have one topic.
    """
    check_requirements(stored, required)
    check_entities(stored, required, has_run)
    products = _products(stored, required)
    used = {
        join
        for product in {**_by_name(stored.products), **_by_name(required.products)}.values()
        for join in product.joins
    }
    paths = _paths(stored, required, used)
    assignments = _assignments(stored, required, paths, has_run)
    _check_edges(stored, paths, has_run)
    joins = _joins(paths, [*stored.assignments, *assignments])
    known = {access.join: access for access in stored.joins}
    changed = Edit(
        entities=tuple(
            one for one in required.entities if not _same_entity(_by_name(stored.entities).get(one.name), one)
        ),
        assignments=assignments,
        joins=tuple(one for one in joins if known.get(one.join) != one),
        products=products,
        dropped=tuple(join for join in known if join not in used),
        changes=(),
    )
    changed = replace(changed, changes=tuple(_change_lines(stored, changed)))
    check_topics(edited(stored, changed), required)
    return changed


def edited(stored: Snapshot, change: Edit) -> Snapshot:
    """The registry after the edit, at the next version; the same registry where nothing changes."""
    if not change.changes:
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


def _products(stored: Snapshot, required: Requirements) -> tuple[ProductEntry, ...]:
    """The products that differ, each with its next version."""
    before = _by_name(stored.products)
    found = []
    for product in required.products:
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


def _paths(stored: Snapshot, required: Requirements, used: Collection[JoinSpec]) -> tuple[JoinPaths, ...]:
    """The paths of all joins in use: the required ones, else the stored ones."""
    before = [
        JoinPaths(join=access.join, down=_required(access.down), up=_required(access.up))
        for access in stored.joins
        if access.join in used
    ]
    paths = {one.join: one for one in [*before, *required.paths]}
    return tuple(path for join, path in paths.items() if join in used)


def _required(path: AssignedPath) -> RequiredPath:
    return Need(entity=path.entity, columns=path.columns) if isinstance(path, Assignment) else path


def _check_edges(stored: Snapshot, paths: Iterable[JoinPaths], has_run: Collection[str]) -> None:
    """An entity has its edges from its first row on, or never."""
    known = stored.edge_paths()
    for one in (side for path in paths for side in (path.down, path.up)):
        if isinstance(one, EdgePath) and one not in known and one.entity in has_run:
            raise NeedsBackfill(
                f"entity {one.entity}: {_where(one)} would be new, but a job has run with {one.entity}: rows stored "
                "before it would be missing from the join, and there is no backfill of edges yet. Use a new table, "
                "registry schema and checkpoint: the job then reads all topics again"
            )


def _assignments(
    stored: Snapshot, required: Requirements, paths: Sequence[JoinPaths], has_run: Collection[str]
) -> tuple[Assignment, ...]:
    """The new assignments. Their entities have no rows yet, so the assignments serve at once."""
    needs = [need for path in paths for need in (path.down, path.up) if isinstance(need, Need)]
    found = assign(stored.assignments, [*required.groups, *([need] for need in needs)], stored.slots)
    new = [one for one in found if one not in stored.assignments]
    for one in new:
        if one.entity in has_run:
            raise NeedsBackfill(
                f"entity {one.entity}: {_holds(one)} would be new, but a job has run with {one.entity}: rows "
                "stored before it would be missing from the join, and there is no backfill of slots yet. Use a "
                "new table, registry schema and checkpoint: the job then reads all topics again"
            )
    return tuple(replace(one, state=AssignmentState.SERVING) for one in new)


def _joins(paths: Iterable[JoinPaths], assignments: Sequence[Assignment]) -> list[JoinAccess]:
    """The paths with their slots; only a serving slot may answer a join."""
    by_index = {(one.entity, one.columns): one for one in assignments}

    def answer(join: JoinSpec, path: RequiredPath) -> AssignedPath:
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


def _change_lines(stored: Snapshot, changed: Edit) -> Iterable[str]:
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


def _where(path: AssignedPath) -> str:
    match path:
        case KeyPath():
            return "key"
        case EdgePath(fields=fields):
            return f"edges by {'#'.join(fields)}"
        case Assignment(slot=slot):
            return f"GSI_{slot}"


def _by_name(entries: Iterable[Any]) -> Mapping[str, Any]:
    return {entry.name: entry for entry in entries}
