"""Refuses applies that do not hold together, and changes of keys, types and shards under which rows are stored. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping

from registry.column_of import column_of
from registry.errors import ColumnHeld, ColumnStored, ColumnUsed, DefinitionChanged, Malformed, RootChanged, TopicTaken
from registry.model import EdgePath, EntityEntry, JoinPaths, KeyPath, Need, Requirements, Snapshot


def check_requirements(stored: Snapshot, required: Requirements) -> None:
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
    for need in (need for group in required.groups for need in group):
        _known("an index", entities, need.entity, need.columns)


def _check_path(entities: Mapping[str, EntityEntry], path: JoinPaths) -> None:
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
            case Need() if answer.entity != entity or not set(answer.columns) <= set(columns):
                raise Malformed(f"join {path.join}: {answer.entity}{answer.columns} does not answer it {direction}")
            case _:
                pass


def _known(source: str, entities: Mapping[str, EntityEntry], entity: str, columns: Iterable[str]) -> None:
    if entity not in entities:
        raise Malformed(f"{source}: there is no entity {entity}")
    for column in map(column_of, columns):
        if column not in entities[entity].columns:
            raise Malformed(f"{source}: entity {entity} declares no column {column}")


def check_entities(stored: Snapshot, required: Requirements, has_run: Collection[str]) -> None:
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


def check_roots(stored: Snapshot, required: Requirements, has_run: Collection[str]) -> None:
    """Checks that the required products keep their roots, once documents of them may be published. Raises RootChanged."""
    roots = {product.name: product.root for product in stored.products}
    for product in required.products:
        old = roots.get(product.name, product.root)
        if old != product.root and old in has_run:
            raise RootChanged(product.name, old, product.root)


def check_topics(after: Snapshot, required: Requirements) -> None:
    """Checks that no two entities or products of the registry have one topic.

    Args:
        after: the registry as the requirements would make it.

    Raises:
        TopicTaken: two have. The error blames an entry of the requirements.
    """
    named = {
        *(f"entity {one.name}" for one in required.entities),
        *(f"product {one.name}" for one in required.products),
    }
    entries = [(f"entity {one.name}", one.topic) for one in after.entities]
    entries += [(f"product {one.name}", one.topic) for one in (*after.products, *after.waiting)]
    owners: dict[str, str] = {}
    for entry, topic in sorted(entries, key=lambda one: one[0] in named):
        owner = owners.setdefault(topic, entry)
        if owner != entry:
            stored = owner not in named
            renamed = stored and owner.split()[0] == entry.split()[0]
            raise TopicTaken(entry, topic, owner, stored=stored, renamed=renamed)


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
        (f"an edge by {'#'.join(one.fields)}", one.fields) for one in stored.edge_paths() if one.entity == new.name
    ]
    for where, fields in places:
        for column in map(column_of, fields):
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
