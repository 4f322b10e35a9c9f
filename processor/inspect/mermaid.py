"""The tree of a product as a Mermaid diagram, which GitHub, GitLab and many editors draw."""

from collections.abc import Iterator, Sequence
from typing import Final

from processor.plan.plan import Plan
from processor.plan.product_plan import ProductPlan

_CODES: Final = str.maketrans(
    {"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "#": "#35;", "`": "#96;", "\n": " "}
)


def mermaid_lines(plan: Plan, product: ProductPlan) -> Iterator[str]:
    """The diagram: a box for the document and for each joined entity, an arrow for each join with its columns."""
    root = plan.entities[product.product.root]
    yield "flowchart LR"
    heading = _label(product.product.name, f"a document for each {root.name}, by {', '.join(root.entity.key)}")
    yield f"    root[{heading}]"
    yield from _below(product, "root", product.top)


def _below(product: ProductPlan, above: str, nodes: Sequence[int]) -> Iterator[str]:
    for index in nodes:
        node = product.nodes[index]
        join = node.join
        kind = "many" if join.many else "one"
        on = ", ".join(join.equalities(node.above))
        arrow = "-->" if join.shown else "-.->"
        yield f"    {above} {arrow}|{_label(f'{join.name}: {kind}')}| n{index}[{_label(join.entity, on)}]"
        yield from _below(product, f"n{index}", node.below)


def _label(*lines: str) -> str:
    """The lines as one label, with codes for the signs that Mermaid reads as its own."""
    return f'"{"<br>".join(line.translate(_CODES) for line in lines)}"'
