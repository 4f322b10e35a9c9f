"""From definitions to a plan: the requirements of definitions on the registry, and the plan of its answer. Knows no database."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from processor.engine.plan.compile_plan import compile_plan, index_groups, required_access
from processor.engine.plan.plan import Plan, ProductPlan, check_dead_letter_topic, check_time_zones
from processor.errors import PlanError
from processor.language.definitions.describe import describe_entity, describe_product
from processor.language.definitions.load import ENTITIES, load_stored
from processor.language.definitions.problems import DefinitionError, Problem, suggest
from processor.language.product.join_fields import zones_in
from processor.language.product.product import Definitions, used_by_entity, walk_entities
from processor.values import canonical_json
from processor.values.entity import Entity
from registry import model as stored
from registry.edits.operations import completed
from registry.model import writes
from registry.slots import apart, assign
from statestore.values import MAX_COLUMNS


def requirements_of(definitions: Definitions) -> stored.Requirements:
    """The requirements of these definitions on the registry."""
    paths: dict[stored.JoinSpec, stored.JoinAccess[stored.RequiredPath]] = {}
    products = list[stored.ProductEntry]()
    for product in definitions.products.values():
        joins = [
            required_access(join, definitions.entities[join.entity], above)
            for above, join in walk_entities(product, definitions.entities)
        ]
        paths |= {access.join: access for access in joins}
        products.append(
            stored.ProductEntry(
                name=product.name,
                topic=product.topic,
                root=product.root,
                definition=describe_product(product),
                joins=tuple(dict.fromkeys(access.join for access in joins)),
            )
        )
    return stored.Requirements(
        entities=tuple(map(_entity, definitions.entities.values())),
        products=tuple(products),
        paths=tuple(paths.values()),
        groups=index_groups(definitions),
    )


def plan_of(snapshot: stored.Snapshot) -> Plan:
    """The plan that a job runs at this version of the registry.

    Raises DefinitionError if the definitions conflict, and PlanError if an entry differs from its definition, or there is none.
    """
    if not snapshot.entities:
        raise PlanError("the registry holds no definitions: run `statestore apply --definitions DIR` first")
    definitions = _definitions(snapshot, _with_releases(snapshot))
    _check_entries(snapshot, definitions)
    plan = compile_plan(
        definitions,
        _readable_slots(snapshot.assignments),
        version=snapshot.version,
        product_versions={p.name: p.version for p in snapshot.products},
        numbers=snapshot.numbers,
        written=_slots(one for one in snapshot.assignments if writes(one.state)),
        layouts={entity.name: entity.layout for entity in snapshot.entities},
        dropped={entity.name: tuple(entity.dropped) for entity in snapshot.entities},
        waiting=[_definitions(snapshot, [one]) for one in snapshot.waiting],
    )
    states = {p.name: (p.paused, p.retracted) for p in snapshot.products}
    products = {
        name: replace(product, paused=states[name][0], retracted=states[name][1])
        for name, product in plan.products.items()
    }
    return replace(plan, products=products)


def plan_after(snapshot: stored.Snapshot, given: Definitions) -> Plan:
    """The plan of the registry as an apply of `given` would leave it.

    Raises DefinitionError if a product of the registry, which `given` does not name, does not fit `given`: the cure says
    which of the given entities the product reads.
    """
    try:
        return plan_of(snapshot)
    except DefinitionError as error:
        reads = {_stored_place(_file_of(p)): p.entities() & given.entities.keys() for p in snapshot.products}
        new = {_stored_place(f"products/{name}.json") for name in given.products}
        raise DefinitionError(
            one if one.file in new else replace(one, cure=_keep_cure(one, reads.get(one.file, frozenset())))
            for one in error.problems
        ) from None


def check_after(given: Definitions, dead_letter_topic: str) -> Callable[[stored.Snapshot, stored.Snapshot], object]:
    """The check of `Registry.apply`: no product loses a column, and jobs can run the whole registry as an apply of `given` would
    leave it, with their dead letters in `dead_letter_topic`: at once, and when the products that wait are live."""

    def check(before: stored.Snapshot, after: stored.Snapshot) -> None:
        check_dropped(before, after)
        check_message_keys(before, after)
        for snapshot in (after, completed(after)):
            plan = plan_after(snapshot, given)
            check_dead_letter_topic(plan, dead_letter_topic)
            check_time_zones(plan)

    return check


def check_message_keys(before: stored.Snapshot, after: stored.Snapshot) -> None:
    """Raises PlanError where a product gets other keys of its messages in the same topic, which keeps those of the former
    keys."""
    live = {one.name: one for one in before.products}
    for one in (*after.products, *after.waiting):
        was = live.get(one.name)
        if was and was.topic == one.topic and was.definition.get("key") != one.definition.get("key"):
            raise PlanError(
                f"product {one.name}: `key` of its messages changes, and topic {one.topic} would keep the documents under the "
                "former keys for ever: give the product another `topic`, too, or another name"
            )


def check_dropped(before: stored.Snapshot, after: stored.Snapshot) -> None:
    """Checks that no product, live or waiting, reads a column that its entity declares no more, and that a write can remove the
    values of all dropped columns. Raises PlanError."""
    old = {one.name: one.columns for one in before.entities}
    gone = {one.name: old.get(one.name, {}).keys() - one.columns.keys() for one in after.entities}
    wide = replace(after, entities=tuple(_widened(one, old.get(one.name, {})) for one in after.entities))
    for product in (*after.products, *after.waiting):
        if any(map(gone.get, product.entities())):
            for entity, used in used_by_entity(_definitions(wide, [product]).products[product.name]):
                for column in sorted(gone[entity] if used is None else gone[entity] & used):
                    raise PlanError(
                        f"entity {entity}: column {column} is declared no more, but product {product.name}, version "
                        f"{product.version}, reads {'whole rows' if used is None else 'it'}: keep the column until the product "
                        "is removed, or until a version of it that does not read the column is live"
                    )
    for one in after.entities:
        if one.dropped and len(one.columns) + len(one.dropped) > MAX_COLUMNS:
            raise PlanError(
                f"entity {one.name}: {len(one.columns)} declared and {len(one.dropped)} dropped columns; one write holds "
                f"{MAX_COLUMNS} at most: keep the columns"
            )


def plan_alone(definitions: Definitions, slots: int) -> Plan:
    """The plan of definitions without a registry: the plan after a first `apply` of them."""
    wanted = requirements_of(definitions)
    assigned = assign((), wanted.groups, slots, apart(wanted.products, wanted.paths, wanted.entities))
    return compile_plan(
        definitions, _slots(assigned), version=1, product_versions=dict.fromkeys(definitions.products, 1)
    )


def product_of(plan: Plan, name: str) -> ProductPlan:
    """The product of that name; raises PlanError, naming those that there are."""
    if name not in plan.products:
        raise PlanError(f"there is no product `{name}`; {suggest(name, plan.products)}")
    return plan.products[name]


def _check_entries(snapshot: stored.Snapshot, definitions: Definitions) -> None:
    """Raises PlanError for an entry of the registry that an edit by hand made different from its definition."""
    expected = requirements_of(definitions)
    entities = {one.name: one for one in expected.entities}
    products = {one.name: one for one in expected.products}
    for entity in snapshot.entities:
        if replace(entities[entity.name], definition=entity.definition) != entity:
            raise _changed_by_hand(f"entity {entity.name}")
    for product in snapshot.products:
        known = products.get(product.name)
        if known is None or (known.topic, known.root, {*known.joins}) != (
            product.topic,
            product.root,
            {*product.joins},
        ):
            raise _changed_by_hand(f"product {product.name}")


def _with_releases(snapshot: stored.Snapshot) -> Iterator[stored.ProductEntry]:
    """The live products. One whose next version waits with other rules of time zones has these meanwhile, so that one job can run
    both; but where it joins by a local time, its slots have the old rules."""
    waiting = {one.name: one.definition["tzdata"] for one in snapshot.waiting if "tzdata" in one.definition}
    for one in snapshot.products:
        if one.name not in waiting or "tzdata" not in one.definition or any(zones_in(one.joins)):
            yield one
        else:
            yield replace(one, definition={**one.definition, "tzdata": waiting[one.name]})


def _widened(entity: stored.EntityEntry, columns: Mapping[str, str]) -> stored.EntityEntry:
    """The entity whose definition declares these columns, too."""
    return replace(entity, definition={**entity.definition, "columns": {**columns, **entity.definition["columns"]}})


def _changed_by_hand(entry: str) -> PlanError:
    return PlanError(
        f"{entry} of the registry differs from its definition, so an edit by hand changed one of them: run "
        "`statestore apply` with the definition"
    )


def _definitions(snapshot: stored.Snapshot, products: Iterable[stored.ProductEntry]) -> Definitions:
    """The definitions of all entities and of these products."""
    texts = {ENTITIES: canonical_json.dumps({e.name: e.definition for e in snapshot.entities})}
    texts |= {_file_of(one): canonical_json.dumps(stored_definition(one.definition)) for one in products}
    try:
        return load_stored(texts)
    except DefinitionError as error:
        raise DefinitionError(replace(one, file=_stored_place(one.file), line=0) for one in error.problems) from None


def stored_definition(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """The file of a product in the registry: its columns compare as when it was stored, whatever its entities say now."""
    return {"compare": {}, **definition}


def _slots(assignments: Iterable[stored.Assignment]) -> dict[str, dict[int, tuple[str, ...]]]:
    slots: dict[str, dict[int, tuple[str, ...]]] = {}
    for one in assignments:
        slots.setdefault(one.entity, {})[one.slot] = one.columns
    return slots


def _readable_slots(assignments: Iterable[stored.Assignment]) -> dict[str, dict[int, tuple[str, ...]]]:
    """The slots that may answer joins: one for the same columns of an entity, the serving one first. The other slots will
    answer the joins of products that wait. A slot with an order answers when it serves: joins have another slot until then."""
    found: dict[stored.Index, stored.Assignment] = {}
    for one in assignments:
        if one.state is stored.AssignmentState.SERVING or (
            one.state is not stored.AssignmentState.RETIRING and one.index not in found and not one.index.ordered
        ):
            found[one.index] = one
    return _slots(found.values())


def _file_of(product: stored.ProductEntry) -> str:
    return f"products/{product.name}.json"


def _stored_place(file: str) -> str:
    """The place of a problem in the registry, for the name of a file that does not exist."""
    if file == ENTITIES:
        return "entities of the registry"
    return f"product {file.removeprefix('products/').removesuffix('.json')} of the registry"


def _keep_cure(problem: Problem, entities: frozenset[str]) -> str:
    if not entities:
        return problem.cure
    names = " and ".join(f"entity {name}" for name in sorted(entities))
    return f"keep in {names} what the product reads, or change the product in the same apply"


def _entity(entity: Entity) -> stored.EntityEntry:
    columns: Mapping[str, str] = {name: str(column) for name, column in entity.columns.items()}
    return stored.EntityEntry(
        name=entity.name,
        topic=entity.topic,
        key=entity.key,
        shards=entity.shards,
        columns=columns,
        definition=describe_entity(entity),
    )
