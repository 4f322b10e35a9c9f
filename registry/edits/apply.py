"""The edit of an apply: a pure function of the stored registry and the requirements, and the checks that refuse one.

This module writes nothing. Its result names exactly the entries that differ, so that the same requirements twice change nothing.
A product over stored rows waits, until the job has filled its slots and edges in them (`operations.advance`). The edit drops
the joins that no product uses any more; their assignments stay, at worst unused, since rows are stored under them. An apply is
refused when it does not hold together, or when it changes keys, types or shards under which rows are stored.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from registry.edits.edit import Edit, edited, find_product, finish, next_version, same_product, served_joins
from registry.errors import (
    ColumnHeld,
    ColumnStored,
    ColumnUsed,
    DefinitionChanged,
    Malformed,
    MovedToShared,
    RootChanged,
    SlotRetires,
    TopicTaken,
)
from registry.fields import columns_of, shown_fields
from registry.model import (
    AssignedPath,
    Assignment,
    AssignmentState,
    EdgePath,
    EntityEntry,
    Index,
    JoinAccess,
    KeyPath,
    ProductEntry,
    RequiredPath,
    Requirements,
    Snapshot,
    reads,
    same_json,
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
    _check_requirements(stored, required)
    _check_entities(stored, required, has_run)
    _check_roots(stored, required, has_run)
    used = _used_products(stored, required, has_run)
    paths = _paths(stored, required, used)
    assignments = _assignments(stored, required, used, paths, has_run)
    joins = tuple(_joins(paths, [*stored.assignments, *assignments]))
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
    _check_topics(stored, edited(stored, change), required)
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


def _paths(
    stored: Snapshot, required: Requirements, products: Iterable[ProductEntry]
) -> tuple[JoinAccess[RequiredPath], ...]:
    """The paths of all joins of these products: the required ones, else the stored ones."""
    used = {join for one in products for join in one.joins}
    before = [access.map(_required) for access in stored.joins]
    paths = {one.join: one for one in [*before, *required.paths]}
    return tuple(path for join, path in paths.items() if join in used)


def _required(path: AssignedPath) -> RequiredPath:
    return path.index if isinstance(path, Assignment) else path


def _assignments(
    stored: Snapshot,
    required: Requirements,
    products: Iterable[ProductEntry],
    paths: Sequence[JoinAccess[RequiredPath]],
    has_run: Collection[str],
) -> tuple[Assignment, ...]:
    """The new assignments. They serve at once where no rows can be stored yet."""
    entities = {one.name: one for one in (*stored.entities, *required.entities)}
    needs = [[path] for access in paths for path in access.paths() if isinstance(path, Index)]
    groups = [*required.groups, *needs]
    found = assign(stored.assignments, groups, stored.slots, apart(products, paths, entities.values()))
    return tuple(
        one if one.entity in has_run else replace(one, state=AssignmentState.SERVING)
        for one in found
        if one not in stored.assignments
    )


def _joins(
    paths: Iterable[JoinAccess[RequiredPath]], assignments: Sequence[Assignment]
) -> Iterator[JoinAccess[AssignedPath]]:
    """The paths with their slots: where several have the columns, the slot that serves."""
    usable = (one for one in assignments if one.state is not AssignmentState.RETIRING)
    by_index = {one.index: one for one in sorted(usable, key=lambda one: reads(one.state))}
    for access in paths:
        for path in access.paths():
            if isinstance(path, Index) and path not in by_index:
                raise SlotRetires(access.join, path)
        yield access.map(lambda path: by_index[path] if isinstance(path, Index) else path)


def _with_dropped(old: EntityEntry | None, new: EntityEntry, has_run: Collection[str]) -> EntityEntry:
    """The entity with the columns that stored rows may hold and that it declares no more."""
    stored = {**old.dropped, **old.columns} if old and old.name in has_run else {}
    return replace(new, dropped={name: kind for name, kind in stored.items() if name not in new.columns})


def _same_entity(old: EntityEntry | None, new: EntityEntry) -> bool:
    return (
        old is not None and replace(new, definition=old.definition) == old and same_json(new.definition, old.definition)
    )


def _check_requirements(stored: Snapshot, required: Requirements) -> None:
    """Checks that every named entity and column is required or stored, and that each path can answer its join.

    Raises:
        Malformed: an entity or a column is missing, or a path does not answer its join.
    """
    entities = {one.name: one for one in (*stored.entities, *required.entities)}
    joins = {path.join for path in required.paths}
    for entity in required.entities:
        _known(f"the key of entity {entity.name}", entities, entity.name, entity.key)
    for product in required.products:
        _known(f"the root of product {product.name}", entities, product.root, ())
        for join in product.joins:
            if join not in joins:
                raise Malformed(f"product {product.name}: there is no access path for its join {join}")
    for path in required.paths:
        _check_path(entities, path)
    for index in (index for group in required.groups for index in group):
        _known("an index", entities, *index)
        if not index.columns:
            raise Malformed(f"an index on {index.entity} needs columns")


def _check_path(entities: Mapping[str, EntityEntry], path: JoinAccess[RequiredPath]) -> None:
    for direction, answer in (("down", path.down), ("up", path.up)):
        entity, columns = path.join.side("down" if direction == "down" else "up")
        _known(f"join {path.join}", entities, entity, columns)
        match answer:
            case KeyPath() if not set(entities[entity].key) <= set(columns):
                raise Malformed(
                    f"join {path.join}: no key read {direction}, the key of {entity} is {entities[entity].key}"
                )
            case EdgePath() if answer.entity != entity or set(answer.fields) != set(columns):
                raise Malformed(
                    f"join {path.join}: edges of {answer.entity}{answer.fields} do not answer it {direction}"
                )
            case Index() if not answer.columns or answer.entity != entity or not set(answer.columns) <= set(columns):
                raise Malformed(f"join {path.join}: {answer.entity}{answer.columns} does not answer it {direction}")
            case _:
                pass


def _known(source: str, entities: Mapping[str, EntityEntry], entity: str, columns: Iterable[str]) -> None:
    if entity not in entities:
        raise Malformed(f"{source}: there is no entity {entity}")
    for column in chain.from_iterable(map(columns_of, columns)):
        if column not in entities[entity].columns:
            raise Malformed(f"{source}: entity {entity} declares no column {column}")


def _check_entities(stored: Snapshot, required: Requirements, has_run: Collection[str]) -> None:
    """Checks that the required entities keep the definitions under which rows are stored.

    Raises:
        DefinitionChanged: a key, the type of a key column or the number of shards changed.
        ColumnUsed: the definition no longer declares a column that a slot or edges hold.
        ColumnHeld: a column that a slot or edges hold has a type with another encoding, and rows may be stored.
        ColumnStored: a column has a type that does not take all values of its old type, and rows may be stored. The old type of a
            dropped column is its last one.
    """
    before = {entity.name: entity for entity in stored.entities}
    for entity in required.entities:
        if old := before.get(entity.name):
            _check_key(old, entity)
            _check_held(stored, old, entity, has_run)
            if entity.name in has_run:
                _check_columns(old, entity)


def _check_roots(stored: Snapshot, required: Requirements, has_run: Collection[str]) -> None:
    """Checks that the required products keep their roots, once documents of them may be published. Raises RootChanged."""
    known = {product.name: product for product in stored.products}
    for product in required.products:
        old = known.get(product.name, product)
        if (old.root, old.by) != (product.root, product.by) and old.root in has_run:
            raise RootChanged(
                product.name, *(f"{one.root} by {', '.join(one.by)}" if one.by else one.root for one in (old, product))
            )


def _check_topics(before: Snapshot, after: Snapshot, required: Requirements) -> None:
    """Checks that no two entities or products of the registry have one topic, but entities that each name their table, and
    products whose keys cannot meet. Such an entity begins with the topic: one with rows does not come to it, since the versions
    of its rows are those of another topic.

    Args:
        before: the registry. after: as the requirements would make it.

    Raises:
        TopicTaken: two have. The error blames an entry of the requirements.
    """
    named = {
        *(f"entity {one.name}" for one in required.entities),
        *(f"product {one.name}" for one in required.products),
    }
    entries = [(f"entity {one.name}", one.topic) for one in after.entities]
    entries += [(f"product {one.name}", one.topic) for one in (*after.products, *after.waiting)]
    sharing = {f"entity {one.name}" for one in after.entities if one.definition.get("table")}
    topics = {one.name: one.topic for one in before.entities}
    moved = {f"entity {one.name}" for one in after.entities if topics.get(one.name, one.topic) != one.topic}
    keys: dict[str, list[Mapping[str, str]]] = {}
    for one in (*after.products, *after.waiting):
        keys.setdefault(f"product {one.name}", []).append(one.definition.get("key", {}))
    owners: dict[str, list[str]] = {}
    for entry, topic in sorted(entries, key=lambda one: one[0] in named):
        for owner in owners.setdefault(topic, []):
            if owner == entry or _keys_cannot_meet(keys.get(owner, []), keys.get(entry, [])):
                continue
            if (came := {owner, entry} & moved) and {owner, entry} <= sharing:
                raise MovedToShared(min(came), topic)
            if not {owner, entry} <= sharing:
                stored = owner not in named
                renamed = stored and owner.split()[0] == entry.split()[0]
                raise TopicTaken(entry, topic, owner, stored=stored, renamed=renamed)
        owners[topic].append(entry)


_CONSTANT = re.compile(r"'|-?[0-9]")


def _keys_cannot_meet(some: Sequence[Mapping[str, str]], others: Sequence[Mapping[str, str]]) -> bool:
    """Whether all these keys of messages have another constant than all those others, each pair under one name. False where one
    side has none."""
    pairs = [(one, other) for one in some for other in others]
    return bool(pairs) and all(
        any(
            name in other and text != other[name] and _CONSTANT.match(text) and _CONSTANT.match(other[name])
            for name, text in one.items()
        )
        for one, other in pairs
    )


def _check_key(old: EntityEntry, new: EntityEntry) -> None:
    if old.key != new.key:
        raise DefinitionChanged(new.name, "the key", ", ".join(old.key), ", ".join(new.key))
    if old.shards != new.shards:
        raise DefinitionChanged(new.name, "the number of shards", old.shards, new.shards)
    for column in new.key:
        if old.columns[column] != new.columns[column]:
            raise DefinitionChanged(
                new.name, f"the type of the key column {column}", old.columns[column], new.columns[column]
            )


def _check_held(stored: Snapshot, old: EntityEntry, new: EntityEntry, has_run: Collection[str]) -> None:
    places = [(f"GSI_{one.slot}", one.columns) for one in stored.assignments_of(new.name)]
    places += [
        (f"an edge by {shown_fields(one.fields)}", one.fields) for one in stored.edge_paths() if one.entity == new.name
    ]
    for where, fields in places:
        for column in chain.from_iterable(map(columns_of, fields)):
            was, now = old.columns[column], new.columns.get(column)
            if now is None:
                raise ColumnUsed(new.name, column, was, where)
            if was != now and new.name in has_run and not _holds_alike(was, now):
                raise ColumnHeld(new.name, column, was, now, where)


def _check_columns(old: EntityEntry, new: EntityEntry) -> None:
    for column, was in {**old.dropped, **old.columns}.items():
        now = new.columns.get(column, was)
        if was != now and not _takes_all(was, now):
            raise ColumnStored(new.name, column, was, now)


def _takes_all(was: str, now: str) -> bool:
    """Whether each stored value of the type `was` is a value of the type `now`, with the same meaning. The arguments of decimals,
    timestamps and json say how decode reads a value, and not which values there are. Slots and edges encode a value alike in both
    types, except in json: `keys.encode` gives one text for an int and the equal decimal."""
    before, after = (re.fullmatch(r"(\w+)(?:\(.*\))?(\[\])?", text) for text in (was, now))
    if before is None or after is None:
        return False
    if after[1] == "json" and not after[2]:
        return before[1] in ("int", "string", "bool", "json")
    return before[2] == after[2] and (before[1] == after[1] or (before[1], after[1]) == ("int", "decimal"))


def _holds_alike(was: str, now: str) -> bool:
    """Whether slots and edges hold the values of both types in one form."""
    return _takes_all(was, now) and all(was.count(sign) == now.count(sign) for sign in ("json", "[]"))
