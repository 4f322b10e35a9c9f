"""The edit of an apply: a pure function of the stored registry and the requirements.

This module writes nothing. Its result names exactly the entries that differ, so that the same requirements twice change nothing.
A product over stored rows waits, until the job has filled its slots and edges in them (`registry.edits.advance`). The edit drops
the joins that no product uses any more; their assignments stay, at worst unused, since rows are stored under them.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from registry.edits.checks import check_entities, check_requirements, check_roots, check_topics
from registry.edits.edit import Edit, edited, find_product, finish, next_version, same_product, served_joins
from registry.errors import SlotRetires
from registry.json_text import same_json
from registry.lifecycle import reads
from registry.model import (
    AssignedPath,
    Assignment,
    AssignmentState,
    EntityEntry,
    JoinAccess,
    JoinPaths,
    JoinSpec,
    Need,
    ProductEntry,
    RequiredPath,
    Requirements,
    Snapshot,
)
from registry.slots import apart, assign


def apply(stored: Snapshot, required: Requirements, has_run: Collection[str]) -> Edit:
    """Compares requirements with the registry.

    Args:
        stored: the registry as it is.
        required: the requirements; entities and products that they do not name stay as they are.
        has_run: the entities with which some job has run, so that rows of them may be stored.

    Raises:
        Malformed: the requirements name an entity, column or path that is neither required nor stored.
        DefinitionChanged: a key, its types or the shards of a stored entity changed.
        ColumnHeld, ColumnStored, ColumnUsed: a column changed that stored rows have, or that slots hold.
        RootChanged: a product over stored rows has another root.
        NoSlot: an entity has no free slot.
        SlotRetires: the only slot with the columns of a join retires.
        TopicTaken: two entities or products would have one topic.
    """
    check_requirements(stored, required)
    check_entities(stored, required, has_run)
    check_roots(stored, required, has_run)
    used = _used_products(stored, required, has_run)
    paths = _paths(stored, required, used)
    assignments = _assignments(stored, required, used, paths, has_run)
    joins = _joins(paths, [*stored.assignments, *assignments])
    changed, withdrawn = _products(stored, required)
    served = served_joins(joins)
    versions = {one.name: one.version for one in stored.products}
    live = tuple(
        one
        for one in changed
        if one.version == versions.get(one.name) or (not one.entities() & {*has_run} and served.issuperset(one.joins))
    )
    known = {one.name: one for one in stored.entities}
    change = Edit(
        entities=tuple(
            _with_dropped(known.get(one.name), one, has_run)
            for one in required.entities
            if not _same_entity(known.get(one.name), one)
        ),
        assignments=assignments,
        joins=joins,
        products=live,
        waiting=tuple(one for one in changed if one not in live),
        withdrawn=tuple(
            dict.fromkeys((*withdrawn, *(one.name for one in live if find_product(stored.waiting, one.name))))
        ),
    )
    change = finish(stored, change)
    check_topics(edited(stored, change), required)
    return change


def _products(stored: Snapshot, required: Requirements) -> tuple[tuple[ProductEntry, ...], tuple[str, ...]]:
    """The products that differ, each with its next version, and the names of those that need not wait any more. A product
    that differs in its gate alone keeps its version: its documents stay the same, so nothing goes out again."""
    changed, withdrawn = list[ProductEntry](), list[str]()
    for product in required.products:
        live, waits = find_product(stored.products, product.name), find_product(stored.waiting, product.name)
        new = replace(
            product,
            joins=tuple(dict.fromkeys(product.joins)),
            version=next_version(stored, product.name),
            paused=any(one.paused for one in (live, waits) if one),
            retracted=False,
        )
        if live and not live.retracted and same_product(live, new):
            withdrawn += [waits.name] if waits else []
            changed += _with_gate(live, new)
        elif waits and same_product(waits, new):
            changed += _with_gate(waits, new)
        else:
            changed.append(new)
    return tuple(changed), tuple(withdrawn)


def _with_gate(known: ProductEntry, new: ProductEntry) -> list[ProductEntry]:
    """The known product with the gate of the new definition; nothing where they are the same."""
    return [] if same_json(known.definition, new.definition) else [replace(known, definition=new.definition)]


def _used_products(stored: Snapshot, required: Requirements, has_run: Collection[str]) -> list[ProductEntry]:
    """The products whose joins the registry answers. A product over stored rows stays live while its change waits."""
    named = {one.name for one in required.products}
    kept = [one for one in stored.products if one.name not in named or one.entities() & {*has_run}]
    kept += [one for one in stored.waiting if one.name not in named]
    return [*kept, *required.products]


def _paths(stored: Snapshot, required: Requirements, products: Iterable[ProductEntry]) -> tuple[JoinPaths, ...]:
    """The paths of all joins of these products: the required ones, else the stored ones."""
    used = {join for one in products for join in one.joins}
    before = [
        JoinPaths(join=access.join, down=_required(access.down), up=_required(access.up)) for access in stored.joins
    ]
    paths = {one.join: one for one in [*before, *required.paths]}
    return tuple(path for join, path in paths.items() if join in used)


def _required(path: AssignedPath) -> RequiredPath:
    return Need(entity=path.entity, columns=path.columns) if isinstance(path, Assignment) else path


def _assignments(
    stored: Snapshot,
    required: Requirements,
    products: Iterable[ProductEntry],
    paths: Sequence[JoinPaths],
    has_run: Collection[str],
) -> tuple[Assignment, ...]:
    """The new assignments. They serve at once where no rows can be stored yet."""
    entities = {one.name: one for one in (*stored.entities, *required.entities)}
    needs = [need for path in paths for need in (path.down, path.up) if isinstance(need, Need)]
    groups = [*required.groups, *([need] for need in needs)]
    found = assign(stored.assignments, groups, stored.slots, apart(products, paths, entities.values()))
    return tuple(
        one if one.entity in has_run else replace(one, state=AssignmentState.SERVING)
        for one in found
        if one not in stored.assignments
    )


def _joins(paths: Iterable[JoinPaths], assignments: Sequence[Assignment]) -> tuple[JoinAccess, ...]:
    """The paths with their slots: where several have the columns, the slot that serves."""
    usable = (one for one in assignments if one.state is not AssignmentState.RETIRING)
    by_index = {(one.entity, one.columns): one for one in sorted(usable, key=lambda one: reads(one.state))}

    def answer(join: JoinSpec, path: RequiredPath) -> AssignedPath:
        if not isinstance(path, Need):
            return path
        if found := by_index.get((path.entity, path.columns)):
            return found
        raise SlotRetires(join, path)

    return tuple(
        JoinAccess(join=one.join, down=answer(one.join, one.down), up=answer(one.join, one.up)) for one in paths
    )


def _with_dropped(old: EntityEntry | None, new: EntityEntry, has_run: Collection[str]) -> EntityEntry:
    """The entity with the columns that stored rows may hold and that it declares no more."""
    stored = {**old.dropped, **old.columns} if old and old.name in has_run else {}
    return replace(new, dropped={name: kind for name, kind in stored.items() if name not in new.columns})


def _same_entity(old: EntityEntry | None, new: EntityEntry) -> bool:
    return (
        old is not None and replace(new, definition=old.definition) == old and same_json(new.definition, old.definition)
    )
