"""The plan that a job runs: its products compiled against the registry's slot assignments, each join with its access paths.

Reads are by key, by edges, or by one query of the slot that the registry assigned (`registry.model.PlannedPath`). Both sides
of a join encode their keys alike. So a key from one row's slot serves as it is in the other side's slot, sort key or
edges. `processor.engine.plan.compile_plan` makes plans.

The tree of a root entity has the joins of all its products, with equal joins merged into one node. Two joins are one node if
they hang below the same node, join the same columns, and read them in the same way. `where`, the order, the limit and the name
of a join belong to each product. So a round finds the roots above a node once for all products that use it, and assembles a
root once for all products that show it.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

from processor.engine.plan.step import Lookup, Root
from processor.errors import PlanError
from processor.language.product.counted import Measure, contribution
from processor.language.product.document import Shape, key_of_root, read_root_key
from processor.language.product.expressions.expression import Expression
from processor.language.product.expressions.functions import missing_secrets
from processor.language.product.expressions.zones import installed, other_release
from processor.language.product.join_fields import convert, join_keys, secrets_in, zones_in
from processor.language.product.product import OPEN, Columns, Gate, GroupEntity, Join, Product
from processor.text import first_of
from processor.values import canonical_json
from processor.values.entity import Entity
from processor.values.record import Value
from processor.values.values import to_microseconds
from registry.fields import columns_of, shown_field
from registry.model import EdgePath, JoinSpec, KeyPath, PlannedPath, SlotPath
from statestore import keys
from statestore.items import Contributions, Edge, Numbers, slot_name
from statestore.keys import Key
from statestore.store import Query


def root_message_key(root: Entity, columns: Mapping[str, Value]) -> str:
    """The key of the messages of a root row with these columns."""
    return canonical_json.dumps_flat({name: columns[name] for name in root.key})


def root_of(root: Entity, key: str, product: Product | None = None) -> str | None:
    """The encoded root key of a message's key; None if it is not a key of the root. `product`: whose message it is, where its
    keys may be other ones than those of the root."""
    try:
        of_root = key_of_root(product, key) if product else key
        if of_root is None or not isinstance(canonical_json.loads(of_root), dict):
            return None
        return keys.encode(read_root_key(root, of_root))
    except ValueError:
        return None


class OrderedRead(NamedTuple):
    """The first rows of a join, by an index that has them in their order. `rows`: how many the product shows; `where`: the
    condition on those that count."""

    slot: int
    rows: int
    where: Expression | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinPlan:
    """A join of a product, compiled: a node of its tree. `spec`: the join as the registry stores it. `parent`: the index of the
    node above it, None for the root.
    `own_slot`: the slot (or the fields of edges) of the child that holds the join key, None when the join's columns are
    the child's primary key. Either `child_columns` or `parent_columns` may hold elements of an array
    (`processor.language.product.join_fields`). `child_converted`, `parent_converted`: what has another form in their keys.
    `ordered`: how a product reads the first rows alone, None where it reads all.
    `above_columns`: below groups, the fields of the rows above that hold the parent columns; `above_converted`: of these."""

    join: Join
    spec: JoinSpec
    parent: int | None
    above: str
    child_columns: Columns
    parent_columns: Columns
    down: PlannedPath
    up: PlannedPath
    own_slot: int | str | None
    used: frozenset[str] | None
    below: tuple[int, ...]
    child_converted: Columns = ()
    parent_converted: Columns = ()
    above_columns: Columns = ()
    above_converted: Columns = ()
    ordered: OrderedRead | None = None
    measures: tuple[Measure, ...] = ()
    """What totals have of its rows; empty where the product reads the rows."""

    def child_keys(self, columns: Mapping[str, Value]) -> list[str | None]:
        """The join keys of a row of the child."""
        return join_keys(self.child_columns, columns, self.child_converted)

    def parent_keys(self, columns: Mapping[str, Value]) -> list[str | None]:
        """The join keys of a row above."""
        return join_keys(self.parent_columns, columns, self.parent_converted)

    def stored_keys(self, columns: Mapping[str, Value]) -> list[str | None]:
        """The join keys of a stored row above: below groups, those of its group."""
        if not self.above_columns:
            return self.parent_keys(columns)
        return join_keys(self.above_columns, columns, self.above_converted)

    def sides(self) -> Iterator[tuple[str, PlannedPath, Columns]]:
        """Both sides of the join: the entity whose rows a lookup finds, its access path, and the fields that hold the
        key."""
        yield self.join.entity, self.down, self.child_columns
        yield self.above, self.up, self.above_columns or self.parent_columns


class LedgerPlace(NamedTuple):
    """The place of a product in the ledger. `root`: its root entity; `number`: the product's there, never given to another."""

    root: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPlan:
    """A product, compiled: nodes parents first; `top`: the nodes right below the root; `used`: the root's columns it
    reads. `number`: of its ledger entries, among the products of its root. `paused`: the job publishes none of its documents for
    now; `retracted`: no root has a document any more. `group`: the roots, where they are groups of rows."""

    product: Product
    version: int
    number: int
    nodes: tuple[JoinPlan, ...]
    top: tuple[int, ...]
    used: frozenset[str] | None
    paused: bool = False
    retracted: bool = False
    group: GroupEntity | None = None

    @property
    def gate(self) -> Gate:
        """The gate of its documents. Tombstones of a retracted product wait for nothing: the job removes it after its walk."""
        return OPEN if self.retracted else self.product.gate

    @property
    def ledger(self) -> LedgerPlace:
        """The place of the product in the ledger."""
        return LedgerPlace(self.product.roots, self.number)

    def read_through_indexes(self) -> Iterator[tuple[str, frozenset[str] | None]]:
        """The columns that the product reads of rows in index answers, with their entity; None for all. On the way up a step
        reads the columns that the row and its own parent join by."""
        for node in self.nodes:
            if isinstance(node.down, SlotPath):
                yield node.join.entity, node.used
            if isinstance(node.up, SlotPath):
                if node.parent is None and self.group:
                    yield node.above, self.used
                    continue
                above = () if node.parent is None else self.nodes[node.parent].child_columns
                yield node.above, frozenset(chain.from_iterable(map(columns_of, (*node.parent_columns, *above))))

    def paths(self) -> list[str]:
        """The names of the nodes from the root on: `stars.repo`."""
        found: list[str] = []
        for node in self.nodes:
            found.append(node.join.name if node.parent is None else f"{found[node.parent]}.{node.join.name}")
        return found


