"""What a job runs: the products compiled against the registry's slot assignments, each join with its access paths.

A join is answered by a key read where its columns are the other side's whole primary key, else by one query of the slot that
the registry assigned. Both sides of a join are spelt alike (`aligned`), so a key found in one row's slot can be asked as it is
in the other side's slot or sort key.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from processor.errors import PlanError
from processor.model.entity import Entity
from processor.model.product import Definitions, Join, Product
from processor.model.reads import reads
from statestore import keys
from statestore.items import slot_name
from statestore.keys import Key
from statestore.store import Query

Columns = tuple[str, ...]
Slots = Mapping[str, Mapping[int, Columns]]
"""entity -> slot -> the columns that it holds: what the registry answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPlan:
    """An entity as the job keeps it. `used`: the columns that some product reads, None for all of them."""

    entity: Entity
    declared: Columns
    slots: Mapping[int, Columns]
    used: frozenset[str] | None

    @property
    def name(self) -> str:
        return self.entity.name

    def key(self, sk: str) -> Key:
        return keys.row_key(self.entity.name, self.entity.shards, sk)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRead:
    """The rows of the other side are asked by primary key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRead:
    """The rows of the other side are asked in this slot; `pinned`: of their entity only, else whatever shares the slot."""

    slot: int
    pinned: bool = True


Access = KeyRead | SlotRead


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A join of a product, compiled. `parent` is the index of the node above it, None for the root. `own_slot`: the slot of the
    child that holds the join's key, None when the join's columns are the child's primary key."""

    join: Join
    parent: int | None
    above: str
    child_columns: Columns
    parent_columns: Columns
    down: Access
    up: Access
    own_slot: int | None
    used: frozenset[str] | None
    below: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan:
    """A product, compiled: nodes parents first; `top`: the nodes right below the root; `used`: the root's columns it reads."""

    product: Product
    version: int
    nodes: tuple[Node, ...]
    top: tuple[int, ...]
    used: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a worker needs to know, as plain data. `version` is the registry's."""

    version: int
    entities: Mapping[str, EntityPlan]
    products: Mapping[str, ProductPlan]
    places: Mapping[str, tuple[tuple[str, int | None], ...]] = field(default_factory=dict)
    """entity -> where it stands in products: (product, node), None for the root."""

    def query(self, entity: str, access: SlotRead, key: str) -> Query:
        """The index query for the rows of `entity` that hold `key`."""
        if not access.pinned:
            return Query(slot=slot_name(access.slot), value=key)
        if self.entities[entity].entity.shards == 1:
            return Query(slot=slot_name(access.slot), value=key, pk=keys.partition(entity, 1, ""))
        return Query(slot=slot_name(access.slot), value=key, pk_prefix=f"TABLE#{entity}#")


def aligned(join: Join, child: Entity, parent: Entity) -> tuple[Columns, Columns]:
    """The join's child and parent columns, pairwise, in the one order in which both sides spell them: that of the primary key
    that they make, else by the parent's column names."""
    pairs = list(join.on)
    by_parent, by_child = {p: c for c, p in pairs}, dict(pairs)
    if set(by_parent) == set(parent.key) and len(pairs) == len(parent.key):
        pairs = [(by_parent[p], p) for p in parent.key]
    elif set(by_child) == set(child.key) and len(pairs) == len(child.key):
        pairs = [(c, by_child[c]) for c in child.key]
    else:
        pairs.sort(key=lambda pair: (pair[1], pair[0]))
    return tuple(c for c, _ in pairs), tuple(p for _, p in pairs)


def is_key(columns: Columns, entity: Entity) -> bool:
    """Whether these columns, in this order, are the entity's whole primary key."""
    return columns == entity.key


def index_groups(definitions: Definitions) -> list[list[tuple[str, Columns]]]:
    """The (entity, columns) that the products' joins need indexed, in the order in which slots are given. What stands together
    is asked by the same value: one slot for all of them lets one query answer all."""
    groups: list[list[tuple[str, Columns]]] = []
    for product in definitions.products.values():
        groups += _groups_below(product.root, product.joins, definitions.entities)
    return groups


def _groups_below(above: str, joins: Sequence[Join], entities: Mapping[str, Entity]) -> list[list[tuple[str, Columns]]]:
    parent = entities[above]
    down: dict[Columns, list[tuple[str, Columns]]] = {}
    rest: list[list[tuple[str, Columns]]] = []
    for join in joins:
        child = entities[join.entity]
        child_columns, parent_columns = aligned(join, child, parent)
        if not is_key(child_columns, child):
            group = down.setdefault(parent_columns, [])
            if not group:
                rest.append(group)
            if (child.name, child_columns) not in group:
                group.append((child.name, child_columns))
        if not is_key(parent_columns, parent):
            rest.append([(parent.name, parent_columns)])
        rest += _groups_below(join.entity, join.joins, entities)
    return rest


