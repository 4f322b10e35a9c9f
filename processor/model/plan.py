"""What a job runs: the products compiled against the registry's slot assignments, each join with its access paths.

A join is answered by a key read, by edges, or by one query of the slot that the registry assigned (`processor.model.access`).
Both sides are spelt alike, so a key found in one row's slot can be asked as it is in the other side's slot, sort key or edges.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from processor.errors import PlanError
from processor.model.access import Access, Columns, EdgeRead, KeyRead, SlotRead, Slots, aligned, route
from processor.model.change import Value
from processor.model.elements import column_of, join_keys
from processor.model.entity import Entity
from processor.model.product import Definitions, Join, Product
from processor.model.reads import reads
from processor.model.step import Edges, Request
from statestore import keys
from statestore.items import Edge, slot_name
from statestore.keys import Key
from statestore.store import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPlan:
    """An entity as the job keeps it. `used`: the columns that some product reads, None for all of them. `edges`: the fields that
    edges name its rows by, as `keys.field_names` spells them. `indexed`: whether an index serves a document that it is in."""

    entity: Entity
    declared: Columns
    slots: Mapping[int, Columns]
    used: frozenset[str] | None
    edges: Mapping[str, Columns]
    indexed: bool

    @property
    def name(self) -> str:
        return self.entity.name

    def key(self, sk: str) -> Key:
        return keys.row_key(self.entity.name, self.entity.shards, sk)

    def joined(self) -> frozenset[str]:
        """The columns that slots and edges hold."""
        held = [*self.slots.values(), *self.edges.values()]
        return frozenset(column_of(field) for fields in held for field in fields)

    def named(self, columns: Mapping[str, Value] | None) -> frozenset[Edge] | None:
        """The edges of a row with these columns (None: a deleted row); None when the entity has no edges."""
        if not self.edges:
            return None
        found = {name: join_keys(fields, columns) for name, fields in self.edges.items() if columns is not None}
        return frozenset((name, key) for name, held in found.items() for key in held if key is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A join of a product, compiled. `parent` is the index of the node above it, None for the root. `own_slot`: the slot (or the
    fields of edges) of the child that holds the join's key, None when the join's columns are the child's primary key. Of
    `child_columns` and `parent_columns` one may hold elements of an array (`processor.model.elements`)."""

    join: Join
    parent: int | None
    above: str
    child_columns: Columns
    parent_columns: Columns
    down: Access
    up: Access
    own_slot: int | str | None
    used: frozenset[str] | None
    below: tuple[int, ...]

    def sides(self) -> Iterator[tuple[str, Access, Columns]]:
        """Both sides: whose rows are asked, how, and by which of their fields."""
        yield self.join.entity, self.down, self.child_columns
        yield self.above, self.up, self.parent_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan:
    """A product, compiled: nodes parents first; `top`: the nodes right below the root; `used`: the root's columns it reads."""

    product: Product
    version: int
    nodes: tuple[Node, ...]
    top: tuple[int, ...]
    used: frozenset[str] | None

    def paths(self) -> list[str]:
        """The names of the nodes from the root on: `stars.repo`."""
        found: list[str] = []
        for node in self.nodes:
            found.append(node.join.name if node.parent is None else f"{found[node.parent]}.{node.join.name}")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything a worker needs to know, as plain data. `version` is the registry's."""

    version: int
    entities: Mapping[str, EntityPlan]
    products: Mapping[str, ProductPlan]
    places: Mapping[str, tuple[tuple[str, int | None], ...]] = field(default_factory=dict)
    """entity -> where it stands in products: (product, node), None for the root."""

    def ask(self, entity: str, access: Access, key: str) -> Request:
        """The request for the rows of `entity` that hold `key`."""
        if isinstance(access, SlotRead):
            return self.query(entity, access, key)
        if isinstance(access, KeyRead):
            return self.entities[entity].key(key)
        return self.edges(entity, access, key)

    def edges(self, entity: str, access: EdgeRead, key: str) -> Edges:
        """The request for the rows of `entity` that edges name by `key`."""
        return Edges(keys.edge_partition(entity, access.fields, key))

    def query(self, entity: str, access: SlotRead, key: str) -> Query:
        """The index query for the rows of `entity` that hold `key`."""
        slot = slot_name(access.slot)
        if not access.pinned:
            return Query(slot, key)
        if self.entities[entity].entity.shards == 1:
            return Query(slot, key, keys.partition(entity, 1, ""))
        return Query(slot, key, None, f"TABLE#{entity}#")


def compile_plan(definitions: Definitions, slots: Slots, *, version: int, product_versions: Mapping[str, int]) -> Plan:
    """The plan for these definitions over these slot assignments; raises PlanError where a join has no slot."""
    kinds = _kinds(definitions)
    products = {
        product.name: _compile(product, definitions.entities, slots, kinds, product_versions.get(product.name, 1))
        for product in definitions.products.values()
    }
    places: dict[str, list[tuple[str, int | None]]] = {}
    used: dict[str, set[frozenset[str] | None]] = {}
    edges: dict[str, dict[str, Columns]] = {}
    indexed: set[str] = set()
    for name, plan in products.items():
        places.setdefault(plan.product.root, []).append((name, None))
        used.setdefault(plan.product.root, set()).add(plan.used)
        for i, node in enumerate(plan.nodes):
            places.setdefault(node.join.entity, []).append((name, i))
            used.setdefault(node.join.entity, set()).add(node.used)
            for entity, access, fields in node.sides():
                if isinstance(access, EdgeRead):
                    edges.setdefault(entity, {})[access.fields] = fields
                elif isinstance(access, SlotRead):
                    indexed |= {plan.product.root, *(other.join.entity for other in plan.nodes)}
    entities = {
        e.name: EntityPlan(
            entity=e,
            declared=tuple(e.columns),
            slots=dict(slots.get(e.name, {})),
            used=_union(used.get(e.name, set())),
            edges=edges.get(e.name, {}),
            indexed=e.name in indexed,
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
        down, up = self._access(child, child_columns, join), self._access(over, parent_columns, join)
        own = down.slot if isinstance(down, SlotRead) else down.fields if isinstance(down, EdgeRead) else None
        return Node(
            join=join,
            parent=parent,
            above=above,
            child_columns=child_columns,
            parent_columns=parent_columns,
            down=down,
            up=up,
            own_slot=own,
            used=used,
            below=(),
        )

    def _access(self, entity: Entity, fields: Columns, join: Join) -> Access:
        match route(fields, entity, join):
            case "key":
                return KeyRead()
            case "edges":
                return EdgeRead(fields=keys.field_names(fields))
            case "slot":
                return SlotRead(slot=_slot_of(entity, fields, self.slots))

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
            if other != kind:
                group.update({member: kind for member, its in group.items() if its == other})
    return group


def _union(parts: set[frozenset[str] | None]) -> frozenset[str] | None:
    named = [part for part in parts if part is not None]
    return None if len(named) < len(parts) else frozenset().union(*named)