Places = Mapping[str, tuple[tuple[str, int | None], ...]]
"""Entity -> its places, as a name and a node, None for the root."""
Readers = tuple[tuple[frozenset[str] | None, tuple[str, ...]], ...]
"""The products that read a row at a place, by the columns that they use there; None for all columns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeNode:
    """A join of one or more products. `join`: the compiled join; its `parent` and `below` are nodes of the tree. `users`: product
    -> its own nodes here. `number`: of the node in the whole tree of the root entity, of which this tree may be a part."""

    join: JoinPlan
    users: Mapping[str, tuple[int, ...]]
    number: int
    readers: Readers = ()
    ordered: tuple[OrderedRead, ...] = ()
    """Those of all users, by one slot; empty where they read all rows."""

    special: bool = False
    """Not all rows of a key are read: `ordered`, or `counted`."""

    @property
    def counted(self) -> bool:
        """Whether totals answer the join, once they are complete."""
        return bool(self.join.measures)


@dataclass(frozen=True, slots=True, kw_only=True)
class RootTree:
    """The joins of some products of a root entity, parents first. `top`: the nodes right below the root. `products`: those of the
    tree; `readers`: of the root row. `shape`: product -> its joins, with the numbers of
    their nodes. `group`: the roots, where they are groups of rows of the root entity; the first node then finds these rows."""

    root: str
    products: tuple[str, ...]
    nodes: tuple[TreeNode, ...]
    top: tuple[int, ...]
    readers: Readers
    shape: Mapping[str, Shape] = field(default_factory=dict)
    group: GroupEntity | None = None

    @property
    def name(self) -> str:
        """The root entity, or its groups."""
        return self.root if self.group is None else self.group.name

    def reading(self, node: int | None, changed: frozenset[str] | None) -> list[str]:
        """The products that read one of the changed columns (None: all count as changed) at a node, or None at the root."""
        readers = self.readers if node is None else self.nodes[node].readers
        found: dict[str, None] = {}
        for used, names in readers:
            if changed is None or (changed if used is None else changed & used):
                found |= dict.fromkeys(names)
        return list(found)

    def node_of(self, product: str, node: int) -> TreeNode:
        """The node of the tree that a product's own node became."""
        return next(one for one in self.nodes if node in one.users.get(product, ()))