def compile_plan(definitions: Definitions, slots: Slots, *, version: int, product_versions: Mapping[str, int]) -> Plan:
    """The plan for these definitions over these slot assignments; raises PlanError where a join has no slot."""
    kinds = _kinds(definitions)
    products = {
        product.name: _compile(product, definitions.entities, slots, kinds, product_versions.get(product.name, 1))
        for product in definitions.products.values()
    }
    places: dict[str, list[tuple[str, int | None]]] = {}
    used: dict[str, set[frozenset[str] | None]] = {}
    for name, plan in products.items():
        places.setdefault(plan.product.root, []).append((name, None))
        used.setdefault(plan.product.root, set()).add(plan.used)
        for i, node in enumerate(plan.nodes):
            places.setdefault(node.join.entity, []).append((name, i))
            used.setdefault(node.join.entity, set()).add(node.used)
    entities = {
        e.name: EntityPlan(
            entity=e, declared=tuple(e.columns), slots=dict(slots.get(e.name, {})), used=_union(used.get(e.name, set()))
        )
        for e in definitions.entities.values()
    }
    return Plan(version=version, entities=entities, products=products, places={e: tuple(p) for e, p in places.items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compiler:
    """Compiles one product: walks the tree once, parents first."""

    entities: Mapping[str, Entity]
    slots: Slots
    kinds: Mapping[tuple[str, Columns], int]
    inside: frozenset[str]
    reads: Mapping[Columns, frozenset[str] | None]
    nodes: list[Node]

    def level(self, above: str, parent: int | None, place: Columns, joins: Sequence[Join]) -> tuple[int, ...]:
        """Adds the joins of the level at `place` and all below them."""
        mine = []
        for join in joins:
            index, at = len(self.nodes), (*place, join.name)
            mine.append(index)
            self.nodes.append(self._node(join, parent, above, self.reads[at]))
            below = self.level(join.entity, index, at, join.joins)
            self.nodes[index] = replace(self.nodes[index], below=below)
        self._share(mine)
        return tuple(mine)

    def _node(self, join: Join, parent: int | None, above: str, used: frozenset[str] | None) -> Node:
        child, over = self.entities[join.entity], self.entities[above]
        child_columns, parent_columns = aligned(join, child, over)
        own = None if is_key(child_columns, child) else _slot_of(child, child_columns, self.slots)
        up: Access = (
            KeyRead() if is_key(parent_columns, over) else SlotRead(slot=_slot_of(over, parent_columns, self.slots))
        )
        return Node(
            join=join,
            parent=parent,
            above=above,
            child_columns=child_columns,
            parent_columns=parent_columns,
            down=KeyRead() if own is None else SlotRead(slot=own),
            up=up,
            own_slot=own,
            used=used,
            below=(),
        )

    def _share(self, level: Sequence[int]) -> None:
        """Unpins the queries of siblings that ask one slot for one value, where no entity foreign to the document fills that
        slot with the same kind of value (its rows would be read for nothing)."""
        groups: dict[tuple[int, Columns], list[int]] = {}
        for index in level:
            node = self.nodes[index]
            if isinstance(node.down, SlotRead):
                groups.setdefault((node.down.slot, node.parent_columns), []).append(index)
        for (slot, _), members in groups.items():
            node = self.nodes[members[0]]
            kind = self.kinds[node.join.entity, node.child_columns]
            fillers = {e for e, held in self.slots.items() if slot in held and self.kinds.get((e, held[slot])) == kind}
            if len({self.nodes[i].join.entity for i in members}) > 1 and fillers <= self.inside:
                for i in members:
                    self.nodes[i] = replace(self.nodes[i], down=SlotRead(slot=slot, pinned=False))


def _compile(
    product: Product,
    entities: Mapping[str, Entity],
    slots: Slots,
    kinds: Mapping[tuple[str, Columns], int],
    version: int,
) -> ProductPlan:
    inside = frozenset({product.root, *(join.entity for _, join in product.walk())})
    used = reads(product)
    compiler = _Compiler(entities=entities, slots=slots, kinds=kinds, inside=inside, reads=used, nodes=[])
    top = compiler.level(product.root, None, (), product.joins)
    return ProductPlan(product=product, version=version, nodes=tuple(compiler.nodes), top=top, used=used[()])


def _slot_of(entity: Entity, columns: Columns, slots: Slots) -> int:
    for slot, held in slots.get(entity.name, {}).items():
        if held == columns:
            return slot
    raise PlanError(
        f"no slot of {entity.name} serves {', '.join(columns)}; run `statestore apply` with these definitions first"
    )


def _kinds(definitions: Definitions) -> dict[tuple[str, Columns], int]:
    """Which indexed columns hold the same kind of value: those that joins set equal, directly or through others."""
    group: dict[tuple[str, Columns], int] = {}
    for product in definitions.products.values():
        for above, join in product.walk():
            child_columns, parent_columns = aligned(
                join, definitions.entities[join.entity], definitions.entities[above]
            )
            a, b = (join.entity, child_columns), (above, parent_columns)
            kind = group.setdefault(a, len(group))
            other = group.setdefault(b, kind)
            for member, its in list(group.items()):
                if its == other:
                    group[member] = kind
    return group


def _union(parts: set[frozenset[str] | None]) -> frozenset[str] | None:
    named = [part for part in parts if part is not None]
    return None if len(named) < len(parts) else frozenset().union(*named)
