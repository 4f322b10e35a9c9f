"""What an apply may not do: plans that do not hold together, and changes of what rows are stored under. Pure."""

from collections.abc import Collection, Iterable, Mapping

from registry.errors import DefinitionChanged, Malformed, NeedsBackfill
from registry.model import EdgeRead, EntityEntry, JoinPaths, KeyRead, Need, Plan, Snapshot, column_of


def check_plan(stored: Snapshot, plan: Plan) -> None:
    """Checks that what the plan names is in it or stored, and that each path can answer its join.

    Raises:
        Malformed: it does not.
    """
    entities = {one.name: one for one in (*stored.entities, *plan.entities)}
    joins = {path.join for path in plan.paths}
    for entity in plan.entities:
        _known(f"the key of entity {entity.name}", entities, entity.name, entity.key)
    for product in plan.products:
        _known(f"the root of product {product.name}", entities, product.root, ())
        for join in product.joins:
            if join not in joins:
                raise Malformed(f"product {product.name}: the plan has no access path for its join {join}")
    for path in plan.paths:
        _check_path(entities, path)
    for need in (need for group in plan.groups for need in group):
        _known("an index", entities, need.entity, need.columns)


def _check_path(entities: Mapping[str, EntityEntry], path: JoinPaths) -> None:
    for direction, answer in (("down", path.down), ("up", path.up)):
        entity, columns = path.join.side("down" if direction == "down" else "up")
        _known(f"join {path.join}", entities, entity, columns)
        match answer:
            case KeyRead() if not set(entities[entity].key) <= set(columns):
                raise Malformed(
                    f"join {path.join}: no key read {direction}, the key of {entity} is {entities[entity].key}"
                )
            case EdgeRead() if answer.entity != entity or set(answer.fields) != set(columns):
                raise Malformed(
                    f"join {path.join}: edges of {answer.entity}{answer.fields} do not answer it {direction}"
                )
            case Need() if answer.entity != entity or not set(answer.columns) <= set(columns):
                raise Malformed(f"join {path.join}: {answer.entity}{answer.columns} does not answer it {direction}")
            case _:
                pass


def _known(what: str, entities: Mapping[str, EntityEntry], entity: str, columns: Iterable[str]) -> None:
    if entity not in entities:
        raise Malformed(f"{what}: there is no entity {entity}")
    for column in map(column_of, columns):
        if column not in entities[entity].columns:
            raise Malformed(f"{what}: entity {entity} declares no column {column}")


def check_entities(stored: Snapshot, plan: Plan, has_run: Collection[str]) -> None:
    """Checks that the entities of the plan leave alone what rows are stored under.

    Raises:
        DefinitionChanged: a key, the type of a key column or the number of shards changed, or a column that a slot
            or edges hold is no longer declared.
        NeedsBackfill: the type of a column that a slot or edges hold changed, and rows may be stored.
    """
    before = {entity.name: entity for entity in stored.entities}
    for entity in plan.entities:
        if old := before.get(entity.name):
            _check_key(old, entity)
            _check_held(stored, old, entity, has_run)


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
    held = [(f"GSI_{one.slot}", one.columns) for one in stored.of(new.name)]
    held += [(f"an edge by {'#'.join(one.fields)}", one.fields) for one in stored.edges() if one.entity == new.name]
    for where, fields in held:
        for column in map(column_of, fields):
            was, now = old.columns[column], new.columns.get(column)
            if now is None:
                raise DefinitionChanged(new.name, f"column {column}, which {where} holds,", was, "not declared")
            if was != now and new.name in has_run:
                raise NeedsBackfill(
                    f"entity {new.name}: the type of {column} was {was} and is now {now}, but a job has run with "
                    f"{new.name}: {where} of its stored rows is spelt by the old type, and cannot be backfilled "
                    f"yet. Keep {was}, or use a new table and registry schema"
                )