def trees_of(products: Iterable[ProductPlan]) -> dict[str, RootTree]:
    """Root entity, or its groups -> the tree of its products."""
    by_root: dict[str, list[ProductPlan]] = {}
    for product in products:
        by_root.setdefault(product.product.tree, []).append(product)
    return {root: merge(some) for root, some in by_root.items()}


def _places_of(trees: Mapping[str, tuple[str | None, Iterable[JoinPlan]]]) -> Places:
    """The places of each entity in products or in trees: their root entities and their joins, by name. No row is a group."""
    places: dict[str, list[tuple[str, int | None]]] = {}
    for name, (root, joins) in trees.items():
        if root is not None:
            places.setdefault(root, []).append((name, None))
        for index, join in enumerate(joins):
            places.setdefault(join.join.entity, []).append((name, index))
    return {entity: tuple(found) for entity, found in places.items()}


def merge(products: Collection[ProductPlan], whole: RootTree | None = None) -> RootTree:
    """The tree of these products, which have one root. `whole`: the tree of all products of the root, which numbers the nodes."""
    first = next(iter(products))
    building = _Building()
    for product in products:
        building.add(product)
    nodes = tuple(building.finished(products, whole))
    return RootTree(
        root=first.product.root,
        group=first.group,
        products=tuple(product.product.name for product in products),
        nodes=nodes,
        top=tuple(building.below[None]),
        readers=_readers((product.used, product.product.name) for product in products),
        shape={product.product.name: building.shape(product, product.top, nodes) for product in products},
    )


class _Building:
    """A tree in the making. `places`: (product, its node) -> the node of the tree."""

    def __init__(self) -> None:
        self.nodes: list[JoinPlan] = []
        self.below: dict[int | None, list[int]] = {None: []}
        self.places: dict[tuple[str, int], int] = {}
        self._known: dict[object, int] = {}

    def add(self, product: ProductPlan) -> None:
        name = product.product.name
        for index, node in enumerate(product.nodes):
            parent = None if node.parent is None else self.places[name, node.parent]
            place = self._known.setdefault((parent, *_identity(node)), len(self.nodes))
            if place == len(self.nodes):
                self.nodes.append(replace(node, parent=parent))
                self.below[place] = []
                self.below[parent].append(place)
            elif isinstance(node.down, SlotPath) and not node.down.pinned:
                # the product asks this query anyway, for a sibling
                self.nodes[place] = replace(self.nodes[place], down=node.down)
            self.places[name, index] = place

    def finished(self, products: Collection[ProductPlan], whole: RootTree | None) -> Iterable[TreeNode]:
        users: list[dict[str, tuple[int, ...]]] = [{} for _ in self.nodes]
        used: list[list[tuple[frozenset[str] | None, str]]] = [[] for _ in self.nodes]
        reads: list[dict[OrderedRead, None]] = [{} for _ in self.nodes]
        for product in products:
            for index, node in enumerate(product.nodes):
                name = product.product.name
                place = self.places[name, index]
                users[place][name] = (*users[place].get(name, ()), index)
                used[place].append((node.used, name))
                if node.ordered is not None:
                    reads[place][node.ordered] = None
        for place, node in enumerate(self.nodes):
            join = replace(node, below=tuple(self.below[place]), ordered=None)
            name, (index, *_) = next(iter(users[place].items()))
            number = place if whole is None else whole.node_of(name, index).number
            yield TreeNode(
                join=join,
                users=users[place],
                number=number,
                readers=_readers(used[place]),
                ordered=tuple(reads[place]),
                special=bool(reads[place] or join.measures),
            )

    def shape(self, product: ProductPlan, level: Sequence[int], nodes: Sequence[TreeNode]) -> Shape:
        return tuple(
            (
                product.nodes[index].join.name,
                nodes[self.places[product.product.name, index]].number,
                self.shape(product, product.nodes[index].below, nodes),
            )
            for index in level
        )


