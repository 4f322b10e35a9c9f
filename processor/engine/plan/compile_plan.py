"""Compiles definitions and slot assignments into the plan that a job runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from types import MappingProxyType

from processor.engine.plan.plan import EntityPlan, JoinPlan, OrderedRead, Plan, ProductPlan, union
from processor.errors import PlanError
from processor.language.product.counted import Measure, measures_of
from processor.language.product.join_fields import array_of, converted_of
from processor.language.product.ordered import order_fields
from processor.language.product.product import (
    Columns,
    Definitions,
    GroupEntity,
    Join,
    Product,
    align_columns,
    root_entity,
    used_columns,
    walk_entities,
)
from processor.values.entity import Entity
from registry.edits.edit import with_numbers
from registry.fields import columns_of, split_order
from registry.model import KEY, EdgePath, Index, JoinAccess, JoinSpec, PlannedPath, RequiredPath, SlotPath
from registry.slots import SharedQuery, equal_groups, value_types
from statestore import keys

Slots = Mapping[str, Mapping[int, Columns]]
"""entity -> slot -> the columns that it holds, as the registry assigns them."""


def required_path(entity: Entity, fields: Columns, *, strong: bool) -> RequiredPath:
    """The access path of a join to the rows of `entity`, one of its sides, by these fields.

    A key path needs the whole primary key, in its order, without timestamps: these join by the microsecond, but a primary
    key has every digit."""
    if fields == entity.key and not converted_of(fields, entity):
        return KEY
    if strong or array_of(fields) is not None:
        return EdgePath(entity=entity.name, fields=fields)
    return Index(entity.name, fields)


def required_access(join: Join, child: Entity, parent: Entity) -> JoinAccess[RequiredPath]:
    """A join as the registry stores it, with the paths that it requires. The parents below a group are its rows: the registry
    knows tables only."""
    child_columns, parent_columns = align_columns(join, child, parent)
    above = _stored_side(parent, parent_columns)
    return JoinAccess(
        join=JoinSpec(
            child=child.name,
            child_columns=child_columns,
            parent=above.entity,
            parent_columns=above.columns,
            strong=join.strong,
        ),
        down=required_path(child, child_columns, strong=join.strong),
        up=_path_to_rows(above, strong=join.strong)
        if isinstance(parent, GroupEntity)
        else required_path(parent, parent_columns, strong=join.strong),
    )


def _stored_side(entity: Entity, fields: Columns) -> Index:
    """The table that has the values of these fields, and its fields of them."""
    if isinstance(entity, GroupEntity):
        return Index(entity.rows, tuple(map(entity.field_of_rows, fields)))
    return Index(entity.name, fields)


def _path_to_rows(rows: Index, *, strong: bool) -> RequiredPath:
    return EdgePath(entity=rows.entity, fields=rows.columns) if strong else rows


def index_groups(definitions: Definitions) -> list[list[Index]]:
    """The indexes that the products' joins require, or use where they can, in the order in which the registry assigns slots. The
    joins of a group ask for the same value: with one slot for the whole group, one query answers all of them."""
    groups: list[list[Index]] = []
    for product in definitions.products.values():
        root = root_entity(product, definitions.entities)
        groups += _groups_below(root, product.joins, definitions.entities)
    return groups


def _groups_below(parent: Entity, joins: Sequence[Join], entities: Mapping[str, Entity]) -> list[list[Index]]:
    down: dict[Columns, list[Index]] = {}
    groups: list[list[Index]] = []
    for join in joins:
        access = required_access(join, entities[join.entity], parent)
        if isinstance(access.down, Index):
            asked = align_columns(join, entities[join.entity], parent)[1]
            if asked not in down:
                groups.append(down.setdefault(asked, []))
            if access.down not in down[asked]:
                down[asked].append(access.down)
        if isinstance(access.up, Index):
            groups.append([access.up])
        if (ordered := ordered_index(join, access, entities[join.entity])) is not None:
            groups.append([ordered])
        groups += _groups_below(entities[join.entity], join.joins, entities)
    return groups


def ordered_index(join: Join, access: JoinAccess[RequiredPath], child: Entity) -> Index | None:
    """The index that has the rows of an ordered join in their order; None for another join, and for one that reads a key."""
    if not (join.ordered and isinstance(access.down, Index)):
        return None
    return Index(child.name, (*access.down.columns, *order_fields(join, child)))


def compile_plan(
    definitions: Definitions,
    slots: Slots,
    *,
    version: int,
    product_versions: Mapping[str, int],
    numbers: Mapping[tuple[str, str], int] = MappingProxyType({}),
    written: Slots | None = None,
    layouts: Mapping[str, int] = MappingProxyType({}),
    dropped: Mapping[str, Columns] = MappingProxyType({}),
    waiting: Iterable[Definitions] = (),
) -> Plan:
    """The plan of these definitions over these slot assignments.

    Args:
        slots: the assignments that answer joins.
        version: the registry's.
        numbers: (root entity, product) -> the number of its ledger entries; products without one come last, in their order.
        written: the assignments that a job fills; None for those of `slots`.
        layouts: the layout of each entity; `version` for an entity that it does not name.
        dropped: the columns that each entity declares no more.
        waiting: definitions of products that go live later. A job already writes what they read.

    Raises:
        PlanError: a join has no slot.
    """
    written = slots if written is None else written

    all_numbers = with_numbers(numbers, ((product.root, product.name) for product in definitions.products.values()))

    def compiled(some: Definitions) -> list[ProductPlan]:
        return [
            replace(
                _compile(product, some.entities, slots, written),
                version=product_versions.get(product.name, 1),
                number=all_numbers.get((product.root, product.name), 0),
            )
            for product in some.products.values()
        ]

    products = {plan.product.name: plan for plan in compiled(definitions)}
    used: dict[str, set[frozenset[str] | None]] = {}
    edges: dict[str, dict[str, Columns]] = {}
    indexed: dict[str, set[frozenset[str] | None]] = {}
    measures: dict[str, dict[Columns, dict[Measure, None]]] = {}
    for plan in [*products.values(), *chain.from_iterable(map(compiled, waiting))]:
        used.setdefault(plan.product.root, set()).add(plan.used)
        for node in plan.nodes:
            used.setdefault(node.join.entity, set()).add(node.used)
            if node.measures:
                of_key = measures.setdefault(node.join.entity, {}).setdefault(node.child_columns, {})
                of_key |= dict.fromkeys(node.measures)
            for entity, access, fields in node.sides():
                if isinstance(access, EdgePath):
                    edges.setdefault(entity, {})[keys.field_names(fields)] = fields
        for entity, columns in plan.read_through_indexes():
            indexed.setdefault(entity, set()).add(columns)
    compiled_entities = {
        e.name: EntityPlan(
            entity=e,
            declared=tuple(e.columns),
            slots={slot: split_order(fields)[0] for slot, fields in written.get(e.name, {}).items()},
            orders={
                slot: terms for slot, fields in written.get(e.name, {}).items() if (terms := split_order(fields)[1])
            },
            used=_stored(union(used.get(e.name, set())), e),
            edges=edges.get(e.name, {}),
            layout=layouts.get(e.name, version),
            converted=_converted(e, written.get(e.name, {}), edges.get(e.name, {})),
            dropped=dropped.get(e.name, ()),
            indexed=_stored(union({frozenset(e.key), *indexed.get(e.name, ())}), e)
            if written.get(e.name)
            else frozenset(),
            measures={fields: tuple(some) for fields, some in measures.get(e.name, {}).items()},
        )
        for e in definitions.entities.values()
    }
    entities = {name: replace(entity, unread=_unread(entity)) for name, entity in compiled_entities.items()}
    return Plan(version=version, entities=entities, products=products)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiler:
    """Compiles one product: walks the tree once, parents first."""

    entities: Mapping[str, Entity]
    slots: Slots
    written: Slots
    kinds: Mapping[Index, Index]
    inside: frozenset[str]
    reads: Mapping[Columns, frozenset[str] | None]
    measures: Mapping[Columns, tuple[Measure, ...]]
    nodes: list[JoinPlan]

    def level(self, above: Entity, parent: int | None, path: Columns, joins: Sequence[Join]) -> tuple[int, ...]:
        """Adds the joins of the level at `path`, and all joins below them. `above`: the entity of the rows of the level."""
        mine = []
        for join in joins:
            index, at = len(self.nodes), (*path, join.name)
            mine.append(index)
            self.nodes.append(self._node(join, parent, above, self.reads[at], self.measures.get(at, ())))
            below = self.level(self.entities[join.entity], index, at, join.joins)
            self.nodes[index] = replace(self.nodes[index], below=below)
        self._share(mine, above)
        return tuple(mine)

    def _node(
        self, join: Join, parent: int | None, over: Entity, used: frozenset[str] | None, measures: tuple[Measure, ...]
    ) -> JoinPlan:
        child = self.entities[join.entity]
        child_columns, parent_columns = align_columns(join, child, over)
        required, above = required_access(join, child, over), _stored_side(over, parent_columns)
        access = required.map(self._planned)
        return JoinPlan(
            join=join,
            spec=access.join,
            parent=parent,
            above=above.entity,
            child_columns=child_columns,
            parent_columns=parent_columns,
            down=access.down,
            up=KEY if isinstance(over, GroupEntity) and parent_columns == over.key else access.up,
            own_slot=_own_slot(access.down),
            used=used,
            below=(),
            child_converted=converted_of(child_columns, child),
            parent_converted=converted_of(parent_columns, over),
            above_columns=above.columns if isinstance(over, GroupEntity) else (),
            above_converted=converted_of(above.columns, self.entities[above.entity]),
            ordered=self._ordered_read(join, ordered_index(join, required, child)),
            measures=measures if isinstance(access.down, SlotPath) else (),
        )

    def _ordered_read(self, join: Join, index: Index | None) -> OrderedRead | None:
        """The way to read the first rows of a join alone; None without a slot that has their order and serves."""
        held = {fields: slot for slot, fields in self.slots.get(join.entity, {}).items()}
        if index is None or index.columns not in held:
            return None
        return OrderedRead(held[index.columns], join.limit if join.limit is not None and join.many else 1, join.where)

    def _planned(self, path: RequiredPath) -> PlannedPath:
        """The path with the slot that holds the index. Raises PlanError if there is none."""
        if not isinstance(path, Index):
            return path
        for slot, held in self.slots.get(path.entity, {}).items():
            if held == path.columns:
                return SlotPath(slot=slot)
        raise PlanError(
            f"no slot of {path.entity} serves {', '.join(path.columns)}; run `statestore apply` with these definitions first"
        )

    def _share(self, level: Sequence[int], above: Entity) -> None:
        """Unpins the queries of siblings that ask one slot for one value, so that one query serves them all. Their
        queries stay pinned where the slot holds other columns too, whose rows a shared query would read for nothing."""
        groups: dict[tuple[int, Columns], list[int]] = {}
        for index in level:
            node = self.nodes[index]
            if isinstance(node.down, SlotPath):
                groups.setdefault((node.down.slot, node.parent_columns), []).append(index)
        for (slot, _), members in groups.items():
            node = self.nodes[members[0]]
            if len({self.nodes[i].join.entity for i in members}) > 1:
                strangers = self._strangers(slot, node, above)
                for i in members:
                    down = SlotPath(slot=slot, pinned=bool(strangers), strangers=strangers)
                    self.nodes[i] = replace(self.nodes[i], down=down)

    def _strangers(self, slot: int, node: JoinPlan, above: Entity) -> Columns:
        """The entities whose rows a query of the slot without a pin would read for nothing."""
        kind = self.kinds[Index(node.join.entity, node.child_columns)]
        query = SharedQuery(
            kin=frozenset(index for index, one in self.kinds.items() if one == kind),
            entities=self.inside,
            types=self._types(*_stored_side(above, node.parent_columns)),
        )
        filled = {entity: held[slot] for entity, held in self.written.items() if slot in held}
        return tuple(sorted(e for e, held in filled.items() if query.strange(Index(e, held), self._types(e, held))))

    def _types(self, entity: str, columns: Columns) -> tuple[str, ...]:
        return value_types(columns, {name: str(one) for name, one in self.entities[entity].columns.items()})


def _compile(
    product: Product,
    entities: Mapping[str, Entity],
    slots: Slots,
    written: Slots,
) -> ProductPlan:
    inside = frozenset({product.root, *(join.entity for _, join in product.walk())})
    used = used_columns(product)
    kinds = _kinds(product, entities)
    compiler = _Compiler(
        entities=entities,
        slots=slots,
        written=written,
        kinds=kinds,
        inside=inside,
        reads=used,
        measures=measures_of(product),
        nodes=[],
    )
    root = root_entity(product, entities)
    top = compiler.level(root, None, (), product.joins)
    return ProductPlan(
        product=product,
        version=1,
        number=0,
        nodes=tuple(compiler.nodes),
        top=top,
        used=used[()],
        group=root if isinstance(root, GroupEntity) else None,
    )


def _converted(entity: Entity, slots: Mapping[int, Columns], edges: Mapping[str, Columns]) -> Columns:
    indexed = [field for fields in (*slots.values(), *edges.values()) for field in split_order(fields)[0]]
    return converted_of([field for field in indexed if entity.columns.keys() >= {*columns_of(field)}], entity)


def _own_slot(path: PlannedPath) -> int | str | None:
    match path:
        case SlotPath(slot=slot):
            return slot
        case EdgePath(fields=fields):
            return keys.field_names(fields)
    return None


def _kinds(product: Product, entities: Mapping[str, Entity]) -> Mapping[Index, Index]:
    """The kind of value of a product's indexed columns: columns that its joins set equal, directly or through others, are of
    one kind."""

    def sides(above: Entity, join: Join) -> tuple[Index, Index]:
        child_columns, parent_columns = align_columns(join, entities[join.entity], above)
        return Index(join.entity, child_columns), _stored_side(above, parent_columns)

    return equal_groups(sides(above, join) for above, join in walk_entities(product, entities))


def _unread(entity: EntityPlan) -> Columns:
    """The declared columns that no product reads, no key has, and no slot or edge holds."""
    if entity.used is None or entity.indexed is None:
        return ()
    read = {*entity.used, *entity.indexed, *entity.entity.key, *entity.joined()}
    return tuple(name for name in entity.declared if name not in read)


def _stored(columns: frozenset[str] | None, entity: Entity) -> frozenset[str] | None:
    """Of an entity that stores no undeclared columns, whole rows are all declared columns."""
    return frozenset(entity.columns) if columns is None and not entity.keeps_undeclared else columns
