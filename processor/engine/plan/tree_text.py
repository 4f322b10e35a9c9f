"""The merged trees as people read them: for each root entity its joins, with the products that use each."""

from collections.abc import Collection, Iterable, Iterator

from processor.engine.plan.tree import RootTree
from processor.text import first_of
from registry.text import shown_field

SHOWN = 3
"""The names of so many products are shown; of further ones only how many they are."""


def shared_tree_lines(trees: Iterable[RootTree]) -> Iterator[str]:
    """The trees that several products share, as text."""
    for tree in trees:
        if len(tree.products) > 1:
            yield f"{tree.root}: {product_names(tree.products)}"
            for index in tree.top:
                yield from _node_lines(tree, index, "  ")


def product_names(products: Collection[str]) -> str:
    """The names of products, the first ones only where they are many."""
    return first_of(sorted(products), SHOWN)


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