def _identity(node: JoinPlan) -> tuple[object, ...]:
    """Joins with the same identity find the same rows, or the first ones of one order. A query that siblings share finds those of
    a pinned one, too."""
    down = node.down.slot if isinstance(node.down, SlotPath) else node.down
    order = node.ordered and node.ordered.slot
    read = order or bool(node.measures)
    return node.join.entity, node.child_columns, node.parent_columns, down, node.up, node.join.strong, read


def _readers(used: Iterable[tuple[frozenset[str] | None, str]]) -> Readers:
    found: dict[frozenset[str] | None, dict[str, None]] = {}
    for columns, name in used:
        found.setdefault(columns, {})[name] = None
    return tuple((columns, tuple(names)) for columns, names in found.items())


def union(parts: Collection[frozenset[str] | None]) -> frozenset[str] | None:
    """All columns of these; None where one of them is None, which means all columns."""
    named = [part for part in parts if part is not None]
    return None if len(named) < len(parts) else frozenset().union(*named)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityPlan:
    """An entity as the job stores it. `used`: the columns that some product reads, None for all of them. `indexed`: those that
    it reads through an index, and the key columns; none without slots. `edges`: the
    fields that edges name its rows by, as `keys.field_names` encodes them. `layout`: the registry version at which a slot or
    an edge of its rows was written first. `converted`: what has another form in the keys of slots and edges than in the row
    (`join_fields.converted_of`). `dropped`: columns that the entity declares no more, and that rows of older plans hold as
    declared ones. `unread`: the declared columns that no
    product reads, no key has, and no slot or edge holds."""

    entity: Entity
    declared: Columns
    slots: Mapping[int, Columns]
    used: frozenset[str] | None
    edges: Mapping[str, Columns]
    layout: int
    converted: Columns = ()
    dropped: Columns = ()
    indexed: frozenset[str] | None = frozenset()
    unread: Columns = ()
    orders: Mapping[int, tuple[tuple[str, bool], ...]] = field(default_factory=dict)
    """Slot -> the terms of the order that its index has: each column, and whether it descends."""
    measures: Mapping[Columns, tuple[Measure, ...]] = field(default_factory=dict)
    """The fields of a key -> what its totals have of the rows."""
    count: int = 0
    """The number of the count in which rows contribute to totals; 0 for none."""
    complete: bool = False
    """All rows contribute."""

    @property
    def name(self) -> str:
        """The entity's name."""
        return self.entity.name

    def key(self, sk: str) -> Key:
        """The key of the row with this encoded primary key."""
        return keys.row_key(self.entity.name, self.entity.shards, sk)

    def stored(self, columns: frozenset[str] | None) -> frozenset[str] | None:
        """The columns that products read of its rows. Without undeclared columns, whole rows are all declared columns."""
        return frozenset(self.entity.columns) if columns is None and not self.entity.keeps_undeclared else columns

    def partitions(self) -> list[str]:
        """The partitions of the table that hold the rows."""
        return keys.partitions(self.entity.name, self.entity.shards)

    def concerns_indexes(self, changed: frozenset[str] | None) -> bool:
        """Whether a change of these columns (None: of all) changes what the indexes show of a row."""
        return bool(self.slots) and (
            changed is None or bool(changed if self.indexed is None else changed & self.indexed)
        )

    def joined(self) -> frozenset[str]:
        """The columns that slots and edges hold, and those of orders."""
        indexed = [*self.slots.values(), *self.edges.values()]
        ordered = {column for terms in self.orders.values() for column, _ in terms}
        return frozenset(column for fields in indexed for field in fields for column in columns_of(field)) | ordered

    def edges_of(self, columns: Mapping[str, Value] | None) -> frozenset[Edge] | None:
        """The edges of a row with these columns (None: a deleted row); None when the entity has no edges."""
        if not self.edges:
            return None
        edges = self.edges if columns is not None else {}
        found = {name: join_keys(fields, columns or {}, self.converted) for name, fields in edges.items()}
        return frozenset((name, key) for name, join_keys_ in found.items() for key in join_keys_ if key is not None)

    def slots_of(self, columns: Mapping[str, Value]) -> dict[int, str | None]:
        """The key of a row with these columns in each slot; None where the row has no key."""
        columns = convert(columns, self.converted)
        return {slot: keys.encode([*map(columns.get, assigned)]) for slot, assigned in self.slots.items()}

    def measured(self) -> frozenset[str]:
        """The names of all that totals have of the rows."""
        return frozenset(
            f"{keys.field_names(fields)}.{measure.name}.{measure.function}"
            for fields, measures in self.measures.items()
            for measure in measures
        )

    def totals_of(self, columns: Mapping[str, Value] | None, version: str) -> Contributions | None:
        """What a row with these columns (None: a deleted row) contributes to totals; None where no product counts the rows."""
        if not self.count:
            return None
        found: dict[str, tuple[str, Numbers]] = {}
        for fields, measures in self.measures.items() if columns is not None else ():
            (key,) = join_keys(fields, columns or {}, self.converted)
            if key is not None and (numbers := contribution(measures, columns or {})):
                found[keys.field_names(fields)] = key, numbers
        return Contributions(self.count, version, found)

    def place(self, slot: int, columns: Mapping[str, Value]) -> str:
        """The place of a row with these columns in the order of a slot."""
        return keys.order_text((self._ranked(name, columns.get(name)), down) for name, down in self.orders[slot])

    def names_of(self, key: Key, columns: Mapping[str, Value]) -> dict[int, str]:
        """The name of a row with these columns in each index that has an order."""
        return {slot: keys.index_row(key, self.place(slot, columns)) for slot in self.orders}

    def _ranked(self, column: str, value: Value) -> Value:
        declared = self.entity.columns.get(column)
        return to_microseconds(value) if declared and declared.name == "timestamp" and value is not None else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All that a worker needs to know, as plain data."""

    version: int
    """The registry's."""
    entities: Mapping[str, EntityPlan]
    products: Mapping[str, ProductPlan]
    occurrences: Places = field(init=False)
    """Entity -> its places in products, as (product, node)."""
    trees: Mapping[str, RootTree] = field(init=False)
    """Root entity, or its groups (`Product.tree`) -> the tree of its products."""
    places: Places = field(init=False)
    """Entity -> its places in these trees, as (name of the tree, node)."""
    shown: Mapping[str, frozenset[str] | None] = field(init=False)
    """Entity -> the columns that each index answer shows of its rows, None for all: those that products read there now."""
    gated: Mapping[str, ProductPlan] = field(init=False)
    """The products whose documents wait at a gate. Every round asks for them."""

    def __post_init__(self) -> None:
        products = {
            name: (None if plan.group else plan.product.root, plan.nodes) for name, plan in self.products.items()
        }
        trees = trees_of(self.products.values())
        object.__setattr__(self, "occurrences", _places_of(products))
        object.__setattr__(self, "trees", trees)
        joins = {
            name: (None if tree.group else tree.root, [node.join for node in tree.nodes])
            for name, tree in trees.items()
        }
        object.__setattr__(self, "places", _places_of(joins))
        read: dict[str, set[frozenset[str] | None]] = {}
        for entity, columns in chain.from_iterable(one.read_through_indexes() for one in self.products.values()):
            read.setdefault(entity, set()).add(columns)
        shown = {name: self.entities[name].stored(union(parts)) for name, parts in read.items()}
        object.__setattr__(self, "shown", shown)
        gated = {name: plan for name, plan in self.products.items() if plan.gate != OPEN}
        object.__setattr__(self, "gated", gated)

    @property
    def declared_entities(self) -> dict[str, Entity]:
        """The entities as the definitions declare them."""
        return {name: planned.entity for name, planned in self.entities.items()}

    def shows_root(self, root: str, products: Iterable[str]) -> bool:
        """Whether index answers show all that these products read of a row of their root entity."""
        entity, shown = self.entities[root], self.shown.get(root, frozenset())
        used = entity.stored(union({self.products[name].used for name in products}))
        return shown is None or (used is not None and used - shown <= {*entity.entity.key})

    def row_keys(self, roots: Iterable[Root]) -> set[Key]:
        """The keys of the rows of these roots; none for groups, which have no row."""
        products = self.products
        return {self.entities[products[name].product.root].key(sk) for name, sk in roots if not products[name].group}

    def root_of(self, product: ProductPlan, key: str) -> str | None:
        """The encoded root key of the key of a message of a product; None if no message of it has this key."""
        return root_of(self.root_entity(product), key, product.product)

    def sharing(self, product: ProductPlan) -> list[ProductPlan]:
        """The other products of the product's topic."""
        return [
            one
            for one in self.products.values()
            if one.product.topic == product.product.topic and one.product.name != product.product.name
        ]

    def root_entity(self, product: ProductPlan) -> Entity:
        """The entity whose rows are the roots of a product: a table, or groups of rows."""
        return product.group or self.entities[product.product.root].entity

    def without(self, products: Collection[str]) -> "Plan":
        """The plan of a job that writes the same rows, and publishes no document of these products."""
        if not products:
            return self
        return replace(self, products={name: one for name, one in self.products.items() if name not in products})

    def without_orders(self) -> "Plan":
        """The plan of a reader that reads all rows of each join, also where a slot has their order."""
        products = {
            name: replace(one, nodes=tuple(replace(node, ordered=None) for node in one.nodes))
            for name, one in self.products.items()
        }
        return replace(self, products=products)

    def with_counts(self, counts: Mapping[str, int], complete: Collection[str]) -> "Plan":
        """The plan of a job whose rows contribute to totals. `counts`: entity -> the number of its count; `complete`: the
        entities of which all rows contribute."""
        entities = {
            name: replace(entity, count=counts[name], complete=name in complete) if name in counts else entity
            for name, entity in self.entities.items()
        }
        return self if entities == self.entities else replace(self, entities=entities)

    def over_empty_table(self) -> "Plan":
        """The plan of a job without a registry, whose table is empty: each row contributes from its first write on."""
        return self.with_counts({name: 1 for name, entity in self.entities.items() if entity.measures}, self.entities)

    def totals(self, join: JoinPlan, key: str) -> Lookup | None:
        """The request for the totals of the rows of a join that hold `key`; None where not all rows contribute."""
        entity = self.entities[join.join.entity]
        if not (join.measures and entity.complete):
            return None
        fields = keys.field_names(join.child_columns)
        return Lookup(keys.total_partition(entity.count, entity.name, fields, key), totals=True)

    def with_topics(self, topics: Mapping[str, str]) -> "Plan":
        """The plan of a job that reads these entities from other topics than theirs. `topics`: entity -> topic."""
        moved = {
            name: replace(self.entities[name], entity=replace(self.entities[name].entity, topic=topic))
            for name, topic in topics.items()
        }
        return replace(self, entities={**self.entities, **moved}) if moved else self

    def request(self, entity: str, access: PlannedPath, key: str) -> Key | Lookup:
        """The request for the rows of `entity` that hold `key`."""
        if isinstance(access, KeyPath):
            return self.entities[entity].key(key)
        return Lookup(self.source(entity, access, key))

    def source(self, entity: str, access: SlotPath | EdgePath, key: str) -> Query | str:
        """The index query, or the partition of edges, that finds the rows of `entity` that hold `key`."""
        if isinstance(access, EdgePath):
            return keys.edge_partition(entity, keys.field_names(access.fields), key)
        return self.query(entity, access, key)

    def query(self, entity: str, access: SlotPath, key: str) -> Query:
        """The index query that finds the rows of `entity` that hold `key`."""
        return Query(slot_name(access.slot), key, entity if access.pinned else None)

    def first_rows(self, entity: str, read: OrderedRead, key: str, most: int, start: str = "") -> Lookup:
        """The request for some rows of `entity` that hold `key`, in their order, from the row with the name `start` on."""
        return Lookup(Query(slot_name(read.slot), key, entity, start=start), paged=True, most=most)


