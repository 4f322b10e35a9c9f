"""From definitions to a plan: what the registry is asked for, and what it answers. Knows no database."""

from collections.abc import Mapping

from processor.definitions.describe import describe_entity, describe_product
from processor.definitions.errors import suggest
from processor.definitions.load import load
from processor.errors import PlanError
from processor.model import canonical_json
from processor.model.access import aligned, index_groups, route
from processor.model.entity import Entity
from processor.model.plan import Node, Plan, ProductPlan, compile_plan
from processor.model.product import Definitions, Join, Product
from registry import model as stored
from registry.slots import assign


def registry_plan(definitions: Definitions) -> stored.Plan:
    """What these definitions ask of the registry."""
    paths: dict[stored.JoinSpec, stored.JoinPaths] = {}
    for product in definitions.products.values():
        for above, join in product.walk():
            path = _paths(join, definitions.entities[join.entity], definitions.entities[above])
            paths[path.join] = path
    return stored.Plan(
        entities=tuple(map(_entity, definitions.entities.values())),
        products=tuple(_product(product, definitions) for product in definitions.products.values()),
        paths=tuple(paths.values()),
        groups=[
            [stored.Need(entity=entity, columns=columns) for entity, columns in group]
            for group in index_groups(definitions)
        ],
    )


def plan_of(snapshot: stored.Snapshot) -> Plan:
    """The plan that a job runs at this version of the registry."""
    texts = {"entities.yaml": canonical_json.dumps({e.name: e.definition for e in snapshot.entities})}
    texts |= {f"products/{p.name}.json": canonical_json.dumps(p.definition) for p in snapshot.products}
    slots: dict[str, dict[int, tuple[str, ...]]] = {}
    for a in snapshot.assignments:
        slots.setdefault(a.entity, {})[a.slot] = a.columns
    versions = {p.name: p.version for p in snapshot.products}
    return compile_plan(load(texts), slots, version=snapshot.version, product_versions=versions)


def plan_alone(definitions: Definitions, slots: int) -> Plan:
    """The plan of definitions that no registry has seen: what a first `apply` would make of them."""
    wanted = registry_plan(definitions)
    held: dict[str, dict[int, tuple[str, ...]]] = {}
    for a in assign((), wanted.groups, slots):
        held.setdefault(a.entity, {})[a.slot] = a.columns
    return compile_plan(definitions, held, version=1, product_versions=dict.fromkeys(definitions.products, 1))


def join_of(node: Node) -> stored.JoinSpec:
    """The join of a compiled node, as the registry knows it."""
    return stored.JoinSpec(
        child=node.join.entity,
        child_columns=node.child_columns,
        parent=node.above,
        parent_columns=node.parent_columns,
        strong=node.join.strong,
    )


def product_of(plan: Plan, name: str) -> ProductPlan:
    """The product of that name; raises PlanError, naming those that there are."""
    if name not in plan.products:
        raise PlanError(f"there is no product `{name}`; {suggest(name, plan.products)}")
    return plan.products[name]


def _paths(join: Join, child: Entity, parent: Entity) -> stored.JoinPaths:
    child_columns, parent_columns = aligned(join, child, parent)
    spec = stored.JoinSpec(
        child=child.name,
        child_columns=child_columns,
        parent=parent.name,
        parent_columns=parent_columns,
        strong=join.strong,
    )
    return stored.JoinPaths(join=spec, down=_side(child, child_columns, join), up=_side(parent, parent_columns, join))


def _side(entity: Entity, fields: tuple[str, ...], join: Join) -> stored.Asked:
    match route(fields, entity, join):
        case "key":
            return stored.KEY
        case "edges":
            return stored.EdgeRead(entity=entity.name, fields=fields)
        case "slot":
            return stored.Need(entity=entity.name, columns=fields)


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


def _product(product: Product, definitions: Definitions) -> stored.ProductEntry:
    joins = {
        _paths(join, definitions.entities[join.entity], definitions.entities[above]).join: None
        for above, join in product.walk()
    }
    return stored.ProductEntry(
        name=product.name,
        topic=product.topic,
        root=product.root,
        definition=describe_product(product),
        joins=tuple(joins),
    )
