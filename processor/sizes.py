"""What may grow too large, by statistics of the state: values that many rows hold, documents past a message, rows past an item.

A document is taken to be as large as the stored rows that it shows, so a product that selects few columns is told too early.
"""

from collections.abc import Iterator

from processor.estimate import Known
from processor.model.access import Access, SlotRead
from processor.model.plan import Node, Plan, ProductPlan
from processor.model.step import MAX_MESSAGE_BYTES
from processor.planning import join_of
from registry.statistics import JoinStatistics
from statestore.store import MAX_ITEM_BYTES

HOT = 1_000
"""Rows of one value from which on it is told."""
KAFKA_BYTES = 1024 * 1024
"""What Kafka takes as a message, unless a topic or its broker says otherwise."""
NEAR = 0.75
"""Share of an item's limit from which on a row is told."""


def size_warnings(plan: Plan, known: Known) -> Iterator[str]:
    """What is too large by these statistics, or near to it."""
    nodes = {join_of(node): node for product in plan.products.values() for node in product.nodes}
    for node in nodes.values():
        yield from _hot(node, known)
    for product in plan.products.values():
        yield from _document(product, known)
    for name in plan.entities:
        of = known.entities.get(name)
        if of is not None and of.most_bytes > MAX_ITEM_BYTES * NEAR:
            size = f"a row of the sample has {of.most_bytes / 1024:,.0f} KiB"
            yield f"entity {name}: {size}, and an item of DynamoDB has {MAX_ITEM_BYTES // 1024}; keep less in a row"


def _hot(node: Node, known: Known) -> Iterator[str]:
    join, child = join_of(node), node.join.entity
    down, up = known.joins.get((join, "down")), known.joins.get((join, "up"))
    if down is not None and down.most >= HOT:
        yield f"join {_finds(down, child)}: a document reads them all, and {_written(node.down)}"
    if up is not None and up.most >= HOT:
        yield f"join {_finds(up, node.above)}: a change of its {child} rebuilds what is above each, and {_written(node.up)}"


def _finds(found: JoinStatistics, entity: str) -> str:
    return f"{found.join}: {found.value!r} finds {found.most:,} rows of {entity}"


def _written(access: Access) -> str:
    """What limits the writes of rows that hold one value."""
    where = f"one key of GSI_{access.slot}" if isinstance(access, SlotRead) else "one partition of edges"
    return f"all are in {where}, which takes about 1,000 writes a second"


def _document(product: ProductPlan, known: Known) -> Iterator[str]:
    """The document that is the largest by one of its joins, where it passes a message."""
    means = known.means(product, "down")
    rows = [0.0] * len(product.nodes)  # bytes of a row of each node, with what is embedded below it

    def embedded(level: tuple[int, ...]) -> float:
        return sum(_kept(product.nodes[i], means[i]) * rows[i] for i in level)

    for index in reversed(range(len(rows))):
        node = product.nodes[index]
        rows[index] = known.bytes(node.join.entity) + embedded(node.below)
    document = known.bytes(product.product.root) + embedded(product.top)
    largest, what = document, ""
    for index, path in enumerate(product.paths()):
        node = product.nodes[index]
        found = known.joins.get((join_of(node), "down"))
        if found is not None and _visible(product, index):
            size = document + (_kept(node, found.most) - _kept(node, means[index])) * rows[index]
            if size > largest:
                largest, what = size, f" ({path} of {found.value!r}: {found.most:,} rows)"
    if largest > KAFKA_BYTES:
        told = f"{product.product.name}: a document may have about {largest / 2**20:,.1f} MiB{what}"
        limits = (
            f"Kafka takes 1 MiB unless told otherwise, and beyond {MAX_MESSAGE_BYTES >> 20} MiB the product is stopped"
        )
        yield f"{told}; {limits}: add a `limit`"


def _kept(node: Node, rows: float) -> float:
    """How many of the rows that a join finds a document shows."""
    join = node.join
    if not join.shown or join.aggregated:
        return 0
    limit = join.limit if join.many else 1
    return rows if limit is None else min(rows, limit)


def _visible(product: ProductPlan, index: int | None) -> bool:
    """Whether a document shows rows of a node: all embeds on the way to it show theirs."""
    while index is not None:
        if _kept(product.nodes[index], 1) == 0:
            return False
        index = product.nodes[index].parent
    return True