NAMES_SHOWN = 3
"""The names of this many products are shown; of further ones only how many they are."""


def shared_tree_lines(trees: Iterable[RootTree]) -> Iterator[str]:
    """The trees that several products share, as text."""
    for tree in trees:
        if len(tree.products) > 1:
            yield f"{tree.name}: {product_names(tree.products)}"
            for index in tree.top:
                yield from _node_lines(tree, index, "  ")


def product_names(products: Collection[str]) -> str:
    """The names of products, the first ones only where they are many."""
    return first_of(sorted(products), NAMES_SHOWN)


def _node_lines(tree: RootTree, index: int, margin: str) -> Iterator[str]:
    node = tree.nodes[index]
    join = node.join
    on = ", ".join(
        f"{shown_field(child)} = {join.above}.{shown_field(parent)}"
        for child, parent in zip(join.child_columns, join.parent_columns, strict=True)
    )
    users = "all" if len(node.users) == len(tree.products) else product_names(node.users)
    yield f"{margin}{join.join.entity} on {on}: {users}"
    for below in join.below:
        yield from _node_lines(tree, below, margin + "  ")


DEAD_LETTER_TOPIC_CURE = "set dead_letter_topic to a topic of its own"


def check_dead_letter_topic(plan: Plan, dead_letter_topic: str) -> None:
    """Raises PlanError when an entity reads the topic for dead letters, or a product publishes to it."""
    users = [(f"entity `{name}` reads", entity.entity.topic) for name, entity in plan.entities.items()]
    users += [(f"product `{name}` publishes to", product.product.topic) for name, product in plan.products.items()]
    for user, topic in users:
        if topic == dead_letter_topic:
            raise PlanError(
                f"{user} the topic `{topic}`, and the job keeps its dead letters there: {DEAD_LETTER_TOPIC_CURE}"
            )


