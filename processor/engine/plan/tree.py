"""The tree of a root entity: the joins of all its products, with equal joins merged into one node.

Two joins are one node if they hang below the same node, join the same columns, and read them in the same way. `where`, the order,
the limit and the name of a join belong to each product. So a round finds the roots above a node once for all products that use
it, and assembles a root once for all products that show it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from processor.engine.plan.product_plan import JoinPlan, ProductPlan
from processor.language.product.document import Shape
from registry.model import SlotPath

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RootTree:
    """The joins of some products of a root entity, parents first. `top`: the nodes right below the root. `products`: those of the
    tree; `readers`: of the root row. `shape`: product -> its joins, with the numbers of
    their nodes."""

    root: str
    products: tuple[str, ...]
    nodes: tuple[TreeNode, ...]
    top: tuple[int, ...]
    readers: Readers
    shape: Mapping[str, Shape] = field(default_factory=dict)

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
    """Root entity -> the tree of its products."""
    by_root: dict[str, list[ProductPlan]] = {}
    for product in products:
        by_root.setdefault(product.product.root, []).append(product)
    return {root: merge(some) for root, some in by_root.items()}


def places_of(trees: Mapping[str, RootTree]) -> dict[str, tuple[tuple[str, int | None], ...]]:
    """Entity -> its places in the trees, as (root entity, node), node None for the root."""
    places: dict[str, list[tuple[str, int | None]]] = {}
    for root, tree in trees.items():
        places.setdefault(root, []).append((root, None))
        for index, node in enumerate(tree.nodes):
            places.setdefault(node.join.join.entity, []).append((root, index))
    return {entity: tuple(found) for entity, found in places.items()}


def merge(products: Collection[ProductPlan], whole: RootTree | None = None) -> RootTree:
    """The tree of these products, which have one root. `whole`: the tree of all products of the root, which numbers the nodes."""
    root = next(iter(products)).product.root
    building = _Building()
    for product in products:
        building.add(product)
    nodes = tuple(building.finished(products, whole))
    return RootTree(
        root=root,
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
        for product in products:
            for index, node in enumerate(product.nodes):
                name = product.product.name
                place = self.places[name, index]
                users[place][name] = (*users[place].get(name, ()), index)
                used[place].append((node.used, name))
        for place, node in enumerate(self.nodes):
            join = replace(node, below=tuple(self.below[place]))
            name, (index, *_) = next(iter(users[place].items()))
            number = place if whole is None else whole.node_of(name, index).number
            yield TreeNode(join=join, users=users[place], number=number, readers=_readers(used[place]))

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
    """Joins with the same identity find the same rows. A query that siblings share finds those of a pinned one, too."""
    down = node.down.slot if isinstance(node.down, SlotPath) else node.down
    return node.join.entity, node.child_columns, node.parent_columns, down, node.up, node.join.strong


def _readers(used: Iterable[tuple[frozenset[str] | None, str]]) -> Readers:
    found: dict[frozenset[str] | None, dict[str, None]] = {}
    for columns, name in used:
        found.setdefault(columns, {})[name] = None
    return tuple((columns, tuple(names)) for columns, names in found.items())