def check_load(plan: Plan) -> None:
    """Raises PlanError for a plan whose rows a load cannot write: its tasks make rows without each other, and totals are of the
    rows of all tasks."""
    counted = [name for name, product in plan.products.items() if any(node.measures for node in product.nodes)]
    if counted:
        raise PlanError(
            f"`load` writes no totals, and {product_names(counted)} has a `counted` join: load without the word, and apply the "
            "product with it afterwards; or start `statestore run`"
        )


def secrets_of(plan: Plan) -> set[str]:
    """The names of the secrets that documents and stored rows need."""
    return set(secrets_in((plan.products, plan.entities)))


def check_needs(plan: Plan, secrets: Collection[str]) -> None:
    """Raises PlanError when the plan needs a secret that is not among these names, or other rules of time zones than the
    installed ones."""
    if missing := secrets_of(plan) - set(secrets):
        raise PlanError(missing_secrets(missing))
    check_time_zones(plan)


def check_time_zones(plan: Plan) -> None:
    """Raises PlanError when a product needs other rules of time zones than the installed ones."""
    found = {name: one for name, one in plan.products.items() if one.product.tzdata not in ("", installed())}
    if found:
        joined = any(zones_in([join.on for one in found.values() for _, join in one.product.walk()]))
        releases = sorted({one.product.tzdata for one in found.values()})
        raise PlanError(other_release(releases, product_names(found), joined=joined))
